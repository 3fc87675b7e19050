//! What is kept in memory of each row.

use std::sync::Arc;

use super::UnreadableRow;
use cloakroom_core::resource::{Life, Owner, ResourceId};

/// A ready resource.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Its public name.
    pub id: ResourceId,
    /// Whom it is for.
    pub owner: Arc<Owner>,
    /// Whether the owner stays in memory, and so costs nothing to keep.
    pub is_owner_known: bool,
    /// How many bytes it has.
    pub size_bytes: u64,
    /// What decides how long it lives.
    pub life: Life,
}

/// What this version cannot read.
#[derive(Debug, Clone, Default)]
pub struct Unreadable {
    /// How many rows.
    pub count: usize,
    /// The first of them.
    pub first: Vec<UnreadableRow>,
    /// Whether there are rows of which it is not known which bytes are theirs.
    pub has_damaged_ids: bool,
}

/// What a ledger may keep in memory, and how it counts.
#[derive(Debug, Clone, Copy)]
pub struct MemoryLimits {
    /// Each resource counts as this many bytes at least.
    pub least_bytes: u64,
    /// Memory for the owners of all resources together; the others are looked up.
    pub owner_memory_bytes: usize,
}
