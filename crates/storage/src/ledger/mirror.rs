//! The feed of committed changes, for what is kept in memory in front of the rows.

use std::collections::BTreeMap;

use cloakroom_core::resource::ResourceId;
use jiff::Timestamp;

use super::{Completion, Observation, Stored};

/// What keeps in memory what the rows say.
pub trait Mirror: Send + Sync {
    /// The least number of bytes that a resource or a stray counts as in what the ledger adds up.
    fn least_bytes(&self) -> u64;

    /// Takes in a change. The ledger calls this in the order of its commits, and before the change returns to its caller.
    fn committed(&self, change: &Change<'_>);

    /// It is not known what the ledger has written: the rows must be read again.
    fn doubt(&self);
}

/// A committed change.
#[derive(Debug, Clone, Copy)]
pub enum Change<'a> {
    /// An upload began.
    Begun,
    /// An upload became ready.
    Completed(&'a Completion),
    /// A download was recorded.
    Used(ResourceId, Timestamp),
    /// A download was not recorded, because the resource is not ready.
    NotUsed(ResourceId),
    /// These observations of owners were stored.
    Observed(&'a [Observation]),
    /// A resource is no longer ready.
    Deleting(ResourceId),
    /// A deletion was not written: the row is not as its caller believed.
    NotDeleting,
    /// The bytes of a resource are removed.
    Deleted {
        /// The namespace of its owner; empty if it cannot be read.
        namespace: &'a str,
        /// How many bytes it had; 0 if that cannot be read.
        size_bytes: u64,
        /// Whether a tombstone is left.
        has_tombstone: bool,
    },
    /// An upload that was not acknowledged is gone.
    Abandoned,
    /// So many tombstones are gone.
    Forgotten(u64),
    /// How many strays there are now, and their bytes.
    Strays(Stored),
    /// All rows were counted.
    Counted(&'a Totals),
    /// Something that needs no memory.
    Other,
}

impl Change<'_> {
    /// Whether the ledger is another one after it.
    pub fn is_real(&self) -> bool {
        !matches!(self, Self::NotUsed(_) | Self::NotDeleting | Self::Counted(_))
    }
}

/// The counts of all rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// The resources that are acknowledged and not yet removed, by namespace. A row counts for the empty namespace if its
    /// namespace cannot be read, and as [`Mirror::least_bytes`] if its size cannot be read.
    pub stored: BTreeMap<String, Stored>,
    /// The strays.
    pub strays: Stored,
    /// How many rows are in each state. States without rows, and unknown states, are left out.
    pub by_state: BTreeMap<&'static str, u64>,
}
