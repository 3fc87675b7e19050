//! Why what a submission needs is not on the staging server.

use super::BundleKind;
use crate::advice::{Named, advice, and_advice};
use crate::left::Left;
use cloakroom_transfer::client::{Failure, GivenUp, ServerAddress, SetupError, StageError};

/// Files that were not staged, or are not there any more. No pod was made.
#[derive(Debug, thiserror::Error)]
pub enum StagingError {
    /// No client.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// An upload failed.
    #[error("the {what} were not staged: {}{}", why.advised(|failure| advice(failure, *named)), if left.is_empty() && why.may_be_kept() { String::new() } else { and(left) })]
    Upload {
        /// Which bundle.
        what: BundleKind,
        /// Why. It is in the text, and no source that would be told once more.
        why: StageError,
        /// How the server was given.
        named: Named,
        /// What is left, or may be.
        left: Vec<Left>,
    },
    /// Somebody asked for it.
    #[error("stopped before the application was submitted{}", and(left))]
    Stopped {
        /// What is left, or may be.
        left: Vec<Left>,
    },
    /// A ticket that was good is not any more.
    #[error(
        "the {what} were staged as {id} and are no longer to be had at {server}: {failure}: was the server replaced, or \
         does its data not last? Submit again{}",
        and(left)
    )]
    Lost {
        /// Which bundle.
        what: BundleKind,
        /// The resource.
        id: String,
        /// Where.
        server: ServerAddress,
        /// What it said.
        failure: Failure,
        /// What is left, or may be.
        left: Vec<Left>,
    },
    /// Nobody says whether a ticket that was good still is.
    #[error(
        "the {what} were staged as {id}, and {server} does not say whether they are still there: {given_up}{}{}",
        and_advice(&given_up.failure, *named),
        and(left)
    )]
    Unchecked {
        /// Which bundle.
        what: BundleKind,
        /// The resource.
        id: String,
        /// Where.
        server: ServerAddress,
        /// What happened instead.
        given_up: GivenUp,
        /// How the server was given.
        named: Named,
        /// What is left, or may be.
        left: Vec<Left>,
    },
}

impl StagingError {
    /// Whether it is so because somebody asked for it.
    pub fn is_stopped(&self) -> bool {
        matches!(self, Self::Stopped { .. })
    }

    /// Says what is left as well.
    #[must_use]
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
