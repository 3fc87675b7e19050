//! The memory that all transfers to and from a bucket share.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Memory is given out in units of this many bytes.
const UNIT: u64 = 1 << 10;

/// A bound for the memory of transfers. Clones share it.
#[derive(Debug, Clone)]
pub struct Pool {
    free: Arc<Semaphore>,
    /// All memory, in units.
    units: u32,
}

/// Memory that was taken. It is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Taken(
    #[expect(dead_code, reason = "only its drop does something")] Option<OwnedSemaphorePermit>,
);

impl Pool {
    /// A pool of `bytes`.
    pub fn new(bytes: u64) -> Self {
        let units = u32::try_from(bytes / UNIT).unwrap_or(u32::MAX);
        let free = Semaphore::new(usize::try_from(units).unwrap_or(Semaphore::MAX_PERMITS));
        Self { free: Arc::new(free), units }
    }

    /// Waits until `bytes` are free, or all of the pool if it is smaller. Those who ask first get theirs first.
    pub(super) async fn take(&self, bytes: u64) -> Taken {
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).min(self.units);
        // The semaphore is never closed.
        Taken(Arc::clone(&self.free).acquire_many_owned(units).await.ok())
    }
}
