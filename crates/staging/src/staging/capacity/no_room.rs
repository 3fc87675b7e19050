//! Why an upload is not taken.

use crate::ledger::{self, Account};
use cloakroom_core::resource::Holder;
use cloakroom_core::size::format_size;

/// There is no room for a bundle, or none for another upload at the moment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoRoom {
    /// As many uploads as allowed are going on.
    #[error(
        "this server is taking as many uploads as it is allowed to (--max-concurrent-uploads): try again in a moment"
    )]
    Uploads,
    /// As many uploads as one holder may have are going on.
    #[error(
        "{holder} has {limit} uploads going on, which is its share (--share) of --max-concurrent-uploads: try again in \
         a moment"
    )]
    UploadsOf {
        /// Whose they are.
        holder: Holder,
        /// Its share.
        limit: u64,
    },
    /// As many resources as allowed are here.
    #[error(
        "no room for another resource: this server keeps {limit} at most (--max-resources); delete what is no longer \
         needed, or try again when some have expired"
    )]
    Resources {
        /// The limit.
        limit: u64,
    },
    /// As many resources as one holder may have are here.
    #[error(
        "no room for another resource of {holder}: it may have {limit}, its share (--share) of --max-resources; delete \
         what it no longer needs, or try again when some have expired"
    )]
    ResourcesOf {
        /// Whose they are.
        holder: Holder,
        /// Its share.
        limit: u64,
    },
    /// The sum of all bundles would pass the limit.
    #[error(
        "no room for this bundle: everything that is staged together may have {} (--max-total-size), and {} are \
         taken by other bundles; delete what is no longer needed, or try again when it has expired", format_size(*.limit), format_size(*.taken)
    )]
    Total {
        /// The limit.
        limit: u64,
        /// What is stored, or promised to other uploads.
        taken: u64,
    },
    /// The disk would have less free space than it must keep.
    #[error(
        "no room for this bundle: the server's disk has {} free and must keep {} (--min-free-space); delete what \
         is no longer needed, or give the server a larger volume", format_size(*.free), format_size(*.keep)
    )]
    Disk {
        /// Free for this upload: what the disk has, less what other uploads were promised.
        free: u64,
        /// To be kept.
        keep: u64,
    },
    /// The sum of the bundles of one holder would pass its share.
    #[error(
        "no room for this bundle of {holder}: it may have {}, its share (--share) of this server's room, and {} are \
         taken by its other bundles; delete what it no longer needs, or try again when it has expired", format_size(*.limit), format_size(*.taken)
    )]
    RoomOf {
        /// Whose they are.
        holder: Holder,
        /// Its share.
        limit: u64,
        /// What it has stored, or was promised for other uploads.
        taken: u64,
    },
}

impl NoRoom {
    /// Whether it lasts no longer than uploads do.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Uploads | Self::UploadsOf { .. })
    }

    /// Whose share is used up, if it is one.
    pub fn holder(&self) -> Option<&Holder> {
        match self {
            Self::UploadsOf { holder, .. }
            | Self::ResourcesOf { holder, .. }
            | Self::RoomOf { holder, .. } => Some(holder),
            Self::Uploads | Self::Resources { .. } | Self::Total { .. } | Self::Disk { .. } => None,
        }
    }
}

/// What is missing, and how much of it.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::staging) struct Shortage {
    pub(in crate::staging) no_room: NoRoom,
    /// Uploads, resources or bytes.
    pub(super) missing: u64,
}

impl From<ledger::Shortage> for Shortage {
    fn from(shortage: ledger::Shortage) -> Self {
        let ledger::Shortage { account, limit, taken, missing } = shortage;
        let no_room = match account {
            Account::Resources => NoRoom::Resources { limit },
            Account::Bytes => NoRoom::Total { limit, taken },
            Account::ResourcesOf(holder) => NoRoom::ResourcesOf { holder, limit },
            Account::BytesOf(holder) => NoRoom::RoomOf { holder, limit, taken },
        };
        Self { no_room, missing }
    }
}
