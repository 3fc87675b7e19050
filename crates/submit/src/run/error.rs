//! Why an application does not run, or is not known to have ended.

use tokio::task::JoinError;

use crate::create::CreateError;
use crate::follow::FollowError;
use crate::stage::StagingError;
use crate::upload::UploadError;

/// A use case that did not come to its end. What had been made is gone, or the error says what is left.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The application was not created.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// Files were not staged.
    #[error(transparent)]
    Stage(#[from] StagingError),
    /// A file was not copied.
    #[error(transparent)]
    Upload(#[from] UploadError),
    /// Files were not copied, and not for the sake of one of them.
    #[error("the files were not copied")]
    NotCopied(#[source] JoinError),
    /// The application runs on, and is not seen any more.
    #[error(transparent)]
    Follow(#[from] FollowError),
}

impl RunError {
    /// Whether it is so because it was asked for.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        match self {
            Self::Create(error) => error.is_stopped(),
            Self::Stage(error) => error.is_stopped(),
            Self::Upload(error) => error.is_stopped(),
            Self::NotCopied(_) | Self::Follow(_) => false,
        }
    }
}
