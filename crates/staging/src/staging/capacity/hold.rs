//! What one upload holds of this server, until it is over.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::Capacity;
use super::flight::Flight;
use super::no_room::Shortage;
use cloakroom_core::resource::{Holder, ResourceId};

/// An upload of unknown length is promised this much at a time.
pub(super) const STEP_BYTES: u64 = 16 << 20;

/// A place among the uploads, and room on the disk. Dropped, it is free again.
pub(in crate::staging) struct Hold {
    pub(super) capacity: Arc<Capacity>,
    pub(super) id: ResourceId,
}

impl Hold {
    /// How much more must be promised before `bytes` may be written; 0 if there is enough.
    pub(in crate::staging) fn missing_for(&self, bytes: u64) -> u64 {
        let missing = bytes.saturating_sub(self.flight(|flight| flight.unwritten));
        if missing == 0 { 0 } else { missing.max(STEP_BYTES) }
    }

    pub(in crate::staging) fn id(&self) -> ResourceId {
        self.id
    }

    /// How much it was promised so far.
    pub(in crate::staging) fn reserved(&self) -> u64 {
        self.flight(|flight| flight.reserved)
    }

    pub(in crate::staging) fn holder(&self) -> Option<Holder> {
        self.flight(|flight| flight.holder.clone())
    }

    /// Adds `bytes` to the promise, given how much the disk has.
    pub(in crate::staging) fn grow(&self, bytes: u64, free_on_disk: Option<u64>) -> Result<(), Shortage> {
        let mut flights = self.capacity.flights();
        flights.check_disk(bytes, &self.capacity.limits, free_on_disk)?;
        if let Some(flight) = flights.0.get_mut(&self.id) {
            flight.reserved += bytes;
            flight.unwritten += bytes;
        }
        Ok(())
    }

    /// From now on it counts for another holder, if that one's share allows it. Returns for whom it counted.
    pub(in crate::staging) fn pass_to(&self, holder: Option<Holder>) -> Result<Option<Holder>, Shortage> {
        self.capacity.flights().pass_to(self.id, holder, &self.capacity.limits)
    }

    /// `bytes` of it are on the disk now.
    pub(in crate::staging) fn written(&self, bytes: u64) {
        self.flight(|flight| {
            flight.unwritten = flight.unwritten.saturating_sub(bytes);
            flight.received += bytes;
        });
    }

    /// Cancelled when another upload needs what this one holds, and this one has had its time.
    pub(in crate::staging) fn end(&self) -> CancellationToken {
        self.flight(|flight| flight.end.clone())
    }

    fn flight<T: Default>(&self, look: impl FnOnce(&mut Flight) -> T) -> T {
        self.capacity.flights().0.get_mut(&self.id).map(look).unwrap_or_default()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.capacity.flights().0.remove(&self.id);
        self.capacity.ended.notify_waiters();
    }
}
