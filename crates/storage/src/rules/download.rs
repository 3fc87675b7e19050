//! Downloads: opening a bundle, reading it, and recording that it was used.

use std::ops::Range;

use bytes::Bytes;
use futures_util::Stream;
use jiff::{SignedDuration, Timestamp};

use super::transfers::{Decision, Gate, OpenBlob, Pieces, Transfer};
use super::{AccessError, Parts, Staging};
use crate::ledger::LedgerError;
use crate::store::{BlobStream, StoreError};
use cloakroom_core::client::Client;
use cloakroom_core::lock::lock;
use cloakroom_core::resource::{BlobKey, Holder, Ready, Resource, ResourceId, State};
use cloakroom_core::text::chain;

/// A download within this time of a recorded one counts as the same use. So a thousand executors that start together,
/// or a client that asks for one range after another, cost one write.
const SAME_USE: SignedDuration = SignedDuration::from_secs(1);

/// A bundle that is being sent. While it exists, the cleaner deletes the resource only at its `ttl` or the largest age. A
/// deletion waits for it before the bytes go, but not for longer than [`Limits::deletion_wait`](super::Limits).
pub struct Download {
    resource: Resource<Ready>,
    bytes: BlobStream,
    transfer: Transfer,
}

impl Staging {
    /// Opens ranges of the bundle of a resource that [`Staging::find`] has found. Their first bytes are there when this returns.
    /// It counts as a use only when [`Staging::mark_used`] is called. `client` waits for memory, if there are no shares.
    pub async fn open_download(
        &self,
        resource: Resource<Ready>,
        ranges: Vec<Range<u64>>,
        client: Client,
    ) -> Result<Download, AccessError> {
        let (id, size_bytes) = (resource.id, resource.data.bundle.size_bytes);
        let holder = Holder::namespace(resource.data.owner.namespace());
        // Without shares, the owner's namespace is only what the uploader claimed.
        let has_shares = self.parts.capacity.has_shares();
        let client = if has_shares { Client::Holder(holder.clone()) } else { client };
        let Some(transfer) = self.parts.begin_download(id, &holder).await? else {
            return Err(self.parts.gone_since(&resource).await?.unwrap_or(AccessError::NotFound));
        };
        match self.parts.storage.blobs.open(BlobKey::for_resource(id), size_bytes, ranges, &client).await {
            Ok(bytes) => Ok(Download { resource, bytes, transfer }),
            // It was deleted since it was found, or its bytes were damaged from outside.
            Err(StoreError::Missing(source)) => {
                let gone = self.parts.gone_since(&resource).await?;
                Err(gone.unwrap_or(AccessError::BytesLost { id, source }))
            }
            Err(error) => Err(AccessError::Store(error)),
        }
    }

    /// Records a use, before any bytes are sent. The use is durable when this returns, because it changes when the
    /// resource expires. There are two exceptions: a use of the same second is recorded already, or the ledger on this
    /// disk cannot be written.
    pub async fn mark_used(&self, resource: &Resource<Ready>) -> Result<(), AccessError> {
        let (id, last_used_at) = (resource.id, resource.data.history.last_used_at);
        let now = self.parts.clock.now();
        let is_noted = |last: Timestamp| last <= now && now.duration_since(last) < SAME_USE;
        if last_used_at.is_some_and(is_noted) {
            return Ok(());
        }
        match self.parts.unless_stalled(self.note_use(id, now)).await {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            // Only the first use must not get lost: from then on the owner decides.
            Err(LedgerError::Stalled) if last_used_at.is_some() => {
                lock(&self.parts.unwritten_uses).insert(id, now);
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
        Err(self.parts.gone_since(resource).await?.unwrap_or(AccessError::NotFound))
    }

    /// Writes a use to the ledger. If the ledger cannot be written, for instance on a full disk, the download is not
    /// refused: the use is kept in memory. On a full disk the reserve is for deletions, because they make room.
    async fn note_use(&self, id: ResourceId, now: Timestamp) -> bool {
        match self.parts.ledger.mark_used(id, now).await {
            Ok(is_there) => is_there,
            Err(error) => {
                let mut unwritten = lock(&self.parts.unwritten_uses);
                if unwritten.is_empty() {
                    tracing::warn!(
                        resource_id = %id, error = %chain(&error),
                        "a download could not be noted: it and later ones are kept in memory until a sweep can write them"
                    );
                }
                unwritten.insert(id, now);
                true
            }
        }
    }
}

impl Parts {
    /// Registers a download; `None` if the resource is deleted. While a deletion is being decided, waits for that.
    async fn begin_download(&self, id: ResourceId, holder: &Holder) -> Result<Option<Transfer>, AccessError> {
        loop {
            match self.transfers.begin_download(id, holder)? {
                Gate::Open(transfer) => return Ok(Some(transfer)),
                Gate::Closed => return Ok(None),
                Gate::Closing(decided) => decided.cancelled().await,
                Gate::Unknown(decision) => drop(self.settle(decision).await?),
            }
        }
    }

    /// Ends a decision by what the row says, because it is not known what the ledger has written. Returns whether the resource is
    /// deleted.
    pub(super) async fn settle(&self, decision: Decision) -> Result<bool, LedgerError> {
        let state = match self.find(decision.id()).await {
            Err(LedgerError::Unreadable(row)) => row.state,
            found => found?.map(|resource| resource.state()).or(Some(State::Deleted)),
        };
        let is_deleted = matches!(state, Some(State::Deleting | State::Deleted));
        decision.is(is_deleted);
        Ok(is_deleted)
    }

    /// How a resource has ended since it was found; `None` if it has not.
    pub(super) async fn gone_since(
        &self,
        found: &Resource<Ready>,
    ) -> Result<Option<AccessError>, AccessError> {
        let id = found.id;
        let ending = match self.find(id).await? {
            Some(resource) => resource.ending().or_else(|| self.ended_by_age(found)),
            None => return Ok(Some(AccessError::NotFound)),
        };
        Ok(ending.map(|ending| AccessError::gone(id, ending)))
    }

    /// Whether a use of this resource could not be written yet.
    pub(super) fn has_unwritten_use(&self, id: ResourceId) -> bool {
        lock(&self.unwritten_uses).contains_key(&id)
    }

    /// Writes the uses that could not be written before.
    pub(super) async fn write_uses(&self) -> Result<(), AccessError> {
        let uses = lock(&self.unwritten_uses).clone();
        for (id, at) in uses {
            match self.ledger.mark_used(id, at).await {
                Err(LedgerError::Full) => return Ok(()),
                // A row that refuses the change must not hold up the others.
                Err(error @ LedgerError::Refused(_)) => {
                    tracing::warn!(resource_id = %id, error = %chain(&error), "a download could not be noted");
                }
                written => drop(written?),
            }
            let mut uses = lock(&self.unwritten_uses);
            // A later one may have come meanwhile.
            if uses.get(&id) == Some(&at) {
                uses.remove(&id);
            }
        }
        Ok(())
    }
}

impl Download {
    /// The resource that is being sent.
    pub fn resource(&self) -> &Resource<Ready> {
        &self.resource
    }

    /// The bytes of the ranges, no piece of two. The download is in flight until the stream is dropped.
    pub fn read(self) -> impl Stream<Item = Result<Bytes, StoreError>> + Send + use<> {
        let Self { bytes, transfer, .. } = self;
        Pieces::new(Transfer::reading(OpenBlob { pieces: bytes, transfer }))
    }
}
