//! The request of a submission, with the machine that it comes from.

use super::error::PlanError;
use super::submitter::Submitter;
use cloakroom_core::protocol::WireName;
use cloakroom_core::protocol::v1::UploadAuthKind;
use cloakroom_reach::{NamedBy, ServerPlace, ServerService};
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

/// A staging server that has to be asked: for the init-container's image, and for its address for pods if this machine
/// knows only its Service.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Where it is, from this machine.
    pub server: ServerPlace,
    /// How long to wait for a server that does not answer.
    pub policy: RetryPolicy,
    /// Where the user has named the server.
    pub named: NamedBy,
    /// Certificates to trust in addition to the system's.
    pub trusted: TrustedCertificates,
    /// The refusal of a file that needs this server, if it is the default one.
    pub no_way: Option<Box<PlanError>>,
}

/// A staging server's answer to a [`Question`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The image that it advertises for init-containers.
    pub image: Option<String>,
    /// The credential that uploads need; `None` if the server does not tell.
    pub upload_auth: Option<WireName<UploadAuthKind>>,
    /// Of a server behind a Service: the Service with what is known of it now, and how URLs begin by which pods reach it.
    pub found: Option<(ServerService, ServerAddress)>,
}
