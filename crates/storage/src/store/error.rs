//! The errors of a store.

use crate::Replaced;

/// The error of a store as its adapter knows it, for the log.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// The store could not do what it was asked. Its kind decides what is done about that.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It cannot be reached, it does not answer, or it takes no change at all. Other calls would fail as well.
    #[error("the store cannot be used")]
    Unavailable(#[source] Cause),
    /// It takes no further call at the moment.
    #[error("the store takes no further call at the moment")]
    Throttled(#[source] Cause),
    /// The upload had memory for longer than others could wait.
    #[error(
        "this upload was too slow while others waited for the memory that it had (--store-memory): try again, over a faster \
         connection if there is one"
    )]
    TooSlow,
    /// It does not allow this call.
    #[error("the store does not allow it")]
    Denied(#[source] Cause),
    /// It has no blob of this key, or one of another size.
    #[error("the store does not have this blob")]
    Missing(#[source] Cause),
    /// It has no room.
    #[error("the store takes no more, because {what}")]
    Full {
        /// The limit that was reached, as messages name it: `the disk is full`.
        what: &'static str,
        /// The failure.
        #[source]
        source: Cause,
    },
    /// It failed in another way.
    #[error("the store failed")]
    Fault(#[source] Cause),
    /// The store is not where it was any more.
    #[error(transparent)]
    Replaced(#[from] Replaced),
    /// The resource was deleted while its bytes were sent, and the time for that is over.
    #[error("the resource was deleted, and this download took longer than --deletion-wait after that")]
    Deleted,
    /// The process is ending, so the work was interrupted.
    #[error("the server is stopping")]
    Stopping,
}
