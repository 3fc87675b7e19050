//! Room for uploads: places at this server, resources, bytes and free disk, in all and for each holder's share.

mod in_flight;
mod no_room;
mod reservation;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex};

use super::{Limits, Parts, UploadError};
use crate::ready::{ReadyResources, Taken};
use crate::store::{Space, StoreError};
use cloakroom_core::lock::lock;
use cloakroom_core::metrics::{LimitUse, Limited};
use cloakroom_core::resource::{Holder, ResourceId};
use in_flight::UploadsInFlight;

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
    pub(super) limits: Limits,
    pub(super) ready: Arc<ReadyResources>,
    in_flight: Mutex<UploadsInFlight>,
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
        Self { limits, ready, in_flight: Mutex::default() }
    }

    pub(super) fn has_shares(&self) -> bool {
        self.limits.share.is_some()
    }

    pub(super) fn max_resource_size(&self) -> u64 {
        self.limits.capacity.max_resource_size
    }

    /// How much a bundle of `bytes` counts as.
    pub(super) fn counted(&self, bytes: u64) -> u64 {
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
        lock(&self.in_flight).begin(beginning, bytes, &self.limits, free_on_disk)?;
        let reservation = Reservation { capacity: Arc::clone(self), id };
        self.ready.charge(id, &charges)?;
        Ok(reservation)
    }

    /// Whether an upload of this resource is in flight, or what it has left is being removed.
    pub(super) fn is_in_flight(&self, id: ResourceId) -> bool {
        lock(&self.in_flight).0.contains_key(&id)
    }

    pub(super) fn uploads(&self) -> usize {
        lock(&self.in_flight).0.len()
    }

    /// Bytes that are promised to uploads and not on the disk yet.
    pub(super) fn unwritten(&self) -> u64 {
        lock(&self.in_flight).unwritten()
    }

    /// How much of each limit is used. `taken` is from the ledger, and `space` from the disk. On the disk all bytes
    /// count, even those of other programs, because they leave less room for uploads.
    pub(super) fn uses(&self, taken: Taken, space: Option<Space>) -> Vec<LimitUse> {
        let (limits, uploads) = (&self.limits, self.uploads());
        let of = |of, used, limit| LimitUse { of, used, limit };
        let mut uses = vec![
            LimitUse::from_counts(Limited::Uploads, uploads, limits.max_concurrent_uploads),
            of(Limited::Resources, taken.resources, limits.max_resources as u64),
        ];
        let total = limits.capacity.max_total_size;
        uses.extend(total.map(|limit| of(Limited::TotalSize, taken.bytes, limit)));
        uses.extend(space.map(|Space { free, used }| LimitUse {
            of: Limited::Disk,
            used: used.saturating_add(self.unwritten()),
            limit: used.saturating_add(free).saturating_sub(limits.capacity.min_free_space),
        }));
        uses.extend(self.uses_of_share(taken, space));
        uses
    }

    /// For each share, how much the holder with the most of it has.
    fn uses_of_share(&self, taken: Taken, space: Option<Space>) -> Vec<LimitUse> {
        let Some(share) = self.limits.share else { return Vec::new() };
        let of = |of, used, all: usize| LimitUse { of, used, limit: share.of(all as u64) };
        let mut uses = vec![
            of(Limited::ShareOfUploads, lock(&self.in_flight).most(), self.limits.max_concurrent_uploads),
            of(Limited::ShareOfResources, taken.most_resources, self.limits.max_resources),
            LimitUse {
                of: Limited::ShareOfOwnerMemory,
                used: taken.most_owner_bytes,
                limit: share.of(self.limits.owner_memory_bytes),
            },
        ];
        let room = self.room_of_share(share, taken.bytes, space.map(|space| space.free));
        uses.extend(room.map(|limit| LimitUse { of: Limited::ShareOfRoom, used: taken.most_bytes, limit }));
        uses
    }
}

impl Parts {
    /// Promises `step` bytes more. If that is too much, promises only `at_least`, the bytes that have arrived.
    pub(super) async fn grow(
        &self,
        reservation: &Reservation,
        step: u64,
        at_least: u64,
    ) -> Result<(), UploadError> {
        let free = self.free_on_disk().await?;
        Ok(reservation.grow(step, free).or_else(|_| reservation.grow(at_least, free))?)
    }

    pub(super) async fn pass_to(
        &self,
        reservation: &Reservation,
        holder: &Holder,
    ) -> Result<(), UploadError> {
        Ok(reservation.pass_to(holder, self.free_on_disk().await?)?)
    }

    pub(super) async fn free_on_disk(&self) -> Result<Option<u64>, StoreError> {
        Ok(self.storage.space().await?.map(|space| space.free))
    }
}
