//! The errors of uploads, and of access by a ticket.

use jiff::Timestamp;

use super::NoRoom;
use crate::ledger::{LEASE_TIME, LedgerError, UnreadableRow};
use crate::store::StoreError;
use cloakroom_core::resource::{DeletionReason, Ending, Holder, ResourceId, State};
use cloakroom_core::size::format_size;

/// An upload, a deletion and a sweep use the same words. A later sweep finishes the steps that were begun.
const NOT_WRITABLE: &str = "the server cannot write to its data directory: the disk is read-only, or it fails; what is \
    staged can still be downloaded; the server's log has the cause, and its admin must make the disk writable again";

/// An upload was refused, or failed. Nothing of it is kept.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The bundle is larger than `--max-resource-size`.
    #[error("the bundle is larger than this server takes: at most {} (--max-resource-size); leave out what the image can have, or ask its admin for more", format_size(*.limit))]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// There is no room for the bundle.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// The disk became full while the bytes arrived.
    #[error(
        "the server's disk is full: nothing of this upload was kept; free some space or give the server a larger volume"
    )]
    DiskFull(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The disk can hold no more files, whatever its free room is.
    #[error(
        "the server's disk can hold no more files, because its file system has no inode left: nothing of this upload was \
         kept; delete what is no longer used, or give the server a file system with more inodes"
    )]
    OutOfInodes(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The bytes have another digest than the client announced.
    #[error(
        "the bytes that arrived have another SHA-256 than the digest header announced: nothing was kept; send them again"
    )]
    DigestMismatch,
    /// The number of bytes is not the announced one.
    #[error("{received} bytes arrived where {announced} were announced: nothing was kept; send them again")]
    WrongLength {
        /// The length in the headers.
        announced: u64,
        /// The number of bytes that came.
        received: u64,
    },
    /// The upload had lost its lease before it could be acknowledged.
    #[error(
        "the server gave the upload up, because the server itself stood still for more than {} seconds: nothing was \
         kept; send it again", LEASE_TIME.as_secs()
    )]
    GivenUp,
    /// The disk is read-only, or it fails.
    #[error("{}", NOT_WRITABLE)]
    NotWritable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The store failed in another way.
    #[error("the bundle could not be stored")]
    Store(#[source] StoreError),
    /// The ledger failed in another way.
    #[error("the resource could not be written down")]
    Ledger(#[source] LedgerError),
}

impl From<StoreError> for UploadError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full { .. } => Self::DiskFull(error.into()),
            StoreError::OutOfInodes { .. } => Self::OutOfInodes(error.into()),
            StoreError::ReadOnly { .. } => Self::NotWritable(error.into()),
            error => Self::Store(error),
        }
    }
}

impl From<LedgerError> for UploadError {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Full => Self::DiskFull(error.into()),
            LedgerError::NotWritable(_) => Self::NotWritable(error.into()),
            LedgerError::GivenUp { .. } => Self::GivenUp,
            LedgerError::NoRoom(shortage) => Self::NoRoom(shortage.into()),
            error => Self::Ledger(error),
        }
    }
}

/// A ticket does not give access to its resource.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// There is no resource of that id.
    #[error("no such resource")]
    NotFound,
    /// The resource has another secret.
    #[error("not the secret of this resource")]
    WrongSecret,
    /// The resource was deleted.
    #[error("resource {id} was deleted{}", when_and_why(*.deleted))]
    Gone {
        /// The id of the resource.
        id: ResourceId,
        /// When and why it was deleted; `None` if the tombstone does not say so in a form that this version knows.
        deleted: Option<(Timestamp, DeletionReason)>,
    },
    /// The largest number of downloads is in flight.
    #[error(
        "this server is sending as many downloads as it is allowed to (--max-concurrent-downloads): try again in a moment"
    )]
    TooManyDownloads,
    /// The largest number of downloads of one holder is in flight.
    #[error(
        "{holder} has {limit} downloads going on, which is its share (--share) of --max-concurrent-downloads: try again \
         in a moment"
    )]
    TooManyDownloadsOf {
        /// The holder of these downloads.
        holder: Holder,
        /// The number of its share.
        limit: u64,
    },
    /// The ledger has the resource, but the store does not have its bytes.
    #[error("the bytes of resource {id} are missing from the data directory")]
    BytesLost {
        /// The id of the resource.
        id: ResourceId,
    },
    /// The disk is read-only, or it fails.
    #[error("{}", NOT_WRITABLE)]
    NotWritable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The store failed in another way.
    #[error("the bundle could not be read")]
    Store(#[source] StoreError),
    /// The row has a value that this version cannot read.
    #[error(
        "this version of the server cannot read what the ledger has of resource {id} ({column}), so it is set aside, and its \
         bytes are kept: stage it again; the server's admin can start a newer version again, if one has run on this data \
         directory, or remove the resource (cloakroom rm)"
    )]
    SetAside {
        /// The id of the resource.
        id: ResourceId,
        /// The column that cannot be read.
        column: &'static str,
    },
    /// The disk is full, so the ledger cannot grow.
    #[error(
        "the server's disk is full, so that the change could not be written down: free some space or give the server a \
         larger volume, and try again"
    )]
    DiskFull,
    /// The ledger failed in another way.
    #[error("the ledger could not be read or written")]
    Ledger(#[source] LedgerError),
}

impl AccessError {
    /// The error for a resource that was deleted.
    pub(super) fn gone(id: ResourceId, ending: Ending) -> Self {
        Self::Gone { id, deleted: Some((ending.at, ending.reason)) }
    }

    /// Whether the error concerns only one resource. Work on many resources then continues with the others.
    pub fn is_of_one(&self) -> bool {
        match self {
            Self::Store(error) => !matches!(error, StoreError::Replaced(_) | StoreError::Stuck),
            _ => matches!(self, Self::SetAside { .. } | Self::Ledger(LedgerError::Refused(_))),
        }
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
            // A deleted resource is gone, whatever else in its row cannot be read.
            LedgerError::Unreadable(UnreadableRow {
                id,
                state: Some(State::Deleting | State::Deleted),
                ..
            }) => Self::Gone { id, deleted: None },
            LedgerError::Unreadable(UnreadableRow { id, column, .. }) => Self::SetAside { id, column },
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
