//! Room for an upload: a place at this server, its charges, and free disk space.

use super::capacity::{Beginning, Reservation};
use super::upload::Late;
use super::{Parts, UploadError};
use crate::ledger::PendingResource;
use crate::store::StoreError;
use cloakroom_core::lock::lock;
use cloakroom_core::resource::Holder;

impl Parts {
    /// Takes a place at this server, and adds a row with its charges.
    pub(super) async fn begin_row(
        &self,
        beginning: &Beginning,
        pending: &PendingResource,
    ) -> Result<Reservation, UploadError> {
        let free = self.free_on_disk().await?;
        let reservation = self.capacity.begin(beginning.clone(), free)?;
        lock(&self.own_uploads).insert(beginning.id);
        if let Err(error) = self.ledger.begin(pending.clone()).await {
            // The row may have been written although the ledger returned an error.
            self.abandon(beginning.id, Late::Never).await;
            return Err(error.into());
        }
        Ok(reservation)
    }

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

    async fn free_on_disk(&self) -> Result<Option<u64>, StoreError> {
        Ok(self.storage.space().await?.map(|space| space.free))
    }
}
