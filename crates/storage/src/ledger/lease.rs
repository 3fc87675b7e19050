//! Leases, which end by themselves, and the authorities in whose name resources are deleted.

use std::time::Duration;

use rand::{Rng, RngExt as _};

use cloakroom_core::resource::UploadHandle;

/// A lease that was not renewed for this long has ended.
pub const LEASE_TIME: Duration = Duration::from_secs(30);

/// How often the holder of a lease renews it.
pub const LEASE_RENEWAL: Duration = Duration::from_secs(10);

/// Names the lease of one transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(u128);

impl LeaseId {
    /// Makes a new random id.
    pub fn generate(random: &mut impl Rng) -> Self {
        Self(random.random())
    }
}

/// Identifies a term of the cleaner. When a new term begins, all decisions of earlier terms are void.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Epoch(u64);

impl Epoch {
    /// Makes a new random one.
    pub fn generate(random: &mut impl Rng) -> Self {
        Self(random.random())
    }
}

/// In whose name a resource is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authority {
    /// The cleaner, in this term.
    Cleaner(Epoch),
    /// The ticket's holder.
    Ticket,
    /// The server's admin.
    Admin,
    /// The upload that began the row, and holds this lease.
    Uploader(LeaseId),
}

/// An upload that can no longer be completed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Abandoned {
    /// What the store needs to abort the upload; `None` if the key is enough.
    pub handle: Option<UploadHandle>,
}
