//! Room for an upload: its charges in the ledger, a place at this server, and free disk space.

use super::capacity::{Beginning, Hold, NoRoom};
use super::upload::Late;
use super::{Parts, UploadError};
use crate::ledger::{Account, Charge, LedgerError, PendingResource};
use crate::store::StoreError;
use cloakroom_core::resource::Holder;

impl Parts {
    /// Takes a place at this server, and adds a row with its charges.
    pub(super) async fn begin_row(
        &self,
        beginning: &Beginning,
        pending: &PendingResource,
    ) -> Result<Hold, UploadError> {
        let free = self.free_on_disk().await?;
        let bytes = beginning.announced.unwrap_or(0);
        let charges = self.charges(beginning.holder.as_ref(), bytes, free).await?;
        let hold = self.capacity.begin(beginning.clone(), free)?.charged_in(&self.ledger);
        self.own_uploads().insert(beginning.id);
        match self.ledger.begin(pending.clone(), &charges).await {
            Ok(()) => Ok(hold),
            Err(LedgerError::NoRoom(shortage)) => {
                self.own_uploads().remove(&beginning.id);
                Err(NoRoom::from(shortage).into())
            }
            Err(error) => {
                // The row may have been written although the ledger returned an error.
                self.abandon(beginning.id, Late::Never).await;
                Err(error.into())
            }
        }
    }

    /// Promises `step` bytes more. If that is too much, promises only `at_least`, the bytes that have arrived.
    pub(super) async fn grow(&self, hold: &Hold, step: u64, at_least: u64) -> Result<(), UploadError> {
        let free = self.free_on_disk().await?;
        match self.grow_by(hold, step, free).await {
            Err(UploadError::NoRoom(_)) => self.grow_by(hold, at_least, free).await,
            grown => grown,
        }
    }

    async fn grow_by(&self, hold: &Hold, bytes: u64, free_on_disk: Option<u64>) -> Result<(), UploadError> {
        self.recharge(hold, hold.reserved() + bytes, free_on_disk).await?;
        let grown = hold.grow(bytes, free_on_disk);
        if grown.is_err() {
            // The disk has too little room, so the charge goes back to what it was.
            self.recharge(hold, hold.reserved(), free_on_disk).await?;
        }
        Ok(grown?)
    }

    async fn recharge(&self, hold: &Hold, bytes: u64, free_on_disk: Option<u64>) -> Result<(), UploadError> {
        let charges = self.charges(hold.holder().as_ref(), bytes, free_on_disk).await?;
        Ok(self.ledger.charge(hold.id(), &charges).await?)
    }

    pub(super) async fn pass_to(&self, hold: &Hold, holder: &Holder) -> Result<(), UploadError> {
        let free = self.free_on_disk().await?;
        let before = hold.pass_to(Some(holder.clone()))?;
        let outcome = self.recharge(hold, hold.reserved(), free).await;
        if outcome.is_err() {
            // The upload counted for this holder before, so its place is still there.
            let _ = hold.pass_to(before);
        }
        outcome
    }

    async fn charges(
        &self,
        holder: Option<&Holder>,
        bytes: u64,
        free_on_disk: Option<u64>,
    ) -> Result<Vec<Charge>, LedgerError> {
        let taken = self.ledger.charged(&Account::Bytes).await?;
        Ok(self.capacity.charges(holder, bytes, taken, free_on_disk))
    }

    async fn free_on_disk(&self) -> Result<Option<u64>, StoreError> {
        Ok(self.storage.space().await?.map(|space| space.free))
    }
}
