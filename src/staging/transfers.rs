//! What this process is sending and receiving, so that the cleaner leaves it alone and limits hold.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::resource::ResourceId;

/// The register of transfers in flight.
#[derive(Debug)]
pub(super) struct Transfers {
    uploads: Arc<Semaphore>,
    downloads: Arc<Semaphore>,
    in_flight: Mutex<InFlight>,
}

#[derive(Debug, Default)]
struct InFlight {
    uploads: HashSet<ResourceId>,
    downloads: HashMap<ResourceId, usize>,
}

impl Transfers {
    pub(super) fn new(max_uploads: usize, max_downloads: usize) -> Self {
        Self {
            uploads: Arc::new(Semaphore::new(max_uploads.min(Semaphore::MAX_PERMITS))),
            downloads: Arc::new(Semaphore::new(max_downloads.min(Semaphore::MAX_PERMITS))),
            in_flight: Mutex::default(),
        }
    }

    /// Registers an upload, unless there are too many.
    pub(super) fn begin_upload(self: &Arc<Self>, id: ResourceId) -> Option<Transfer> {
        let permit = Arc::clone(&self.uploads).try_acquire_owned().ok()?;
        self.lock().uploads.insert(id);
        Some(Transfer { transfers: Arc::clone(self), id, direction: Direction::Up, _permit: permit })
    }

    /// Registers a download, unless there are too many.
    pub(super) fn begin_download(self: &Arc<Self>, id: ResourceId) -> Option<Transfer> {
        let permit = Arc::clone(&self.downloads).try_acquire_owned().ok()?;
        *self.lock().downloads.entry(id).or_default() += 1;
        Some(Transfer { transfers: Arc::clone(self), id, direction: Direction::Down, _permit: permit })
    }

    pub(super) fn is_uploading(&self, id: ResourceId) -> bool {
        self.lock().uploads.contains(&id)
    }

    pub(super) fn is_downloading(&self, id: ResourceId) -> bool {
        self.lock().downloads.contains_key(&id)
    }

    pub(super) fn in_flight(&self) -> (usize, usize) {
        let in_flight = self.lock();
        (in_flight.uploads.len(), in_flight.downloads.values().sum())
    }

    fn lock(&self) -> MutexGuard<'_, InFlight> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Clone, Copy)]
enum Direction {
    Up,
    Down,
}

/// One transfer in flight, until it is dropped.
#[derive(Debug)]
pub(super) struct Transfer {
    transfers: Arc<Transfers>,
    id: ResourceId,
    direction: Direction,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Transfer {
    fn drop(&mut self) {
        let mut in_flight = self.transfers.lock();
        match self.direction {
            Direction::Up => {
                in_flight.uploads.remove(&self.id);
            }
            Direction::Down => {
                if let Some(count) = in_flight.downloads.get_mut(&self.id) {
                    *count -= 1;
                    if *count == 0 {
                        in_flight.downloads.remove(&self.id);
                    }
                }
            }
        }
    }
}
