//! Spark's settings by key, each with where it was set, and the typed reading of them.

mod error;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::java_text::trim;
use super::version::SparkVersion;
use super::{SizeUnit, TimeUnit, keys, parse_duration, parse_size};

pub use error::{SettingError, without_userinfo};

/// Where a setting comes from, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// An option of the command line, such as `--driver-memory`.
    Option(&'static str),
    /// `--conf`.
    Conf,
    /// A properties file, and the line in it.
    File {
        /// Its name as it was given or found.
        file: String,
        /// Counted from 1.
        line: usize,
    },
    /// An environment variable of the submitting machine.
    Variable(&'static str),
    /// Nobody wrote it: it follows from other settings.
    Derived,
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option(option) => formatter.write_str(option),
            Self::Conf => formatter.write_str("--conf"),
            Self::File { file, line } => write!(formatter, "{file}, line {line}"),
            Self::Variable(name) => write!(formatter, "the environment variable {name}"),
            Self::Derived => formatter.write_str("other settings"),
        }
    }
}

#[derive(Clone, PartialEq, Eq)]
struct Setting {
    value: String,
    origin: Origin,
}

/// The settings of one application. Values are kept out of `Debug`: they may be secrets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SparkConf {
    settings: BTreeMap<String, Setting>,
}

impl SparkConf {
    /// Sets a key, whatever it was before.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<String>, origin: Origin) {
        self.settings.insert(key.into(), Setting { value: value.into(), origin });
    }

    /// Sets a key that nothing else set.
    pub fn set_if_missing(&mut self, key: &str, value: impl Into<String>, origin: Origin) {
        if !self.settings.contains_key(key) {
            self.set(key, value, origin);
        }
    }

    /// Forgets a key, and gives its value.
    pub fn remove(&mut self, key: &str) -> Option<String> {
        self.settings.remove(key).map(|setting| setting.value)
    }

    /// The value as it was written.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.settings.get(key).map(|setting| setting.value.as_str())
    }

    /// Where a key was set.
    pub fn origin(&self, key: &str) -> Option<&Origin> {
        self.settings.get(key).map(|setting| &setting.origin)
    }

    /// Whether a key is set, be it to nothing.
    pub fn contains(&self, key: &str) -> bool {
        self.settings.contains_key(key)
    }

    /// Every key with its value, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.settings.iter().map(|(key, setting)| (key.as_str(), setting.value.as_str()))
    }

    /// What follows `prefix` in each key that begins with it, with the value; sorted by key.
    pub fn prefixed<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.settings
            .range(prefix.to_owned()..)
            .map_while(move |(key, setting)| Some((key.strip_prefix(prefix)?, setting.value.as_str())))
    }

    /// A value that is true or false, as Scala's `toBoolean` reads it (case does not matter).
    pub fn boolean(&self, key: &str) -> Result<Option<bool>, SettingError> {
        self.read(key, |text| boolean(trim(text)))
    }

    /// The same where Spark does not take blanks away first (`KubernetesVolumeUtils`).
    pub fn bare_boolean(&self, key: &str) -> Result<Option<bool>, SettingError> {
        self.read(key, boolean)
    }

    /// A size in whole MiB; a bare number is MiB, and what is left over is cut off, as Spark does.
    pub fn mebibytes(&self, key: &str) -> Result<Option<u64>, SettingError> {
        let may_be_binary = SparkVersion::of(self)?.0.has_binary_units();
        self.read(key, |text| {
            let size = parse_size(text, SizeUnit::Mebibytes).ok();
            let size = size.filter(|_| may_be_binary || !has_binary_unit(text));
            size.map(|size| size.bytes() >> 20).ok_or_else(|| SIZES.to_owned())
        })
    }

    /// A time; a bare number is counted in `unit`.
    pub fn duration(&self, key: &str, unit: TimeUnit) -> Result<Option<Duration>, SettingError> {
        self.read(key, |text| parse_duration(text, unit).map_err(|error| error.to_string()))
    }

    /// A number; `what` says which ones are allowed, such as `a whole number from 0 to 65535`.
    pub fn number<T: FromStr>(&self, key: &str, what: &str) -> Result<Option<T>, SettingError> {
        self.read(key, |text| trim(text).parse().map_err(|_| format!("it must be {what}")))
    }

    /// A number that Spark reads without taking blanks away first (`SparkConf.getInt`, `validateSubmitArguments`).
    pub fn bare_number<T: FromStr>(&self, key: &str, what: &str) -> Result<Option<T>, SettingError> {
        self.read(key, |text| text.parse().map_err(|_| format!("it must be {what}")))
    }

    /// A number with a fraction as Java's `Double.parseDouble` reads it: `2d` and `1f` are numbers.
    pub fn fraction(&self, key: &str, what: &str) -> Result<Option<f64>, SettingError> {
        self.read(key, |text| {
            let text = trim(text);
            let digits = text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text);
            // Rust reads words as well: `inf`, `nan`.
            let is_number = digits.ends_with(|c: char| c.is_ascii_digit() || c == '.');
            let number = digits.parse().ok().filter(|_| is_number);
            number.ok_or_else(|| format!("it must be {what}"))
        })
    }

    /// One of a few words.
    pub fn one_of<'a>(&self, key: &str, words: &[&'a str]) -> Result<Option<&'a str>, SettingError> {
        self.read(key, |text| {
            let found = words.iter().find(|word| **word == text).copied();
            found.ok_or_else(|| format!("it must be one of {}", words.join(", ")))
        })
    }

    /// An error about a key's value. The problem says what is allowed: `it must be …`.
    pub fn refuse(&self, key: &str, problem: impl AsRef<str>) -> SettingError {
        SettingError::new(key, self.get(key), self.origin(key), problem.as_ref())
    }

    fn read<T>(
        &self,
        key: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, SettingError> {
        let Some(text) = self.get(key) else { return Ok(None) };
        parse(text).map(Some).map_err(|problem| self.refuse(key, problem))
    }
}

/// A setting as Spark prints it for people: `(key,value)`, a secret's value left out.
pub fn shown_redacted(key: &str, value: &str) -> String {
    if error::is_secret(key) || error::is_secret(value) {
        return format!("({key},*********(redacted))");
    }
    // Others are shown as Spark shows them.
    let is_ours = [keys::SERVER_URI, keys::SERVER_INTERNAL_URI].contains(&key);
    let value = if is_ours { error::without_userinfo(value) } else { value.into() };
    format!("({key},{value})")
}

fn boolean(text: &str) -> Result<bool, String> {
    match text {
        text if text.eq_ignore_ascii_case("true") => Ok(true),
        text if text.eq_ignore_ascii_case("false") => Ok(false),
        _ => Err("it must be true or false".to_owned()),
    }
}

/// What `JavaUtils.byteStringAs` reads.
const SIZES: &str = "it must be a whole number with a unit, such as 512m or 2g (units: b, k, m, g, t, p; from Spark 4.2 on \
                     Ki, Mi, Gi, Ti, Pi as well)";

/// `Gi` and `GiB`, which are sizes elsewhere, and not to the Spark of every driver.
fn has_binary_unit(text: &str) -> bool {
    trim(text).to_ascii_lowercase().trim_end_matches('b').ends_with('i')
}

impl fmt::Debug for SparkConf {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SparkConf").field("keys", &self.settings.keys()).finish_non_exhaustive()
    }
}
