//! Why a submission, its following or a handover failed.

use std::error::Error;

use serde::{Serialize, Serializer};
use tokio::task::JoinError;

use crate::create::{CreateError, Undo};
use crate::file_copy::FileCopyError;
use crate::follow::FollowError;
use crate::stage::StagingError;
use cloakroom_core::text::chain;

/// The failure of a use case. Everything that was created is gone, or the error says what is left.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Objects could not be created.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// Files could not be staged.
    #[error(transparent)]
    Stage(#[from] StagingError),
    /// A file could not be copied.
    #[error(transparent)]
    FileCopy(#[from] FileCopyError),
    /// The copying task itself failed.
    #[error("the files were not copied")]
    NotCopied(#[source] JoinError),
    /// The application continues to run, but can no longer be followed.
    #[error(transparent)]
    Follow(#[from] FollowError),
    /// The receiver of a handover failed. Everything was taken back.
    #[error(transparent)]
    NotTaken(NotTaken),
    /// The receiver of a handover failed, and some objects could not be deleted.
    #[error("not everything was taken back{undo}")]
    NotTakenBack {
        undo: Undo,
        /// The receiver's error.
        #[source]
        why: NotTaken,
    },
}

/// The error of the receiver of a handover, such as a file that cannot be written.
pub type NotTaken = Box<dyn Error + Send + Sync>;

/// The part of the use case that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failed {
    /// None: the user stopped it.
    Stopped,
    /// Uploading files to the staging server.
    Staging,
    /// Copying files to `spark.kubernetes.file.upload.path`.
    Copying,
    /// Creating objects.
    Creating,
    /// Following the application, which continues to run.
    Following,
    /// Handing the templates and settings over.
    HandingOver,
}

impl RunError {
    /// The part that failed.
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

    /// Whether the user stopped it.
    pub fn is_stopped(&self) -> bool {
        self.kind() == Failed::Stopped
    }
}

/// An error is serialised as its kind and its message for people.
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
