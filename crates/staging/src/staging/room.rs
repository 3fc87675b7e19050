//! Room for an upload: its charges in the ledger, a place at this server, and free disk space.

use super::capacity::{Beginning, Hold, NoRoom, Shortage};
use super::lease::Lease;
use super::{Parts, UploadError};
use crate::ledger::{Charge, LedgerError, PendingResource};
use crate::store::StoreError;
use cloakroom_core::resource::{Holder, ResourceId};

impl Parts {
    /// Takes a place at this server, and adds a row with its charges.
    pub(super) async fn begin_row(
        &self,
        beginning: &Beginning,
        pending: &PendingResource,
        lease: &Lease,
    ) -> Result<Result<Hold, Shortage>, UploadError> {
        let free = self.free_on_disk().await?;
        let bytes = beginning.announced.unwrap_or(0);
        let charges = self.capacity.charges(beginning.holder.as_ref(), bytes, free).await?;
        let hold = match self.capacity.begin(beginning.clone(), free) {
            Ok(hold) => hold,
            Err(shortage) => return Ok(Err(self.worse_than(shortage, &charges).await?)),
        };
        match self.ledger.begin(pending.clone(), lease.id(), &charges).await {
            Ok(()) => {
                lease.taken();
                Ok(Ok(hold))
            }
            Err(LedgerError::NoRoom(shortage)) => Ok(Err(shortage.into())),
            Err(error) => {
                // The row may have been written although the ledger returned an error.
                self.give_up(beginning.id, lease.authority()).await;
                Err(error.into())
            }
        }
    }

    /// The shortage to report: the one at this server, or the one in the ledger if that comes first. No upload of
    /// another holder needs to end if the new one is refused anyway.
    async fn worse_than(&self, shortage: Shortage, charges: &[Charge]) -> Result<Shortage, LedgerError> {
        if shortage.no_room.holder().is_some() {
            return Ok(shortage);
        }
        let is_last = matches!(shortage.no_room, NoRoom::Disk { .. });
        match self.ledger.check_room(charges).await {
            Ok(()) => Ok(shortage),
            Err(LedgerError::NoRoom(worse)) => {
                let worse = Shortage::from(worse);
                Ok(if is_last || worse.no_room.holder().is_some() { worse } else { shortage })
            }
            Err(error) => Err(error),
        }
    }

    /// Promises `step` bytes more. If that is too much, promises only `at_least`, the bytes that have arrived.
    pub(super) async fn grow(
        &self,
        hold: &Hold,
        lease: &Lease,
        step: u64,
        at_least: u64,
    ) -> Result<Result<(), Shortage>, UploadError> {
        let free = self.free_on_disk().await?;
        let mut grown = Ok(());
        for bytes in [step, at_least] {
            grown = self.recharge(hold, lease, hold.holder(), hold.reserved() + bytes, free).await?;
            if grown.is_ok() {
                grown = hold.grow(bytes, free);
                if grown.is_ok() {
                    break;
                }
                // The disk has too little room, so the charge goes back to what it was.
                let _ = self.recharge(hold, lease, hold.holder(), hold.reserved(), free).await?;
            }
        }
        Ok(grown)
    }

    async fn recharge(
        &self,
        hold: &Hold,
        lease: &Lease,
        holder: Option<Holder>,
        bytes: u64,
        free_on_disk: Option<u64>,
    ) -> Result<Result<(), Shortage>, UploadError> {
        let charges = self.capacity.charges(holder.as_ref(), bytes, free_on_disk).await?;
        match self.ledger.charge(hold.id(), lease.id(), &charges).await {
            Ok(()) => Ok(Ok(())),
            Err(LedgerError::NoRoom(shortage)) => Ok(Err(shortage.into())),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) async fn pass_to(
        &self,
        hold: &Hold,
        lease: &Lease,
        holder: &Holder,
    ) -> Result<Result<(), Shortage>, UploadError> {
        let free = self.free_on_disk().await?;
        let before = match hold.pass_to(Some(holder.clone())) {
            Ok(before) => before,
            Err(shortage) => return Ok(Err(shortage)),
        };
        let outcome = self.recharge(hold, lease, Some(holder.clone()), hold.reserved(), free).await?;
        if outcome.is_err() {
            // The upload counted for this holder before, so its place is still there.
            let _ = hold.pass_to(before);
        }
        Ok(outcome)
    }

    /// Ends overdue uploads in favour of one that is short of something, and waits for them. Returns an error if that
    /// is not enough, or if the upload itself is told to end.
    pub(super) async fn make_room(&self, id: ResourceId, shortage: Shortage) -> Result<(), UploadError> {
        let departures = self.capacity.end_overdue(id, self.clock.monotonic(), shortage)?;
        self.capacity.wait_for(departures).await
    }

    async fn free_on_disk(&self) -> Result<Option<u64>, StoreError> {
        Ok(self.storage.space().await?.map(|space| space.free))
    }
}
