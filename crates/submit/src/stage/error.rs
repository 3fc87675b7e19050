//! Why the files of a submission are not on the staging server.

use super::BundleKind;
use crate::left::Left;
use cloakroom_reach::{NamedBy, ServerPlace, advice, and_advice};
use cloakroom_transfer::client::{Failure, GivenUp, SetupError, StageError};

/// Files were not staged, or are no longer on the server. No pod was created.
#[derive(Debug, thiserror::Error)]
pub enum StagingError {
    /// There is no way to the server.
    #[error(transparent)]
    NoWay(#[from] NoWay),
    /// An upload failed.
    #[error("the {what} were not staged: {}{}", why.advised(|failure| advice(failure, *named)), if left.is_empty() && why.may_be_kept() { String::new() } else { and(left) })]
    Upload {
        what: BundleKind,
        /// The failure. The message has it already, so it is no `#[source]`.
        why: StageError,
        named: NamedBy,
        left: Vec<Left>,
    },
    /// The user stopped the submission.
    #[error("stopped before the application was submitted{}", and(left))]
    Stopped { left: Vec<Left> },
    /// The server no longer has a bundle that it had acknowledged.
    #[error(
        "the {what} were staged as {id}, and {server} no longer has them: {failure}: was the server replaced, or is its \
         data folder not persistent? Submit again{}",
        and(left)
    )]
    Lost { what: BundleKind, id: String, server: ServerPlace, failure: Failure, left: Vec<Left> },
    /// The server did not answer whether it still has a bundle.
    #[error(
        "the {what} were staged as {id}, and {server} does not say whether they are still there: {given_up}{}{}",
        and_advice(&given_up.failure, *named),
        and(left)
    )]
    Unchecked {
        what: BundleKind,
        id: String,
        server: ServerPlace,
        given_up: GivenUp,
        named: NamedBy,
        left: Vec<Left>,
    },
}

/// No request can be sent to the server.
#[derive(Debug, thiserror::Error)]
pub enum NoWay {
    /// The HTTP client cannot be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The API server does not lead to the Service.
    #[error("{service} cannot be reached: {failure}")]
    Service { service: String, failure: Box<Failure> },
}

impl StagingError {
    /// Whether the user stopped the submission.
    pub fn is_stopped(&self) -> bool {
        matches!(self, Self::Stopped { .. })
    }

    /// Adds to what is still on the server.
    pub fn with_left(mut self, more: Vec<Left>) -> Self {
        if let Self::Upload { left, .. }
        | Self::Stopped { left }
        | Self::Lost { left, .. }
        | Self::Unchecked { left, .. } = &mut self
        {
            left.extend(more);
        }
        self
    }
}

fn and(left: &[Left]) -> String {
    match left {
        [] => " (nothing is left on the server)".to_owned(),
        left => {
            let each: Vec<String> = left.iter().map(Left::to_string).collect();
            format!(" (still there: {})", each.join("; "))
        }
    }
}
