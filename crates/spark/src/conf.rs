//! Spark's settings by key. Each has its origin, and is read by its type.

mod error;
mod references;
mod spark_version;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use super::keys::{self, Key};
use super::version::SparkVersion;
use crate::{DependencyUri, split_list};

pub use error::{SettingError, without_userinfo};
pub use references::Surroundings;

/// The origin of a setting, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// An option of the command line, such as `--driver-memory`.
    Option(&'static str),
    Conf,
    /// A properties file, and the line in it.
    File {
        /// The file's name as it was given or found.
        file: String,
        /// The line number, from 1.
        line: usize,
    },
    /// A field of a document, such as a `SparkApplication`.
    Field {
        /// The name of the document's file for messages.
        file: String,
        /// The full path of the field.
        field: String,
    },
    /// An environment variable of the submitting machine.
    Variable(&'static str),
    /// `-D` among the options of the JVM in which spark-submit would run.
    JavaOption,
    /// The program derived it from other settings.
    Derived,
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option(option) => formatter.write_str(option),
            Self::Conf => formatter.write_str("--conf"),
            Self::File { file, line } => write!(formatter, "{file}, line {line}"),
            Self::Field { file, field } => write!(formatter, "{file}, {field}"),
            Self::Variable(name) => write!(formatter, "the environment variable {name}"),
            Self::JavaOption => formatter.write_str("an option of the JVM, -D"),
            Self::Derived => formatter.write_str("other settings"),
        }
    }
}

#[derive(Clone, PartialEq, Eq)]
struct Setting {
    /// The value as the user wrote it.
    value: String,
    /// The value after references were filled in; `None` if it has no references.
    filled_in: Option<String>,
    origin: Origin,
}

/// The settings of one application. `Debug` leaves out the values, because they may be secrets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SparkConf {
    settings: BTreeMap<String, Setting>,
}

impl SparkConf {
    /// Sets a key, and replaces an earlier value.
    pub fn set(&mut self, key: &str, value: impl Into<String>, origin: Origin) {
        self.settings.insert(key.to_owned(), Setting { value: value.into(), filled_in: None, origin });
    }

    /// Sets a key, unless it is already set.
    pub fn set_if_missing(&mut self, key: &str, value: impl Into<String>, origin: Origin) {
        if !self.contains(key) {
            self.set(key, value, origin);
        }
    }

    /// Removes a key, and returns its value.
    pub fn remove(&mut self, key: &str) -> Option<String> {
        self.settings.remove(key).map(|setting| setting.value)
    }

    /// The value of a key. If the key is not set, the value of an alternative name. References are filled in after
    /// [`SparkConf::fill_in`] was called.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.setting(key).map(|setting| setting.filled_in.as_ref().unwrap_or(&setting.value).as_str())
    }

    /// The origin of a key's value.
    pub fn origin(&self, key: &str) -> Option<&Origin> {
        self.setting(key).map(|setting| &setting.origin)
    }

    /// Whether a key is set, even to an empty value.
    pub fn contains(&self, key: &str) -> bool {
        self.setting(key).is_some()
    }

    fn setting(&self, key: &str) -> Option<&Setting> {
        let by_alternative = || {
            let entry = keys::find(key).filter(|entry| entry.name == key)?;
            entry.alternatives.iter().find_map(|name| self.settings.get(*name))
        };
        self.settings.get(key).or_else(by_alternative)
    }

    /// Every key with its value as the user wrote it, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.settings.iter().map(|(key, setting)| (key.as_str(), setting.value.as_str()))
    }

    /// The rest of each key that begins with `prefix`, with the value, sorted by key.
    pub fn prefixed<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.settings
            .range(prefix.to_owned()..)
            .map_while(move |(key, setting)| Some((key.strip_prefix(prefix)?, setting.value.as_str())))
    }

    /// The value, read by the key's kind.
    pub fn read<T>(&self, key: &Key<T>) -> Result<Option<T>, SettingError> {
        self.read_as(key, key)
    }

    /// The value of a key that belongs to a family, read by the family's kind.
    pub fn read_as<T>(&self, key: &str, family: &Key<T>) -> Result<Option<T>, SettingError> {
        let Some(text) = self.get(key) else { return Ok(None) };
        let version = SparkVersion::read(self)?.0;
        (family.kind.read)(text, version).map(Some).map_err(|problem| self.refuse(key, problem))
    }

    /// Makes an error about a key's value. `problem` says what is allowed: `it must be …`.
    pub fn refuse(&self, key: &str, problem: impl AsRef<str>) -> SettingError {
        // The message shows the value without its references filled in, because those may be secrets.
        let written = self.setting(key).map(|setting| setting.value.as_str());
        let problem = problem.as_ref();
        match self.iter().find(|(other, _)| written.is_none() && keys::near_miss(other) == Some(key)) {
            Some((mistyped, _)) => {
                let problem = format!("{problem}; `{mistyped}` is set, and has no effect: is `{key}` meant?");
                SettingError::new(key, written, None, &problem)
            }
            None => SettingError::new(key, written, self.origin(key), problem),
        }
    }
}

/// A setting as `key=value`, without a secret value. Addresses of dependencies are without user, query and fragment.
pub fn shown_redacted(key: &str, value: &str) -> String {
    if error::is_secret(key) || error::is_secret(value) {
        return format!("{key}=*********(redacted)");
    }
    let is_ours = *keys::SERVER_URI == *key || *keys::SERVER_INTERNAL_URI == *key;
    if is_ours {
        return format!("{key}={}", error::without_userinfo(value));
    }
    if !keys::DEPENDENCY_LISTS.contains(&key) {
        return format!("{key}={value}");
    }
    let shown = split_list(value).map(|text| match DependencyUri::parse(text) {
        Ok(DependencyUri::Http(address)) => address.redacted(),
        _ => text.to_owned(),
    });
    format!("{key}={}", shown.collect::<Vec<_>>().join(","))
}

impl fmt::Debug for SparkConf {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SparkConf").field("keys", &self.settings.keys()).finish_non_exhaustive()
    }
}
