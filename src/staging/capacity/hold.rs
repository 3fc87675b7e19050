//! What one upload holds, until it is over.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::account::{Account, Ask};
use super::flight::Flight;
use super::no_room::Shortage;
use super::{Capacity, charge};
use crate::resource::ResourceId;
use crate::staging::Holder;

/// An upload of unknown length is promised this much at a time.
pub(super) const STEP_BYTES: u64 = 16 << 20;

/// A place among the uploads and the resources, and room. Dropped, it is free again.
#[derive(Debug)]
pub(in crate::staging) struct Hold {
    pub(super) capacity: Arc<Capacity>,
    pub(super) id: ResourceId,
}

impl Hold {
    /// How much more must be reserved before `bytes` may be written; 0 if there is enough.
    pub(in crate::staging) fn missing_for(&self, bytes: u64) -> u64 {
        let missing = bytes.saturating_sub(self.flight(|flight| flight.unwritten));
        if missing == 0 { 0 } else { missing.max(STEP_BYTES) }
    }

    /// Adds `bytes` to the promise, given how much the disk has.
    pub(in crate::staging) fn grow(
        &self,
        account: &mut Account,
        bytes: u64,
        free_on_disk: Option<u64>,
    ) -> Result<(), Shortage> {
        let Some(flight) = account.flights.get(&self.id) else { return Ok(()) };
        let ask = Ask { holder: flight.holder.as_ref(), is_new: false, bytes };
        let own = flight.reserved;
        account
            .check(ask, &self.capacity.limits, free_on_disk)
            .map_err(|shortage| Shortage { no_room: shortage.no_room.beside(own), ..shortage })?;
        if let Some(flight) = account.flights.get_mut(&self.id) {
            flight.reserved += bytes;
            flight.unwritten += bytes;
        }
        Ok(())
    }

    /// From now on it counts for another holder, if that one's share allows it.
    pub(in crate::staging) fn pass_to(
        &self,
        account: &mut Account,
        holder: &Holder,
        free_on_disk: Option<u64>,
    ) -> Result<(), Shortage> {
        if self.capacity.limits.share.is_none() {
            return Ok(());
        }
        let Some(flight) = account.flights.remove(&self.id) else { return Ok(()) };
        let checked = account.check_share(flight.reserved, true, holder, &self.capacity.limits, free_on_disk);
        let holder = if checked.is_ok() { Some(holder.clone()) } else { flight.holder };
        account.flights.insert(self.id, Flight { holder, ..flight });
        checked
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

    /// The upload is acknowledged with `bytes`.
    pub(in crate::staging) fn stored(self, bytes: u64) {
        let mut account = self.capacity.account();
        if let Some(flight) = account.flights.remove(&self.id) {
            account.add_stored(flight.holder, charge(&self.capacity.limits, bytes));
        }
    }

    fn flight<T: Default>(&self, look: impl FnOnce(&mut Flight) -> T) -> T {
        self.capacity.account().flights.get_mut(&self.id).map(look).unwrap_or_default()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.capacity.account().flights.remove(&self.id);
        self.capacity.ended.notify_waiters();
    }
}
