//! What uploads may take: places, resources and room, of everything and of each holder's share.

mod charges;
mod flight;
mod flights;
mod hold;
mod no_room;
mod overdue;
#[cfg(test)]
mod tests;
mod uses;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::Limits;
use crate::ledger::Ledger;
use cloakroom_core::resource::{Holder, ResourceId};
use flights::Flights;

pub(super) use hold::Hold;
pub use no_room::NoRoom;
pub(super) use no_room::Shortage;

/// A resource counts as this many bytes at least: its row, its names and its place in memory cost room too.
pub const LEAST_CHARGE: u64 = 4 << 10;

/// How much room there is. All in bytes.
#[derive(Debug, Clone, Copy)]
pub struct CapacityLimits {
    /// Of one bundle.
    pub max_resource_size: u64,
    /// Of all bundles together; `None` is no limit.
    pub max_total_size: Option<u64>,
    /// Of the disk, to leave free.
    pub min_free_space: u64,
    /// What each resource counts as at least: [`LEAST_CHARGE`].
    pub least_charge: u64,
}

/// What limits uploads: the ledger's accounts, and what this server can do itself.
pub(super) struct Capacity {
    limits: Limits,
    ledger: Arc<dyn Ledger>,
    flights: Mutex<Flights>,
    /// An upload is over.
    ended: Notify,
}

/// What an upload is when it begins.
#[derive(Debug, Clone)]
pub(super) struct Beginning {
    pub(super) id: ResourceId,
    /// In whose name it counts; `None` where there are no shares.
    pub(super) holder: Option<Holder>,
    pub(super) announced: Option<u64>,
    /// By the monotonic clock.
    pub(super) at: Duration,
}

impl Capacity {
    pub(super) fn new(limits: Limits, ledger: Arc<dyn Ledger>) -> Self {
        Self { limits, ledger, flights: Mutex::default(), ended: Notify::new() }
    }

    pub(super) fn has_shares(&self) -> bool {
        self.limits.share.is_some()
    }

    pub(super) fn max_resource_size(&self) -> u64 {
        self.limits.capacity.max_resource_size
    }

    /// What a bundle of `bytes` counts as.
    fn counted(&self, bytes: u64) -> u64 {
        bytes.max(self.limits.capacity.least_charge)
    }

    /// Takes a place for an upload and the room on the disk that it announced, given how much that has free.
    pub(super) fn begin(
        self: &Arc<Self>,
        beginning: Beginning,
        free_on_disk: Option<u64>,
    ) -> Result<Hold, Shortage> {
        let (id, bytes) = (beginning.id, self.counted(beginning.announced.unwrap_or(0)));
        self.flights().begin(beginning, bytes, &self.limits, free_on_disk)?;
        Ok(Hold { capacity: Arc::clone(self), id })
    }

    pub(super) fn uploads(&self) -> usize {
        self.flights().0.len()
    }

    fn is_uploading(&self, id: ResourceId) -> bool {
        self.flights().0.contains_key(&id)
    }

    fn flights(&self) -> MutexGuard<'_, Flights> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
