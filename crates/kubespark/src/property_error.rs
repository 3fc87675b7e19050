//! The errors about values of a properties file. Each names the file, the line and the key.

use std::fmt;

use thiserror::Error;

use cloakroom_spark::Properties;

/// A position in a properties file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePosition {
    file: String,
    line: Option<usize>,
}

impl FilePosition {
    /// The position where a key is set. If it is not set, the place is the file without a line.
    pub fn find(properties: &Properties, key: &str) -> Self {
        Self { file: properties.file().to_owned(), line: properties.line_of(key) }
    }
}

impl fmt::Display for FilePosition {
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
    Value { position: FilePosition, key: &'static str, reason: String },
    /// Two keys are set, and only one of them may be.
    #[error("{position}: `{key}` excludes `{other}`, which is set as well; remove one of them")]
    Exclusive { position: FilePosition, key: &'static str, other: &'static str },
    /// A key is set without another one that it needs.
    #[error("{position}: `{key}` is set without `{missing}`; set both or neither")]
    Incomplete { position: FilePosition, key: &'static str, missing: &'static str },
    /// TLS is on, but there is no key and no certificate.
    #[error(
        "{position}: `{key}` is true, and no key and certificate are given; \
         set `{}` and `{}` to PEM files, or `{key}` to false",
        cloakroom_spark::keys::TLS_KEY_PEM,
        cloakroom_spark::keys::TLS_SERVER_CERT_PEM
    )]
    TlsWithoutCertificate { position: FilePosition, key: &'static str },
    /// A Java key store or trust store, which must be converted first.
    #[error(
        "{position}: `{key}` is a Java store, and only PEM files are read here; convert it with\n{commands}\n\
         then {next}, and remove `{key}`"
    )]
    JavaStore { position: FilePosition, key: &'static str, commands: String, next: String },
}
