//! How full the server is: of everything that has a limit how much there is, and how much there may be.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::labels::Limited;

/// A limit, and how much of it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitUse {
    /// Of what.
    pub of: Limited,
    /// How much there is.
    pub used: u64,
    /// How much there may be.
    pub limit: u64,
}

impl LimitUse {
    /// Counts as the ledger and the runtime have them.
    pub fn of_counts(of: Limited, used: usize, limit: usize) -> Self {
        Self { of, used: used as u64, limit: limit as u64 }
    }
}

/// A count that goes up and down by itself. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub struct Occupancy(Arc<AtomicU64>);

/// One of those that are counted, until it is dropped.
#[derive(Debug)]
pub struct Occupant(Occupancy);

impl Occupancy {
    /// One more.
    pub fn enter(&self) -> Occupant {
        self.0.fetch_add(1, Ordering::Relaxed);
        Occupant(self.clone())
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Occupant {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
