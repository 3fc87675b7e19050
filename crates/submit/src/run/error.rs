//! Why an application does not run, is not known to have ended, or was not handed over.

use std::error::Error;

use serde::{Serialize, Serializer};
use tokio::task::JoinError;

use crate::create::{CreateError, Undo};
use crate::file_copy::FileCopyError;
use crate::follow::FollowError;
use crate::stage::StagingError;
use cloakroom_core::text::chain;

/// A use case that did not come to its end. What had been made is gone, or the error says what is left.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Objects were not made.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// Files were not staged.
    #[error(transparent)]
    Stage(#[from] StagingError),
    /// A file was not copied.
    #[error(transparent)]
    FileCopy(#[from] FileCopyError),
    /// Files were not copied, and not for the sake of one of them.
    #[error("the files were not copied")]
    NotCopied(#[source] JoinError),
    /// The application runs on, and is not seen any more.
    #[error(transparent)]
    Follow(#[from] FollowError),
    /// What was handed over was not taken. Everything was taken back.
    #[error(transparent)]
    NotTaken(NotTaken),
    /// The same, but for some of the objects.
    #[error("not everything was taken back{undo}")]
    NotTakenBack {
        /// What is left.
        undo: Undo,
        /// Why it was not taken.
        #[source]
        why: NotTaken,
    },
}

/// Why the receiver did not take what was handed over.
pub type NotTaken = Box<dyn Error + Send + Sync>;

/// What a use case failed at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failed {
    /// Nothing: it was asked to stop.
    Stopped,
    /// Bringing files to the staging server.
    Staging,
    /// Copying files.
    Copying,
    /// Making objects.
    Creating,
    /// Following the application, which runs on.
    Following,
    /// Handing over.
    HandingOver,
}

impl RunError {
    /// What it failed at.
    pub fn kind(&self) -> Failed {
        let is_stopped = match self {
            Self::Create(error) => error.is_stopped(),
            Self::Stage(error) => error.is_stopped(),
            Self::FileCopy(error) => error.is_stopped(),
            _ => false,
        };
        match self {
            _ if is_stopped => Failed::Stopped,
            Self::Create(_) => Failed::Creating,
            Self::Stage(_) => Failed::Staging,
            Self::FileCopy(_) | Self::NotCopied(_) => Failed::Copying,
            Self::Follow(_) => Failed::Following,
            Self::NotTaken(_) | Self::NotTakenBack { .. } => Failed::HandingOver,
        }
    }

    /// Whether it is so because it was asked for.
    pub fn is_stopped(&self) -> bool {
        self.kind() == Failed::Stopped
    }
}

/// The kind, and the message that people read.
impl Serialize for RunError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Data {
            kind: Failed,
            message: String,
        }
        Data { kind: self.kind(), message: chain(self) }.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn an_error_is_its_kind_and_its_message_as_data() {
        let source = io::Error::other("disk full");
        let failed = FileCopyError::Failed { from: "/a".into(), to: "/b".into(), source };
        for (error, expected) in [
            (failed.into(), r#"{"kind":"copying","message":"cannot copy /a to /b: disk full"}"#),
            (
                StagingError::Stopped { left: Vec::new() }.into(),
                r#"{"kind":"stopped","message":"stopped before the application was submitted (nothing is left on the server)"}"#,
            ),
            (RunError::NotTaken("no paper".into()), r#"{"kind":"handing-over","message":"no paper"}"#),
        ] {
            assert_eq!(serde_json::to_string::<RunError>(&error).unwrap(), expected);
        }
    }
}
