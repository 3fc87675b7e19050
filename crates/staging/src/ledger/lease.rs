//! Rights that end by themselves, and in whose name something is deleted.

use std::time::Duration;

use rand::{Rng, RngExt as _};

use cloakroom_core::resource::UploadHandle;

/// A lease that was not renewed for this long stands behind nothing any more.
pub const LEASE_TIME: Duration = Duration::from_secs(30);

/// How often a lease is renewed by its holder.
pub const LEASE_RENEWAL: Duration = Duration::from_secs(10);

/// Names the lease of one transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(u128);

impl LeaseId {
    /// Makes a new one.
    pub fn generate(random: &mut impl Rng) -> Self {
        Self(random.random())
    }
}

/// Which term of the cleaner it is. With a new term all that was decided in an earlier one is void.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Epoch(u64);

impl Epoch {
    /// Begins a new one.
    pub(super) fn generate(random: &mut impl Rng) -> Self {
        Self(random.random())
    }
}

/// In whose name something is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authority {
    /// The cleaner's, in its term.
    Cleaner(Epoch),
    /// The ticket's holder.
    Ticket,
    /// The server's admin.
    Admin,
    /// The upload that began it.
    Uploader(LeaseId),
}

/// An upload that can never be completed any more.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GivenUp {
    /// What its store must be told to abort it.
    pub handle: Option<UploadHandle>,
}
