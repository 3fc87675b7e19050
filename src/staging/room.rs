//! Room for an upload: charges in the ledger, and a place and free disk at this server.

use super::capacity::{Beginning, Hold, Shortage};
use super::lease::Lease;
use super::{Parts, StageError};
use crate::ledger::{LedgerError, PendingResource};
use crate::resource::{Holder, ResourceId};
use crate::store::StoreError;

impl Parts {
    /// A place, and a row with what it is charged.
    pub(super) async fn begin_row(
        &self,
        beginning: &Beginning,
        pending: &PendingResource,
        lease: &Lease,
    ) -> Result<Result<Hold, Shortage>, StageError> {
        let free = self.free_on_disk().await?;
        let bytes = beginning.announced.unwrap_or(0);
        let charges = self.capacity.charges(beginning.holder.as_ref(), bytes, free).await?;
        let place = self.capacity.begin(beginning.clone(), free);
        let begun = match &place {
            Ok(_) => self.ledger.begin(pending.clone(), lease.id(), &charges).await,
            Err(shortage) if shortage.no_room.holder().is_some() => Ok(()),
            // Other holders' uploads end for this one only if a place is all that is missing.
            Err(_) => self.ledger.charge(lease.id(), &charges).await,
        };
        Ok(or_shortage(begun)?.and(place))
    }

    /// Promises `step` bytes more, or where that does not fit those that are here, `at_least`.
    pub(super) async fn grow(
        &self,
        hold: &Hold,
        lease: &Lease,
        step: u64,
        at_least: u64,
    ) -> Result<Result<(), Shortage>, StageError> {
        let free = self.free_on_disk().await?;
        let mut grown = Ok(());
        for bytes in [step, at_least] {
            let (reserved, holder) = (hold.reserved(), hold.holder());
            let charges = self.capacity.charges(holder.as_ref(), reserved + bytes, free).await?;
            grown = or_shortage(self.ledger.charge(lease.id(), &charges).await)?
                .and_then(|()| hold.grow(bytes, free));
            if grown.is_ok() {
                break;
            }
        }
        Ok(grown)
    }

    pub(super) async fn pass_to(
        &self,
        hold: &Hold,
        lease: &Lease,
        holder: &Holder,
    ) -> Result<Result<(), Shortage>, StageError> {
        let free = self.free_on_disk().await?;
        let before = match hold.pass_to(Some(holder.clone())) {
            Ok(before) => before,
            Err(shortage) => return Ok(Err(shortage)),
        };
        let charges = self.capacity.charges(Some(holder), hold.reserved(), free).await?;
        let outcome = or_shortage(self.ledger.charge(lease.id(), &charges).await)?;
        if outcome.is_err() {
            // It had its place before, and so it has it again.
            let _ = hold.pass_to(before);
        }
        Ok(outcome)
    }

    /// Ends uploads that are overdue for one that is short of something, and waits for them. An error if that is not enough, or
    /// if the upload itself is to end.
    pub(super) async fn make_room(&self, id: ResourceId, shortage: Shortage) -> Result<(), StageError> {
        let departures = self.capacity.end_overdue(id, self.clock.monotonic(), shortage)?;
        self.capacity.wait_for(departures).await
    }

    async fn free_on_disk(&self) -> Result<Option<u64>, StoreError> {
        Ok(self.storage.space().await?.map(|space| space.free))
    }
}

/// Too little room is no failure yet.
fn or_shortage(charged: Result<(), LedgerError>) -> Result<Result<(), Shortage>, StageError> {
    match charged {
        Ok(()) => Ok(Ok(())),
        Err(LedgerError::NoRoom(shortage)) => Ok(Err(shortage.into())),
        Err(error) => Err(error.into()),
    }
}
