//! The request of a submission, with the machine that it comes from.

use super::submitter::Submitter;
use crate::advice::Named;
use cloakroom_spark::SubmitArguments;
use cloakroom_transfer::client::{RetryPolicy, ServerAddress, TrustedCertificates};

/// An application to submit.
#[derive(Clone)]
pub struct Request {
    /// The application and its settings.
    pub arguments: SubmitArguments,
    /// The submitting machine and its user.
    pub submitter: Submitter,
    /// Whether the plan may ask the staging server.
    pub asking: Asking,
}

/// Whether the plan may ask the staging server for the init-container's image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    /// The server is asked if no setting names the image.
    Allowed {
        /// The largest number of attempts, whatever the settings say. `None` sets no limit.
        attempts: Option<u32>,
    },
    /// A dry run: no server is asked, and a placeholder stands for the image.
    Preview,
}

/// A staging server that has to be asked for the init-container's image.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Its address for this machine.
    pub server: ServerAddress,
    /// How long to wait for a server that does not answer.
    pub policy: RetryPolicy,
    /// Where the user has named the server.
    pub named: Named,
    /// Certificates to trust in addition to the system's.
    pub trusted: TrustedCertificates,
}
