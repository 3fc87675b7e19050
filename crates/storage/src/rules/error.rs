//! The errors of uploads, and of access by a ticket.

use jiff::Timestamp;

use super::NoRoom;
use crate::ledger::{LedgerError, UnreadableRow};
use crate::store::{Cause, StoreError};
use cloakroom_core::resource::{DeletionReason, Ending, Holder, ResourceId, State};
use cloakroom_core::size::format_size;

/// An upload, a deletion and a sweep use the same words. A later sweep finishes the steps that were begun.
const NOT_WRITABLE: &str = "the server cannot write to its storage, which is read-only, fails or does not answer; what is \
    staged can be downloaded if the storage can be read; the server's log has the cause, and its admin must make the storage \
    writable again";

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
    /// The storage became full while the bytes arrived.
    #[error(
        "the server can store no more, because {what}: nothing of this upload was kept; delete what is no longer needed, or \
         give the server more"
    )]
    Full {
        /// The limit that was reached.
        what: &'static str,
        /// The failure.
        #[source]
        source: Cause,
    },
    /// The bytes have another digest than the client announced.
    #[error(
        "the bytes have another SHA-256 than was announced, in a digest header or in a recipe: nothing was kept; send all of them \
         again"
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
    /// The row of the upload is gone, or was changed by something else than this server.
    #[error(
        "the server lost its record of this upload, because something else changed the ledger: nothing was kept; send it \
         again"
    )]
    Abandoned,
    /// The storage is read-only, or it fails.
    #[error("{}", NOT_WRITABLE)]
    NotWritable(#[source] Cause),
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
            StoreError::Full { what, source } => Self::Full { what, source },
            StoreError::Denied(_) | StoreError::Unavailable(_) => Self::NotWritable(error.into()),
            error => Self::Store(error),
        }
    }
}

impl From<LedgerError> for UploadError {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Full => Self::Full { what: "the disk is full", source: error.into() },
            LedgerError::NotWritable(_) | LedgerError::Unavailable(_) => Self::NotWritable(error.into()),
            LedgerError::Abandoned { .. } => Self::Abandoned,
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
    /// There is no resource of that id with this read key.
    #[error("no such resource, or not a key of it")]
    WrongKey,
    /// The resource has as many read keys as it may have.
    #[error(
        "this resource has {} keys, and no more are given, because the oldest may be in use: end them all with DELETE at the \
         same path, or wait until one has ended",
        super::read_keys::MOST_READ_KEYS
    )]
    TooManyKeys,
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
    #[error("the bytes of resource {id} are missing from the server's storage")]
    BytesLost {
        /// The id of the resource.
        id: ResourceId,
        /// The answer of the store.
        #[source]
        source: Cause,
    },
    /// The store or the ledger cannot be written.
    #[error("{}", NOT_WRITABLE)]
    NotWritable(#[source] Cause),
    /// The store does not allow the deletion, which is decided.
    #[error(
        "the server's storage did not allow this bundle to be removed: it can no longer be downloaded, and every sweep tries \
         again; the server's log has the cause"
    )]
    Denied(#[source] Cause),
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
        self.is_of_row() || self.may_be_of_store()
    }

    /// Whether the row of one resource is damaged, which says nothing of the others.
    fn is_of_row(&self) -> bool {
        matches!(self, Self::SetAside { .. } | Self::Ledger(LedgerError::Refused(_)))
    }

    /// Whether the store failed with one resource: it may be held there, or damaged. If many fail like this in a row, the
    /// store itself may be the reason.
    pub fn may_be_of_store(&self) -> bool {
        matches!(self, Self::Denied(_) | Self::Store(StoreError::Full { .. } | StoreError::Fault(_)))
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
            LedgerError::NotWritable(_) | LedgerError::Unavailable(_) => Self::NotWritable(error.into()),
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
        match error {
            StoreError::Denied(_) => Self::Denied(error.into()),
            StoreError::Unavailable(_) => Self::NotWritable(error.into()),
            error => Self::Store(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_failure_is_of_one_resource_unless_nothing_can_be_done_with_any() {
        let cause = || Arc::new(std::io::Error::other("injected"));
        let full = StoreError::Full { what: "it is full", source: "injected".into() };
        let of_one: [AccessError; 4] = [
            StoreError::Fault("injected".into()).into(),
            StoreError::Denied("injected".into()).into(),
            full.into(),
            LedgerError::Refused(cause()).into(),
        ];
        assert!(of_one.iter().all(AccessError::is_of_one), "{of_one:?}");
        assert_eq!(of_one.map(|error| error.may_be_of_store()), [true, true, true, false]);
        let of_all: [AccessError; 5] = [
            StoreError::Unavailable("injected".into()).into(),
            StoreError::Throttled("injected".into()).into(),
            StoreError::Stopping.into(),
            LedgerError::Unavailable(cause()).into(),
            LedgerError::Full.into(),
        ];
        assert!(!of_all.iter().any(AccessError::is_of_one), "{of_all:?}");
    }
}
