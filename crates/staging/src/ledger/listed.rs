//! What the ledger keeps in memory of each ready row.

use std::sync::Arc;

use super::UnreadableRow;
use cloakroom_core::resource::{Life, Owner, ResourceId};

/// A ready resource in memory.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Its public name.
    pub id: ResourceId,
    /// The objects that it lives for.
    pub owner: Arc<Owner>,
    /// Whether the owner stays in memory anyway, so that keeping it costs nothing.
    pub is_owner_known: bool,
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

/// How much a ledger may keep in memory, and how it counts small resources.
#[derive(Debug, Clone, Copy)]
pub struct MemoryLimits {
    /// The least number of bytes that a resource counts as.
    pub least_bytes: u64,
    /// Memory for the owners of all resources together. Owners that do not fit are looked up in the table.
    pub owner_memory_bytes: usize,
}
