//! Limits for uploads: places, resources and room, in all and for each holder's share.

mod charges;
mod flights;
mod no_room;
mod reservation;
#[cfg(test)]
mod tests;
mod uses;

use std::sync::{Arc, Mutex};

use super::Limits;
use crate::ready::ReadyResources;
use cloakroom_core::lock::lock;
use cloakroom_core::resource::{Holder, ResourceId};
use flights::Flights;

pub use no_room::NoRoom;
pub(super) use reservation::Reservation;

/// The least number of bytes that a resource counts as: its row, its names and its place in memory take room, too.
pub const LEAST_CHARGE: u64 = 4 << 10;

/// The limits of room, all in bytes.
#[derive(Debug, Clone, Copy)]
pub struct CapacityLimits {
    /// The largest size of one bundle.
    pub max_resource_size: u64,
    /// The largest size of all bundles together; `None` is no limit.
    pub max_total_size: Option<u64>,
    /// How much of the disk must stay free.
    pub min_free_space: u64,
    /// The least that each resource counts as: [`LEAST_CHARGE`].
    pub least_charge: u64,
}

/// The limits of uploads, with what the uploads of this server take.
pub(super) struct Capacity {
    limits: Limits,
    ready: Arc<ReadyResources>,
    flights: Mutex<Flights>,
}

/// What is known of an upload when it begins.
#[derive(Debug, Clone)]
pub(super) struct Beginning {
    pub(super) id: ResourceId,
    /// For whom it counts; `None` if there are no shares.
    pub(super) holder: Option<Holder>,
    pub(super) announced: Option<u64>,
}

impl Capacity {
    pub(super) fn new(limits: Limits, ready: Arc<ReadyResources>) -> Self {
        Self { limits, ready, flights: Mutex::default() }
    }

    pub(super) fn has_shares(&self) -> bool {
        self.limits.share.is_some()
    }

    pub(super) fn max_resource_size(&self) -> u64 {
        self.limits.capacity.max_resource_size
    }

    /// How much a bundle of `bytes` counts as.
    fn counted(&self, bytes: u64) -> u64 {
        bytes.max(self.limits.capacity.least_charge)
    }

    /// Takes a place for an upload, and the room for its announced length. `free_on_disk` is `None` without a local disk.
    pub(super) fn begin(
        self: &Arc<Self>,
        beginning: Beginning,
        free_on_disk: Option<u64>,
    ) -> Result<Reservation, NoRoom> {
        let (id, bytes) = (beginning.id, self.counted(beginning.announced.unwrap_or(0)));
        let charges = self.charges(beginning.holder.as_ref(), bytes, free_on_disk);
        lock(&self.flights).begin(beginning, bytes, &self.limits, free_on_disk)?;
        let reservation = Reservation { capacity: Arc::clone(self), id };
        self.ready.charge(id, &charges)?;
        Ok(reservation)
    }

    /// Whether an upload of this resource is in flight, or what it has left is being removed.
    pub(super) fn is_in_flight(&self, id: ResourceId) -> bool {
        lock(&self.flights).0.contains_key(&id)
    }

    pub(super) fn uploads(&self) -> usize {
        lock(&self.flights).0.len()
    }
}
