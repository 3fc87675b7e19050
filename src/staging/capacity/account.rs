//! What is taken, by whom, and whether more may be.

use std::collections::{BTreeMap, HashMap};

use super::flight::Flight;
use super::no_room::{NoRoom, Shortage};
use crate::ledger::Stored;
use crate::resource::ResourceId;
use crate::staging::{Holder, Limits, Share};

/// What is stored and what was promised.
#[derive(Debug, Default)]
pub(in crate::staging) struct Account {
    /// Acknowledged bundles.
    pub(super) stored: Stored,
    /// Of those, what each holder has; empty where there are no shares.
    pub(super) stored_by: HashMap<Holder, Stored>,
    /// Uploads going on.
    pub(super) flights: HashMap<ResourceId, Flight>,
    /// Changes that the ledger may know and `stored` does not, or the other way round.
    pub(super) settling: usize,
    /// How many of them there have been.
    pub(super) changes: u64,
}

/// What an upload asks for: at its beginning a place and room, later only room.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask<'a> {
    pub(super) holder: Option<&'a Holder>,
    pub(super) is_new: bool,
    pub(super) bytes: u64,
}

/// A sum of what is stored and what was promised.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Taken {
    pub(super) uploads: u64,
    pub(super) resources: u64,
    pub(super) bytes: u64,
}

impl Account {
    /// Takes over what the ledger knows, by namespace.
    pub(super) fn set_stored(&mut self, stored: &BTreeMap<String, Stored>, has_shares: bool) {
        self.stored = stored.values().copied().sum();
        self.stored_by = if has_shares {
            stored.iter().map(|(namespace, stored)| (Holder::namespace(namespace), *stored)).collect()
        } else {
            HashMap::new()
        };
    }

    pub(super) fn add_stored(&mut self, holder: Option<Holder>, bytes: u64) {
        self.stored.resources += 1;
        self.stored.bytes = self.stored.bytes.saturating_add(bytes);
        if let Some(holder) = holder {
            let stored = self.stored_by.entry(holder).or_default();
            stored.resources += 1;
            stored.bytes = stored.bytes.saturating_add(bytes);
        }
    }

    pub(super) fn subtract_stored(&mut self, holder: &Holder, bytes: u64) {
        self.stored.resources = self.stored.resources.saturating_sub(1);
        self.stored.bytes = self.stored.bytes.saturating_sub(bytes);
        if let Some(stored) = self.stored_by.get_mut(holder) {
            stored.resources = stored.resources.saturating_sub(1);
            stored.bytes = stored.bytes.saturating_sub(bytes);
            if stored.resources == 0 {
                self.stored_by.remove(holder);
            }
        }
    }

    /// Bytes that were promised and are not on the disk yet.
    pub(super) fn unwritten(&self) -> u64 {
        self.flights.values().map(|flight| flight.unwritten).sum()
    }

    pub(super) fn taken(&self) -> Taken {
        Self::with_flights(self.stored, self.flights.values())
    }

    pub(super) fn taken_by(&self, holder: &Holder) -> Taken {
        let stored = self.stored_by.get(holder).copied().unwrap_or_default();
        Self::with_flights(
            stored,
            self.flights.values().filter(|flight| flight.holder.as_ref() == Some(holder)),
        )
    }

    fn with_flights<'a>(stored: Stored, flights: impl Iterator<Item = &'a Flight>) -> Taken {
        let taken = Taken { uploads: 0, resources: stored.resources, bytes: stored.bytes };
        flights.fold(taken, |taken, flight| Taken {
            uploads: taken.uploads + 1,
            resources: taken.resources + 1,
            bytes: taken.bytes.saturating_add(flight.reserved),
        })
    }

    /// Whether the limits allow it. A share is looked at first: what a holder may not have anyway is no reason to end
    /// other holders' uploads.
    pub(super) fn check(
        &self,
        ask: Ask<'_>,
        limits: &Limits,
        free_on_disk: Option<u64>,
    ) -> Result<(), Shortage> {
        if let Some(holder) = ask.holder {
            self.check_share(ask.bytes, ask.is_new, holder, limits, free_on_disk)?;
        }
        let taken = self.taken();
        if ask.is_new {
            let uploads = limits.max_concurrent_uploads as u64;
            bound(taken.uploads, 1, uploads, || NoRoom::Uploads)?;
            let limit = limits.max_resources as u64;
            bound(taken.resources, 1, limit, || NoRoom::Resources { limit })?;
        }
        if let Some(limit) = limits.capacity.max_total_size {
            bound(taken.bytes, ask.bytes, limit, || NoRoom::Total { limit, taken: taken.bytes })?;
        }
        let Some(on_disk) = free_on_disk else { return Ok(()) };
        let (free, keep) = (on_disk.saturating_sub(self.unwritten()), limits.capacity.min_free_space);
        bound(keep, ask.bytes, free, || NoRoom::Disk { free, keep })
    }

    /// Whether `bytes` more, of a new upload or not, fit into the share of `holder`.
    pub(super) fn check_share(
        &self,
        bytes: u64,
        is_new: bool,
        holder: &Holder,
        limits: &Limits,
        free_on_disk: Option<u64>,
    ) -> Result<(), Shortage> {
        let Some(share) = limits.share else { return Ok(()) };
        let taken = self.taken_by(holder);
        let holder = || holder.clone();
        if is_new {
            let limit = share.of(limits.max_concurrent_uploads as u64);
            bound(taken.uploads, 1, limit, || NoRoom::UploadsOf { holder: holder(), limit })?;
            let limit = share.of(limits.max_resources as u64);
            bound(taken.resources, 1, limit, || NoRoom::ResourcesOf { holder: holder(), limit })?;
        }
        let Some(limit) = self.room_of_share(share, limits, free_on_disk) else { return Ok(()) };
        let no_room = || NoRoom::RoomOf { holder: holder(), limit, taken: taken.bytes };
        bound(taken.bytes, bytes, limit, no_room)
    }

    /// The room of one share, in bytes: of all that there is, taken or not, and never less than one bundle.
    pub(super) fn room_of_share(
        &self,
        share: Share,
        limits: &Limits,
        free_on_disk: Option<u64>,
    ) -> Option<u64> {
        let on_disk = free_on_disk.map(|free| self.room_on_disk(limits, free));
        let room = [limits.capacity.max_total_size, on_disk].into_iter().flatten().min()?;
        Some(share.of(room).max(limits.capacity.max_resource_size))
    }

    /// All that the disk can hold, taken or not, in bytes.
    pub(super) fn room_on_disk(&self, limits: &Limits, free: u64) -> u64 {
        let written = self.taken().bytes.saturating_sub(self.unwritten());
        written.saturating_add(free.saturating_sub(limits.capacity.min_free_space))
    }
}

/// Whether `more` fits in beside what is taken.
fn bound(taken: u64, more: u64, limit: u64, no_room: impl FnOnce() -> NoRoom) -> Result<(), Shortage> {
    let missing = taken.saturating_add(more).saturating_sub(limit);
    if missing == 0 { Ok(()) } else { Err(Shortage { no_room: no_room(), missing }) }
}
