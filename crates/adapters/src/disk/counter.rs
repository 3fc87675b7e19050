//! Counts how many of something exist at this moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A count that follows the life of its parts. Clones are the same count.
#[derive(Debug, Clone, Default)]
pub(super) struct Counter(Arc<AtomicUsize>);

/// One of the counted things. It is counted until it is dropped.
#[derive(Debug)]
pub(super) struct Counted(Counter);

impl Counter {
    pub(super) fn one_more(&self) -> Counted {
        self.0.fetch_add(1, Ordering::Relaxed);
        Counted(self.clone())
    }
}

impl Counted {
    /// How many there are now, this one included.
    pub(super) fn count(&self) -> usize {
        self.0.0.load(Ordering::Relaxed).max(1)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
