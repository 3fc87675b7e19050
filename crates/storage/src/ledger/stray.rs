//! Bytes that belong to no row.

use cloakroom_core::resource::BlobKey;
use jiff::Timestamp;

/// A committed blob that belongs to no row. Its ledger may have been lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stray {
    /// Its key.
    pub key: BlobKey,
    /// How many bytes it has.
    pub size_bytes: u64,
    /// When a listing with this ledger first found it without a row.
    pub seen_at: Timestamp,
}

/// A key without a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rowless {
    /// The key.
    pub key: BlobKey,
    /// Whether its resource is known to be deleted, or its upload to be abandoned: whatever has this key is left over.
    pub has_ended: bool,
}
