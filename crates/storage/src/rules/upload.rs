//! Uploads: from the first limit to the acknowledgement.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tracing::Instrument as _;

use super::counted::CountedWriter;
use super::room::{Beginning, Reservation};
use super::{AccessError, Parts, Staging, UploadError};
use crate::ledger::{Abandoned, Completion, Finish, LedgerError, PendingResource};
use crate::store::{Begun, StoreError};
use cloakroom_core::client::Client;
use cloakroom_core::lock::lock;
use cloakroom_core::metrics::UploadMeasurement;
use cloakroom_core::resource::{
    BlobKey, Bundle, FileName, Holder, Lifetime, Owner, ResourceId, ResourceSecret, UploadHandle,
};
use cloakroom_core::text::chain;

/// What is known when an upload begins.
#[derive(Debug, Clone, Default)]
pub struct NewUpload {
    /// Its length in bytes; `None` if the client did not announce it.
    pub announced_bytes: Option<u64>,
    /// The name that it is uploaded under; `None` if the client gave none.
    pub file_name: Option<FileName>,
    /// The secret that the client has chosen; `None` makes one.
    pub secret: Option<ResourceSecret>,
    /// Who uploads it: a user, a named token, or the address of the peer.
    pub uploaded_by: Option<String>,
    /// For whom it counts, if there are shares.
    pub holder: Option<Holder>,
    /// The client that takes turns with others. Where holders have shares, the holder takes its place.
    pub client: Client,
}

/// What must be known before an upload can be acknowledged.
#[derive(Debug, Clone)]
pub struct Terms {
    /// The objects that the resource will live for.
    pub owner: Owner,
    /// How long it may stay.
    pub lifetime: Lifetime,
    /// The SHA-256 that the client announced; `None` if it announced none.
    pub expected_sha256: Option<[u8; 32]>,
}

/// An acknowledged resource, with the only copy of its secret.
#[derive(Debug)]
pub struct Staged {
    /// Its public name.
    pub id: ResourceId,
    /// The secret that downloads need.
    pub secret: ResourceSecret,
    /// Length and digest of its bytes.
    pub bundle: Bundle,
    /// When it was acknowledged.
    pub created_at: Timestamp,
    /// When it expires if it is never downloaded.
    pub expires_at: Timestamp,
}

/// An upload in flight. If it is dropped without [`Upload::finish`], nothing of it is kept.
pub struct Upload {
    parts: Arc<Parts>,
    id: ResourceId,
    secret: ResourceSecret,
    announced_bytes: Option<u64>,
    taken_bytes: u64,
    /// Taken out when the upload is finished or abandoned.
    progress: Option<Progress>,
}

/// Whether the bytes of an upload that was abandoned may still appear in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Late {
    /// They cannot: the commit did not begin, or the store has said how it ended.
    Never,
    /// The commit may be on its way.
    Maybe,
}

struct Progress {
    writer: CountedWriter,
    reservation: Reservation,
}

impl Staging {
    /// Begins an upload: checks the limits, reserves room for the announced length, and writes the `pending` row.
    pub async fn begin_upload(&self, new: NewUpload) -> Result<Upload, UploadError> {
        let parts = Arc::clone(&self.parts);
        let (id, secret) = {
            let mut random = rand::rng();
            let secret = new.secret.unwrap_or_else(|| ResourceSecret::generate(&mut random));
            (ResourceId::generate(&mut random), secret)
        };
        parts.check_size(new.announced_bytes.unwrap_or(0))?;
        parts.check_bucket()?;
        let announced_bytes = new.announced_bytes;
        let holder = new.holder.filter(|_| parts.capacity.has_shares());
        let client = holder.clone().map_or(new.client, Client::Holder);
        let beginning = Beginning { id, holder, announced: announced_bytes };
        let pending = PendingResource {
            id,
            secret_hash: secret.hash(),
            file_name: new.file_name,
            created_at: parts.clock.now(),
            uploaded_by: new.uploaded_by,
        };
        let waiting = Arc::clone(&parts);
        // This task continues if the caller is dropped, because an upload that has begun must be cleaned up. The new
        // `Upload` is then dropped at once, which does that.
        let begun = async move {
            let progress = parts.begin(&beginning, &pending, &client).await?;
            let progress = Some(progress);
            Ok(Upload { parts, id, secret, announced_bytes, taken_bytes: 0, progress })
        };
        let work = waiting.background.spawn(begun.in_current_span());
        waiting.unless_stalled(work).await?.map_err(|_| UploadError::Store(StoreError::Stopping))?
    }
}

impl Upload {
    /// Its public name.
    pub fn id(&self) -> ResourceId {
        self.id
    }

    /// How many bytes were taken so far.
    pub fn taken_bytes(&self) -> u64 {
        self.taken_bytes
    }

    /// Makes the upload count for another holder, which was not known when the upload began.
    pub async fn pass_to(&mut self, holder: &Holder) -> Result<(), UploadError> {
        let Some(Progress { reservation, .. }) = &self.progress else { return Ok(()) };
        if self.parts.capacity.has_shares() { self.parts.pass_to(reservation, holder).await } else { Ok(()) }
    }

    /// Takes the next bytes, which the client has sent, as far as the limits allow.
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), UploadError> {
        let length = bytes.len() as u64;
        self.take(bytes).await?;
        self.parts.metrics.upload_received(length);
        Ok(())
    }

    /// Takes the next bytes, which are a copy of another bundle's.
    pub async fn write_copied(&mut self, bytes: Bytes) -> Result<(), UploadError> {
        let length = bytes.len() as u64;
        self.take(bytes).await?;
        self.parts.metrics.upload_copied(length);
        Ok(())
    }

    async fn take(&mut self, bytes: Bytes) -> Result<(), UploadError> {
        let length = bytes.len() as u64;
        self.parts.check_size(self.taken_bytes.saturating_add(length))?;
        let progress = self.progress.as_mut().ok_or(UploadError::Store(StoreError::Stopping))?;
        let missing = progress.reservation.missing_for(length);
        if missing > 0 {
            let step = missing.min(self.parts.capacity.max_resource_size() - self.taken_bytes);
            self.parts.grow(&progress.reservation, step, length).await?;
        }
        progress.writer.write(bytes).await?;
        progress.reservation.written(length);
        self.taken_bytes += length;
        Ok(())
    }

    /// Checks the bytes against what was announced, makes them durable, and acknowledges them. On an error nothing is
    /// kept.
    ///
    /// The work continues if the caller is dropped, because between rename and commit there is no safe point to stop. A
    /// resource whose client is gone expires unused. `measured` counts it as stored all the same, and `admission` is dropped
    /// when the work has ended.
    pub async fn finish(
        mut self,
        terms: Terms,
        measured: UploadMeasurement,
        admission: impl Send + 'static,
    ) -> Result<Staged, UploadError> {
        let stopping = || UploadError::Store(StoreError::Stopping);
        let progress = self.progress.take().ok_or_else(stopping)?;
        let acknowledgement = Acknowledgement {
            parts: Arc::clone(&self.parts),
            id: self.id,
            secret: self.secret.clone(),
            announced_bytes: self.announced_bytes,
            terms,
            measured,
        };
        // The log lines of the last steps have the id of the request, too.
        let acknowledged = async move {
            let staged = acknowledgement.run(progress).await;
            drop(admission);
            staged
        };
        let work = self.parts.background.spawn(acknowledged.in_current_span());
        self.parts.unless_stalled(work).await?.map_err(|_| stopping())?
    }

    /// Gives the upload up, and waits until nothing of it is left, unless that takes long.
    pub async fn abandon(mut self) {
        if let Some(Progress { writer, reservation }) = self.progress.take() {
            drop(writer);
            not_long(self.parts.clean_up(self.id, reservation, Late::Never)).await;
        }
    }
}

/// The client went away, so the upload is cleaned up in the background.
impl Drop for Upload {
    fn drop(&mut self) {
        let Some(Progress { writer, reservation }) = self.progress.take() else { return };
        drop(writer);
        if tokio::runtime::Handle::try_current().is_ok() {
            self.parts.clean_up(self.id, reservation, Late::Never);
        }
    }
}

/// The last steps of an upload.
struct Acknowledgement {
    parts: Arc<Parts>,
    id: ResourceId,
    secret: ResourceSecret,
    announced_bytes: Option<u64>,
    terms: Terms,
    measured: UploadMeasurement,
}

impl Acknowledgement {
    async fn run(self, progress: Progress) -> Result<Staged, UploadError> {
        let Progress { writer, reservation } = progress;
        let mut late = Late::Never;
        match self.store(writer, &reservation, &mut late).await {
            Ok(staged) => {
                drop(reservation);
                self.measured.stored();
                Ok(staged)
            }
            Err(error) => {
                not_long(self.parts.clean_up(self.id, reservation, late)).await;
                Err(error)
            }
        }
    }

    /// If nothing is known of the commit, `late` says so.
    async fn store(
        &self,
        writer: CountedWriter,
        reservation: &Reservation,
        late: &mut Late,
    ) -> Result<Staged, UploadError> {
        let bundle = writer.bundle();
        if let Some(announced) = self.announced_bytes.filter(|announced| *announced != bundle.size_bytes) {
            return Err(UploadError::WrongLength { announced, received: bundle.size_bytes });
        }
        if self.terms.expected_sha256.is_some_and(|expected| expected != bundle.sha256) {
            return Err(UploadError::DigestMismatch);
        }
        if let Err(error) = writer.commit().await {
            if matches!(error, StoreError::Unavailable(_)) {
                *late = Late::Maybe;
            }
            return Err(error.into());
        }
        if !reservation.begin_completion() {
            return Err(UploadError::Abandoned);
        }
        let created_at = self.parts.clock.now();
        let Terms { owner, lifetime, .. } = self.terms.clone();
        let completion = Completion { id: self.id, owner, bundle, lifetime, created_at };
        self.parts.ledger.complete(completion).await?;
        lock(&self.parts.own_uploads).remove(&self.id);
        let expires_at = lifetime.expiry_if_unused(created_at);
        Ok(Staged { id: self.id, secret: self.secret.clone(), bundle, created_at, expires_at })
    }
}

impl Parts {
    pub(super) fn check_size(&self, bytes: u64) -> Result<(), UploadError> {
        let limit = self.capacity.max_resource_size();
        if bytes > limit { Err(UploadError::TooLarge { limit }) } else { Ok(()) }
    }

    /// Takes the room, adds the row, and begins the blob, in this order.
    async fn begin(
        self: &Arc<Self>,
        beginning: &Beginning,
        pending: &PendingResource,
        client: &Client,
    ) -> Result<Progress, UploadError> {
        let id = beginning.id;
        let reservation = self.begin_row(beginning, pending).await?;
        match self.begin_blob(BlobKey::for_resource(id), beginning.announced, client, &reservation).await {
            Ok(writer) => Ok(Progress { writer, reservation }),
            Err(error) => {
                not_long(self.clean_up(id, reservation, Late::Never)).await;
                Err(error)
            }
        }
    }

    /// Takes a place at this server, and adds a row with its charges.
    async fn begin_row(
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

    async fn begin_blob(
        &self,
        key: BlobKey,
        length: Option<u64>,
        client: &Client,
        reservation: &Reservation,
    ) -> Result<CountedWriter, UploadError> {
        let (id, blobs) = (key.resource(), &self.storage.blobs);
        let Begun { writer, handle } = blobs.begin(key, length, client).await?;
        if let Some(handle) = handle
            && let Err(error) = self.note_handle(reservation, handle.clone()).await
        {
            // No other part knows the handle, so the upload must be aborted here.
            drop(writer);
            if let Err(error) = blobs.abort(key, Some(&handle)).await {
                tracing::warn!(resource_id = %id, error = %chain(&error), "could not abort a broken upload");
            }
            return Err(error.into());
        }
        Ok(CountedWriter::new(writer, self.turns.clone(), client.clone()))
    }

    /// A handle that comes too late would be of no use to who gave the upload up.
    async fn note_handle(&self, reservation: &Reservation, handle: UploadHandle) -> Result<(), LedgerError> {
        let id = reservation.id();
        if reservation.is_given_up() {
            return Err(LedgerError::Abandoned { id });
        }
        self.ledger.note_handle(id, handle).await
    }

    /// Begins to remove what is left of an upload that failed. It is in flight until that has ended, so no sweep does the
    /// same.
    fn clean_up(self: &Arc<Self>, id: ResourceId, reservation: Reservation, late: Late) -> JoinHandle<()> {
        reservation.give_up();
        let parts = Arc::clone(self);
        let removed = async move {
            parts.abandon(id, late).await;
            drop(reservation);
        };
        self.background.spawn(removed.in_current_span())
    }

    /// Removes bytes and row of an upload that was not acknowledged. If it fails, the next sweep tries again.
    pub(super) async fn abandon(&self, id: ResourceId, late: Late) {
        if let Err(error) = self.remove_unacknowledged(id, late).await {
            tell_of_broken_upload(id, &error);
        }
    }

    /// Removes the bytes of an upload that nothing can complete any more: it was given up, or is not in flight. No step
    /// before that needs disk space, so this makes room on a full disk. If the commit succeeded but its answer got
    /// lost, the upload is acknowledged: it cannot be abandoned, and keeps its bytes. Returns `false` for that.
    pub(super) async fn remove_unacknowledged(
        &self,
        id: ResourceId,
        late: Late,
    ) -> Result<bool, AccessError> {
        let Some(abandoned) = self.ledger.abandon(id).await? else { return Ok(false) };
        self.remove_abandoned(id, &abandoned, late).await?;
        Ok(true)
    }

    /// Removes the bytes and then the row of an upload that was abandoned.
    pub(super) async fn remove_abandoned(
        &self,
        id: ResourceId,
        abandoned: &Abandoned,
        late: Late,
    ) -> Result<(), AccessError> {
        self.storage.blobs.abort(BlobKey::for_resource(id), abandoned.handle.as_ref()).await?;
        let late = (late == Late::Maybe).then(|| self.clock.now());
        self.ledger.finish(id, Finish::Abandoned { late }).await?;
        lock(&self.own_uploads).remove(&id);
        Ok(())
    }
}

/// Waits for a clean-up. A client that has waited in vain for the storage is not kept waiting for it once more.
async fn not_long(clean_up: JoinHandle<()>) {
    const LONG: Duration = Duration::from_secs(2);
    // It goes on.
    let _ = timeout(LONG, clean_up).await;
}

pub(super) fn tell_of_broken_upload(id: ResourceId, error: &AccessError) {
    tracing::warn!(
        resource_id = %id, error = %chain(error), "could not clean up a broken upload; the next sweep will"
    );
}
