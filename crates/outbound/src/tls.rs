//! Failures of TLS, in words for users.

use std::fmt;

use cloakroom_core::text::one_line;
use rustls::{AlertDescription, CertificateError, Error};

use crate::trust::NO_ROOTS;

/// The reason why an answer cannot be read that is not HTTP.
pub const NO_HTTP: &str = "the server there does not speak HTTP (perhaps it speaks TLS: https)";

/// The reason why TLS did not begin, or why it broke.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsFailure {
    /// No trusted CA has signed the certificate.
    #[error("its TLS certificate is not signed by a CA that is trusted here")]
    UnknownIssuer,
    /// The certificate is for other names.
    #[error("its TLS certificate is for another name ({0})")]
    WrongName(String),
    /// The certificate has another fault; it has expired, for example.
    #[error("TLS failed ({0})")]
    Certificate(String),
    /// It is not the certificate.
    #[error("TLS failed ({0})")]
    Other(String),
}

impl From<&Error> for TlsFailure {
    fn from(error: &Error) -> Self {
        /// No text of rustls is longer.
        const LONGEST: usize = 1000;
        let words =
            |error: &dyn fmt::Display| one_line(&error.to_string(), LONGEST).trim_end_matches('.').to_owned();
        match error {
            // The signature is bad if another CA of the same name is trusted, as of another cluster.
            Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
                Self::UnknownIssuer
            }
            Error::InvalidCertificate(
                reason
                @ (CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }),
            ) => Self::WrongName(words(reason)),
            Error::InvalidCertificate(reason) => Self::Certificate(words(reason)),
            Error::InvalidMessage(_) => {
                Self::Other("the server there does not speak TLS; perhaps http".to_owned())
            }
            Error::AlertReceived(AlertDescription::CertificateRequired) => {
                Self::Other("the server there wants a client certificate, and none was sent".to_owned())
            }
            Error::General(why) if why == NO_ROOTS => Self::Other(format!("{NO_ROOTS}, and none was given")),
            other => Self::Other(words(other)),
        }
    }
}
