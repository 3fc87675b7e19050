//! What can be wrong with the values of a properties file, said with file, line and key.

use std::fmt;

use thiserror::Error;

use super::Properties;

/// Where in a properties file something stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    file: String,
    line: Option<usize>,
}

impl Place {
    /// Where a key was set; the file alone where it was not.
    #[must_use]
    pub fn of(properties: &Properties, key: &str) -> Self {
        Self { file: properties.file().to_owned(), line: properties.line_of(key) }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(formatter, "{}, line {line}", self.file),
            None => self.file.fmt(formatter),
        }
    }
}

/// A properties file that was read, and whose values make no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PropertyError {
    /// A value that its key cannot have.
    #[error("{place}: `{key}`: {reason}")]
    Value {
        /// Where it stands.
        place: Place,
        /// The key.
        key: &'static str,
        /// What is wrong with the value, and what would be accepted.
        reason: String,
    },
    /// Two keys of which only one may be set.
    #[error("{place}: `{key}` excludes `{other}`, which is set as well; remove one of them")]
    Exclusive {
        /// Where the first key stands.
        place: Place,
        /// The first key.
        key: &'static str,
        /// The second key.
        other: &'static str,
    },
    /// A key that means nothing without another.
    #[error("{place}: `{key}` is set without `{missing}`; set both or neither")]
    Incomplete {
        /// Where the key stands.
        place: Place,
        /// The key that is set.
        key: &'static str,
        /// The key that is not.
        missing: &'static str,
    },
    /// TLS was asked for, and there is nothing to serve it with.
    #[error(
        "{place}: `{key}` is true, and no key and certificate are given; \
         set `{}` and `{}` to PEM files, or `{key}` to false",
        super::keys::TLS_KEY_PEM,
        super::keys::TLS_SERVER_CERT_PEM
    )]
    TlsWithoutCertificate {
        /// Where TLS was asked for.
        place: Place,
        /// The key that asks for it.
        key: &'static str,
    },
    /// A Java key or trust store, which must be converted.
    #[error(
        "{place}: `{key}` is a Java store, and only PEM files are read here; convert it with\n{commands}\n\
         then {next}, and remove `{key}`"
    )]
    JavaStore {
        /// Where the store is named.
        place: Place,
        /// The key that names it.
        key: &'static str,
        /// The lines of shell that convert it, one by one.
        commands: String,
        /// Which keys take the converted files.
        next: String,
    },
}
