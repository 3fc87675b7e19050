//! What is asked for, with the machine that it is asked on.

use super::submitter::Submitter;
use crate::advice::Named;
use cloakroom_spark::SubmitArguments;
use cloakroom_transfer::client::{RetryPolicy, ServerAddress, TrustedCertificates};

/// An application to submit.
#[derive(Clone)]
pub struct Request {
    /// The application and its settings.
    pub arguments: SubmitArguments,
    /// Who submits, and from where.
    pub submitter: Submitter,
    /// Whether the staging server may be asked.
    pub asking: Asking,
}

/// Whether the staging server may be asked for what only it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    /// It is.
    Allowed {
        /// How many times to ask at most, whatever the settings say.
        attempts: Option<u32>,
    },
    /// A preview asks no server, and says what it does not know.
    Preview,
}

/// A staging server that has to be asked for the init-container's image.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// As this machine reaches it.
    pub server: ServerAddress,
    /// How long it is waited for.
    pub policy: RetryPolicy,
    /// How it was given.
    pub named: Named,
    /// What is trusted beside the system's certificates.
    pub trusted: TrustedCertificates,
}
