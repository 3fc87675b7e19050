//! The reasons for which there is no room for an upload.

use crate::ready::{Account, Shortage};
use cloakroom_core::resource::Holder;
use cloakroom_core::size::format_size;

/// There is no room for a bundle, or no place for another upload at the moment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoRoom {
    /// The largest number of uploads is in flight.
    #[error(
        "this server is taking as many uploads as it is allowed to (--max-concurrent-uploads): try again in a moment"
    )]
    Uploads,
    /// The largest number of uploads of one holder is in flight.
    #[error(
        "{holder} has {limit} uploads going on, which is its share (--share) of --max-concurrent-uploads: try again in \
         a moment"
    )]
    UploadsOf {
        /// The holder of these uploads.
        holder: Holder,
        /// The number of its share.
        limit: u64,
    },
    /// The server keeps as many resources as it may.
    #[error(
        "no room for another resource: this server keeps {limit} at most (--max-resources); delete what is no longer \
         needed, or try again when some have expired"
    )]
    Resources {
        /// The largest number of resources.
        limit: u64,
    },
    /// One holder has as many resources as it may.
    #[error(
        "no room for another resource of {holder}: it may have {limit}, its share (--share) of --max-resources; delete \
         what it no longer needs, or try again when some have expired"
    )]
    ResourcesOf {
        /// The holder of these resources.
        holder: Holder,
        /// The number of its share.
        limit: u64,
    },
    /// The owners of all resources have as much memory as they may.
    #[error(
        "no memory for another owner: the names and labels of all owners may have {}, and {} are taken; delete what is no \
         longer needed, or name owners by fewer and shorter labels", format_size(*.limit), format_size(*.taken)
    )]
    Owners {
        /// The limit in bytes.
        limit: u64,
        /// Bytes of the owners that there are.
        taken: u64,
    },
    /// The owners of one holder have as much memory as they may.
    #[error(
        "no memory for another owner of {holder}: their names and labels may have {}, its share (--share), and {} are taken; \
         delete what it no longer needs, or name its owners by fewer and shorter labels", format_size(*.limit), format_size(*.taken)
    )]
    OwnersOf {
        /// The holder of these owners.
        holder: Holder,
        /// The bytes of its share.
        limit: u64,
        /// Bytes of its owners.
        taken: u64,
    },
    /// The size of all bundles together would exceed the limit.
    #[error(
        "no room for this bundle: everything that is staged together may have {} (--max-total-size), and {} are \
         taken by other bundles; delete what is no longer needed, or try again when it has expired", format_size(*.limit), format_size(*.taken)
    )]
    Total {
        /// The limit in bytes.
        limit: u64,
        /// Bytes that are stored, or promised to other uploads.
        taken: u64,
    },
    /// The disk would have less free space than the server must keep.
    #[error(
        "no room for this bundle: the server's disk has {} free and must keep {} (--min-free-space); delete what \
         is no longer needed, or give the server a larger volume", format_size(*.free), format_size(*.keep)
    )]
    Disk {
        /// Bytes that are free for this upload: the free space of the disk without what is promised to other uploads.
        free: u64,
        /// Bytes that must stay free.
        keep: u64,
    },
    /// The size of one holder's bundles would exceed its share.
    #[error(
        "no room for this bundle of {holder}: it may have {}, its share (--share) of this server's room, and {} are \
         taken by its other bundles; delete what it no longer needs, or try again when it has expired", format_size(*.limit), format_size(*.taken)
    )]
    RoomOf {
        /// The holder of these bundles.
        holder: Holder,
        /// The bytes of its share.
        limit: u64,
        /// Bytes that it has stored, or that are promised to its other uploads.
        taken: u64,
    },
}

impl NoRoom {
    /// Whether the shortage ends as soon as an upload ends.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Uploads | Self::UploadsOf { .. })
    }

    /// The holder whose share is used up; `None` if it is another limit.
    pub fn holder(&self) -> Option<&Holder> {
        match self {
            Self::UploadsOf { holder, .. }
            | Self::ResourcesOf { holder, .. }
            | Self::OwnersOf { holder, .. }
            | Self::RoomOf { holder, .. } => Some(holder),
            Self::Uploads
            | Self::Resources { .. }
            | Self::Owners { .. }
            | Self::Total { .. }
            | Self::Disk { .. } => None,
        }
    }
}

impl From<Shortage> for NoRoom {
    fn from(shortage: Shortage) -> Self {
        let Shortage { account, limit, taken } = shortage;
        match account {
            Account::Resources => Self::Resources { limit },
            Account::Bytes => Self::Total { limit, taken },
            Account::ResourcesOf(holder) => Self::ResourcesOf { holder, limit },
            Account::BytesOf(holder) => Self::RoomOf { holder, limit, taken },
        }
    }
}
