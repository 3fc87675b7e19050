//! Reads typed values from a properties file, and remembers which keys were read.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use super::{FilePosition, PropertyError};
use cloakroom_core::text::escaped;
use cloakroom_core::time::{TimeUnit, parse_duration};
use cloakroom_spark::Properties;
use cloakroom_spark::uri::DependencyUri;

/// The reader. At its end it warns about every key that was not read.
pub(super) struct Reader<'a> {
    properties: &'a Properties,
    asked: BTreeSet<&'static str>,
    warnings: Vec<String>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(properties: &'a Properties) -> Self {
        Self { properties, asked: BTreeSet::new(), warnings: Vec::new() }
    }

    /// The value of a key. An empty value counts as not set, because templates leave such lines behind.
    pub(super) fn text(&mut self, key: &'static str) -> Option<&'a str> {
        self.asked.insert(key);
        self.properties.get(key).filter(|value| !value.is_empty())
    }

    pub(super) fn boolean(&mut self, key: &'static str, default: bool) -> Result<bool, PropertyError> {
        match self.text(key) {
            None => Ok(default),
            Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
            Some(text) => {
                Err(self.invalid(key, format!("`{text}` is neither true nor false; write one of them")))
            }
        }
    }

    pub(super) fn port(&mut self, key: &'static str) -> Result<Option<u16>, PropertyError> {
        let Some(text) = self.text(key) else {
            return Ok(None);
        };
        let refuse = |_| {
            let reason = format!("`{text}` is not a port; write a whole number from 0 to 65535");
            self.invalid(key, reason)
        };
        text.parse().map(Some).map_err(refuse)
    }

    /// A time that is longer than zero.
    pub(super) fn duration(
        &mut self,
        key: &'static str,
        default_unit: TimeUnit,
    ) -> Result<Option<Duration>, PropertyError> {
        let Some(text) = self.text(key) else {
            return Ok(None);
        };
        match parse_duration(text, default_unit) {
            Ok(Duration::ZERO) => {
                Err(self
                    .invalid(key, format!("`{text}` leaves no time at all; write a longer one, such as 30m")))
            }
            Ok(duration) => Ok(Some(duration)),
            Err(error) => Err(self.invalid(key, error.to_string())),
        }
    }

    /// A path of this file system, with or without `file:` or `local:`. Inside a pod these mean the same.
    pub(super) fn path(&mut self, key: &'static str) -> Result<Option<PathBuf>, PropertyError> {
        let Some(text) = self.text(key) else {
            return Ok(None);
        };
        match DependencyUri::parse(text).map_err(|error| self.invalid(key, error.to_string()))? {
            DependencyUri::Submitter(file) | DependencyUri::Image(file) => {
                Ok(Some(file.whole_path().to_owned()))
            }
            remote => {
                let reason = format!("`{}` is not a file of this machine; write its path", remote.redacted());
                Err(self.invalid(key, reason))
            }
        }
    }

    /// The address of an HTTP server.
    pub(super) fn http_url(&mut self, key: &'static str) -> Result<Option<String>, PropertyError> {
        let Some(text) = self.text(key) else {
            return Ok(None);
        };
        match DependencyUri::parse(text).map_err(|error| self.invalid(key, error.to_string()))? {
            DependencyUri::Http(url) => Ok(Some(url.as_str().to_owned())),
            other => {
                let reason = format!(
                    "`{}` is not the address of a server; write one that begins with http:// or https://",
                    other.redacted()
                );
                Err(self.invalid(key, reason))
            }
        }
    }

    /// Refuses two keys that are both set.
    pub(super) fn exclusive(&self, key: &'static str, other: &'static str) -> Result<(), PropertyError> {
        if !self.is_set(key) || !self.is_set(other) {
            return Ok(());
        }
        Err(PropertyError::Exclusive { position: self.position(key), key, other })
    }

    /// Refuses one of two values without the other.
    pub(super) fn both_or_neither<A, B>(
        &self,
        (key, value): (&'static str, Option<A>),
        (other_key, other_value): (&'static str, Option<B>),
    ) -> Result<Option<(A, B)>, PropertyError> {
        let incomplete =
            |key, missing| PropertyError::Incomplete { position: self.position(key), key, missing };
        match (value, other_value) {
            (Some(value), Some(other)) => Ok(Some((value, other))),
            (None, None) => Ok(None),
            (Some(_), None) => Err(incomplete(key, other_key)),
            (None, Some(_)) => Err(incomplete(other_key, key)),
        }
    }

    pub(super) fn is_set(&self, key: &str) -> bool {
        self.properties.get(key).is_some_and(|value| !value.is_empty())
    }

    pub(super) fn position(&self, key: &str) -> FilePosition {
        FilePosition::find(self.properties, key)
    }

    pub(super) fn invalid(&self, key: &'static str, reason: String) -> PropertyError {
        PropertyError::Value { position: self.position(key), key, reason }
    }

    /// Warns that a key has no effect, if it is set.
    pub(super) fn ignored(&mut self, key: &'static str, why: &str) {
        if self.text(key).is_none() {
            return;
        }
        let position = self.position(key);
        self.warnings.push(format!("{position}: `{key}` is ignored: {why}"));
    }

    /// Returns all warnings, those about keys that were not read included.
    pub(super) fn finish(mut self, command: &str) -> Vec<String> {
        for property in self.properties.iter() {
            if !self.asked.contains(property.key) {
                self.warnings.push(format!(
                    "{}: `{}` is ignored: it has no meaning for {command}",
                    self.position(property.key),
                    escaped(property.key)
                ));
            }
        }
        self.warnings
    }
}
