//! The way out.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use jiff::{SignedDuration, Timestamp};

use super::lease::Lease;
use super::transfers::Transfer;
use super::{AccessError, Parts, Staging};
use crate::ledger::LedgerError;
use crate::store::{StoreError, StoredBlob};
use cloakroom_core::resource::{BlobKey, Holder, Ready, Resource, ResourceId, ResourceSecret};
use cloakroom_core::text::chain;

/// Downloads within this time of one that was noted count as the same use: a thousand executors that start together, or
/// one client that asks for a range after another, cost one write.
const SAME_USE: SignedDuration = SignedDuration::from_secs(1);

/// A bundle that is being sent. As long as it lives, the resource is not deleted by the cleaner; what deletes it
/// all the same does not break the download, because the bytes are open.
pub struct Download {
    resource: Resource<Ready>,
    blob: Box<dyn StoredBlob>,
    lease: Lease,
    transfer: Transfer,
}

impl Staging {
    /// Opens a bundle. It counts as a use only with [`Staging::mark_used`].
    pub async fn open_download(
        &self,
        id: ResourceId,
        secret: &ResourceSecret,
    ) -> Result<Download, AccessError> {
        let resource = self.find(id, secret).await?;
        let holder = Holder::namespace(resource.stage.owner.namespace());
        let transfer = self.parts.transfers.begin_download(id, holder)?;
        let lease = self.parts.leases.new_lease();
        if !self.parts.ledger.hold(id, lease.id()).await? {
            // Its deletion was decided after the look-up: the ledger knows why.
            self.find(id, secret).await?;
            return Err(AccessError::NotFound);
        }
        lease.taken();
        match self.parts.storage.blobs.open(BlobKey::of(id)).await? {
            Some(blob) if blob.size_bytes() == resource.stage.bundle.size_bytes => {
                Ok(Download { resource, blob, lease, transfer })
            }
            _ => {
                // Deleted between the look-up and the opening, or damaged from outside: the ledger knows.
                self.find(id, secret).await?;
                Err(AccessError::BytesLost { id })
            }
        }
    }

    /// Notes that bytes of the resource are about to be sent. Unless the ledger cannot be written, the use is durable when
    /// this returns, because it changes when the resource goes; or one of the same second is.
    pub async fn mark_used(&self, download: &Download) -> Result<(), AccessError> {
        let (id, last_used_at) = (download.resource.id, download.resource.stage.history.last_used_at);
        let now = self.parts.clock.now();
        let is_noted = |last: Timestamp| last <= now && now.duration_since(last) < SAME_USE;
        if last_used_at.is_some_and(is_noted) || self.note_use(id, now).await {
            return Ok(());
        }
        let ending = self.parts.ledger.find(id).await?.and_then(|resource| resource.ending());
        Err(ending.map_or(AccessError::NotFound, |ending| AccessError::gone(id, ending)))
    }

    /// A ledger that cannot be written, because the disk is full or for another reason, is no reason to refuse a download:
    /// what cannot be written down is kept in mind. On a full disk the reserve is for deletions, which make room.
    async fn note_use(&self, id: ResourceId, now: Timestamp) -> bool {
        match self.parts.ledger.mark_used(id, now).await {
            Ok(is_there) => is_there,
            Err(error) => {
                let mut unwritten = self.parts.unwritten_uses();
                if unwritten.is_empty() {
                    tracing::warn!(
                        resource_id = %id, error = %chain(&error),
                        "a download could not be noted: it is kept in mind, as those after it, until a sweep can write it down"
                    );
                }
                unwritten.insert(id, now);
                true
            }
        }
    }
}

impl Parts {
    pub(super) fn unwritten_uses(&self) -> MutexGuard<'_, BTreeMap<ResourceId, Timestamp>> {
        self.unwritten_uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down what there was no room for.
    pub(super) async fn write_uses(&self) -> Result<(), AccessError> {
        let uses = self.unwritten_uses().clone();
        for (id, at) in uses {
            match self.ledger.mark_used(id, at).await {
                Err(LedgerError::Full) => return Ok(()),
                // A row that takes no change holds up no others.
                Err(error @ LedgerError::Refused(_)) => {
                    tracing::warn!(resource_id = %id, error = %chain(&error), "a download could not be noted");
                }
                written => drop(written?),
            }
            self.unwritten_uses().remove(&id);
        }
        Ok(())
    }
}

impl Download {
    /// What is being sent.
    pub fn resource(&self) -> &Resource<Ready> {
        &self.resource
    }

    /// Its length.
    pub fn size_bytes(&self) -> u64 {
        self.blob.size_bytes()
    }

    /// The bytes in `range`. The download goes on until this is dropped.
    pub fn read(self, range: Range<u64>) -> impl Stream<Item = Result<Bytes, StoreError>> + Send + use<> {
        let Self { blob, lease, transfer, .. } = self;
        blob.read(range).inspect(move |_| {
            let _going_on = (&lease, &transfer);
        })
    }
}
