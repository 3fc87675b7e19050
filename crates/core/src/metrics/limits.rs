//! How full the server is: the limits, and how much of each is used.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::labels::Limited;

/// A limit, with how much of it is used. Both have the unit of the limit: a number, or bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitUse {
    /// What is limited.
    pub of: Limited,
    /// How much is used.
    pub used: u64,
    /// The most that is allowed.
    pub limit: u64,
}

impl LimitUse {
    /// The same for a count.
    pub fn from_counts(of: Limited, used: usize, limit: usize) -> Self {
        Self { of, used: used as u64, limit: limit as u64 }
    }
}

/// A count that follows the life of its occupants. Clones are the same count.
#[derive(Debug, Clone, Default)]
pub struct Occupancy(Arc<AtomicU64>);

/// One occupant. It is counted until it is dropped.
#[derive(Debug)]
pub struct Occupant(Occupancy);

impl Occupancy {
    /// Counts one more, until the result is dropped.
    pub fn enter(&self) -> Occupant {
        self.0.fetch_add(1, Ordering::Relaxed);
        Occupant(self.clone())
    }

    /// How many occupants there are now.
    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Occupant {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
