//! What is in memory of each ready row.

use std::sync::Arc;

use crate::ledger::UnreadableRow;
use cloakroom_core::resource::{Life, Owner, ResourceId};

/// A ready resource in memory.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Its public name.
    pub id: ResourceId,
    /// The objects that it lives for. Equal owners are one in memory.
    pub owner: Arc<Owner>,
    /// How many bytes it has.
    pub size_bytes: u64,
    /// The data that decides how long it lives.
    pub life: Life,
}

/// The rows that this version cannot read.
#[derive(Debug, Clone, Default)]
pub struct Unreadable {
    /// How many rows there are, with damaged ids and without.
    pub count: usize,
    /// The first of those without.
    pub first: Vec<UnreadableRow>,
    /// How many rows have a damaged id. It is not known which bytes belong to them.
    pub damaged_ids: usize,
}

/// The memory that an owner needs, and that others have; all in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerMemory {
    /// How much another resource of this owner needs: nothing if there is one already.
    pub needed: u64,
    /// How much all owners have.
    pub taken: u64,
    /// How much the owners in its namespace have.
    pub taken_in_namespace: u64,
}
