//! Why staging or access was refused.

use jiff::Timestamp;

use super::NoRoom;
use crate::ledger::{LEASE_TIME, LedgerError, UnreadableRow};
use crate::store::StoreError;
use cloakroom_core::resource::{DeletionReason, Ending, Holder, ResourceId, RowName, State};
use cloakroom_core::size::format_size;

/// What an upload, a deletion and a sweep say alike. What was done before it is finished by a later sweep.
const NOT_WRITABLE: &str = "the server cannot write to its data directory: the disk is read-only, or it fails; what is \
    staged can still be downloaded; the server's log has the cause, and its admin must make the disk writable again";

/// An upload was refused, or failed; nothing of it is kept.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// Larger than one bundle may be.
    #[error("the bundle is larger than this server takes: at most {} (--max-resource-size); leave out what the image can have, or ask its admin for more", format_size(*.limit))]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// No room.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// The disk filled up while the bytes arrived.
    #[error(
        "the server's disk is full: nothing of this upload was kept; free some space or give the server a larger volume"
    )]
    DiskFull(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The bytes are not the announced ones.
    #[error(
        "the bytes that arrived have another SHA-256 than the digest header announced: nothing was kept; send them again"
    )]
    DigestMismatch,
    /// The number of bytes is not the announced one.
    #[error("{received} bytes arrived where {announced} were announced: nothing was kept; send them again")]
    WrongLength {
        /// What the headers said.
        announced: u64,
        /// What came.
        received: u64,
    },
    /// It was slower than an upload may be while another one waits for its place.
    #[error(
        "the upload was ended after {received} bytes: it took longer than 5 minutes and a second for each MiB, and another \
         upload needed its place; send it again over a faster connection"
    )]
    Overdue {
        /// How many bytes had come.
        received: u64,
    },
    /// It had lost its lease when it was to be acknowledged.
    #[error(
        "the server gave the upload up, because it was held up itself for more than {} seconds: nothing was kept; send it \
         again", LEASE_TIME.as_secs()
    )]
    GivenUp,
    /// The disk is read-only, or fails.
    #[error("{}", NOT_WRITABLE)]
    NotWritable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The store failed.
    #[error("the bundle could not be stored")]
    Store(#[source] StoreError),
    /// The ledger failed.
    #[error("the resource could not be written down")]
    Ledger(#[source] LedgerError),
}

impl From<StoreError> for StageError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full { .. } => Self::DiskFull(error.into()),
            StoreError::ReadOnly { .. } => Self::NotWritable(error.into()),
            error => Self::Store(error),
        }
    }
}

impl From<LedgerError> for StageError {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Full => Self::DiskFull(error.into()),
            LedgerError::NotWritable(_) => Self::NotWritable(error.into()),
            LedgerError::GivenUp { .. } => Self::GivenUp,
            error => Self::Ledger(error),
        }
    }
}

/// A ticket does not open anything.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// No resource of that id.
    #[error("no such resource")]
    NotFound,
    /// There is one, but this is not its secret.
    #[error("not the secret of this resource")]
    WrongSecret,
    /// It was deleted.
    #[error("resource {id} was deleted{}", when_and_why(*.deleted))]
    Gone {
        /// Which one.
        id: RowName,
        /// When and why, if what is left of it says so in words that this version knows.
        deleted: Option<(Timestamp, DeletionReason)>,
    },
    /// As many downloads as allowed are going on.
    #[error(
        "this server is sending as many downloads as it is allowed to (--max-concurrent-downloads): try again in a moment"
    )]
    TooManyDownloads,
    /// As many downloads as one holder may have are going on.
    #[error(
        "{holder} has {limit} downloads going on, which is its share (--share) of --max-concurrent-downloads: try again \
         in a moment"
    )]
    TooManyDownloadsOf {
        /// Whose they are.
        holder: Holder,
        /// Its share.
        limit: u64,
    },
    /// The ledger says that there are bytes, the store has none.
    #[error("the bytes of resource {id} are missing from the data directory")]
    BytesLost {
        /// Which one.
        id: ResourceId,
    },
    /// The disk is read-only, or fails.
    #[error("{}", NOT_WRITABLE)]
    NotWritable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The store failed.
    #[error("the bundle could not be read")]
    Store(#[source] StoreError),
    /// Its row has something that this version does not know.
    #[error(
        "this version of the server cannot read what the ledger has of resource {id} ({column}), so it is set aside, and its \
         bytes are kept: stage it again; the server's admin can start a newer version again, if one has run on this data \
         directory, or remove the resource (cloakroom rm)"
    )]
    SetAside {
        /// Which one.
        id: RowName,
        /// What cannot be read.
        column: &'static str,
    },
    /// The ledger cannot grow.
    #[error(
        "the server's disk is full, so that the change could not be written down: free some space or give the server a \
         larger volume, and try again"
    )]
    DiskFull,
    /// The ledger failed.
    #[error("the ledger could not be read or written")]
    Ledger(#[source] LedgerError),
}

impl AccessError {
    /// It was deleted, and this is what is left.
    pub(super) fn gone(id: ResourceId, ending: Ending) -> Self {
        Self::Gone { id: id.into(), deleted: Some((ending.at, ending.reason)) }
    }

    /// Whether it is the matter of one resource, and says nothing of the others: what goes through many goes on.
    pub fn is_of_one(&self) -> bool {
        matches!(self, Self::Store(_) | Self::SetAside { .. } | Self::Ledger(LedgerError::Refused(_)))
    }
}

fn when_and_why(deleted: Option<(Timestamp, DeletionReason)>) -> String {
    match deleted {
        Some((at, reason)) => format!(" at {at} ({reason})"),
        None => "; when and why is not known to this version of the server".to_owned(),
    }
}

impl From<LedgerError> for AccessError {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Full => Self::DiskFull,
            LedgerError::NotWritable(_) => Self::NotWritable(error.into()),
            // Of what is deleted nothing else matters.
            LedgerError::Unreadable(UnreadableRow {
                name,
                state: Some(State::Deleting | State::Deleted),
                ..
            }) => Self::Gone { id: name, deleted: None },
            LedgerError::Unreadable(UnreadableRow { name, column, .. }) => {
                Self::SetAside { id: name, column }
            }
            error => Self::Ledger(error),
        }
    }
}

impl From<StoreError> for AccessError {
    fn from(error: StoreError) -> Self {
        if matches!(error, StoreError::ReadOnly { .. }) {
            Self::NotWritable(error.into())
        } else {
            Self::Store(error)
        }
    }
}
