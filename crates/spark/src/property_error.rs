//! The errors about values of a properties file. Each names the file, the line and the key.

use std::fmt;

use thiserror::Error;

use super::Properties;

/// A position in a properties file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    file: String,
    line: Option<usize>,
}

impl Position {
    /// The position where a key is set. If it is not set, the place is the file without a line.
    pub fn of(properties: &Properties, key: &str) -> Self {
        Self { file: properties.file().to_owned(), line: properties.line_of(key) }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(formatter, "{}, line {line}", self.file),
            None => self.file.fmt(formatter),
        }
    }
}

/// The file was parsed, but its values are not usable.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PropertyError {
    /// A value that its key cannot have.
    #[error("{position}: `{key}`: {reason}")]
    Value {
        /// The position of the key.
        position: Position,
        key: &'static str,
        /// The fault of the value, and the accepted forms.
        reason: String,
    },
    /// Two keys are set, and only one of them may be.
    #[error("{position}: `{key}` excludes `{other}`, which is set as well; remove one of them")]
    Exclusive {
        /// The position of the first key.
        position: Position,
        /// The first key.
        key: &'static str,
        /// The second key.
        other: &'static str,
    },
    /// A key is set without another one that it needs.
    #[error("{position}: `{key}` is set without `{missing}`; set both or neither")]
    Incomplete {
        /// The position of the key.
        position: Position,
        /// The key that is set.
        key: &'static str,
        /// The key that is missing.
        missing: &'static str,
    },
    /// TLS is on, but there is no key and no certificate.
    #[error(
        "{position}: `{key}` is true, and no key and certificate are given; \
         set `{}` and `{}` to PEM files, or `{key}` to false",
        super::keys::TLS_KEY_PEM,
        super::keys::TLS_SERVER_CERT_PEM
    )]
    TlsWithoutCertificate {
        /// The position of the key that enables TLS.
        position: Position,
        /// The key that enables TLS.
        key: &'static str,
    },
    /// A Java key store or trust store, which must be converted first.
    #[error(
        "{position}: `{key}` is a Java store, and only PEM files are read here; convert it with\n{commands}\n\
         then {next}, and remove `{key}`"
    )]
    JavaStore {
        /// The position of the key.
        position: Position,
        /// The key that names the store.
        key: &'static str,
        /// The shell commands that convert the store, one on each line.
        commands: String,
        /// Which keys to set to the converted files.
        next: String,
    },
}
