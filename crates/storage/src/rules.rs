//! Stages, opens, releases and recovers resources. Only this room joins ledger and store, and knows the order that
//! makes them durable.
//!
//! An upload: row `pending` → bytes → sync → rename → sync of the folder → row `ready`, committed → answer.
//!
//! A deletion: row `deleting` → the last download ends → bytes removed → row `deleted`, the tombstone.
//!
//! A broken upload is given up, so that nothing here completes it; what was asked of the ledger before is then waited for, its
//! bytes are removed, and its row last.
//! [`Staging::recover`] finishes what a crash interrupts, at start and before every sweep.

mod claim;
mod counted;
mod download;
mod error;
mod read_keys;
mod recover;
mod release;
mod room;
mod shares;
mod stock;
mod strays;
mod transfers;
mod upload;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::sync::{Arc, Mutex};
use std::thread::available_parallelism;
use std::time::Duration;

use jiff::Timestamp;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::ledger::{
    Chosen, Fact, Forgotten, Ledger, LedgerError, Mirror as _, Observation, Page, UnreadableRow, WatchScope,
};
use crate::ready::{Listed, ReadyResources, Unreadable};
use crate::store::Storage;
use crate::turns::Turns;
use claim::Claim;
use cloakroom_core::clock::{Clock, Readings, SteadyTime};
use cloakroom_core::lock::lock;
use cloakroom_core::metrics::Metrics;
use cloakroom_core::resource::{
    DeletionReason, Ending, Owner, Ready, Resource, ResourceId, ResourceSecret, State,
};
use cloakroom_core::text::chain;
use room::Capacity;
use transfers::Transfers;

pub use claim::{ClaimError, Ownership, check_new_ledger};
pub use download::Download;
pub use error::{AccessError, UploadError};
pub use recover::{DELETIONS_AT_ONCE, Recovered};
pub use release::Authority;
pub use room::{CapacityLimits, LEAST_CHARGE, NoRoom};
pub use shares::{Share, ShareError};
pub use strays::StraysGo;
pub use upload::{NewUpload, Staged, Terms, Upload};

/// How long a tombstone answers for its ticket.
pub const TOMBSTONE_LIFE: Duration = Duration::from_hours(7 * 24);

const LEAST_OWNER_MEMORY_BYTES: u64 = 64 << 20;

/// Memory for owners, in bytes, on a server that may have `max_resources`: 64 MiB, or 640 bytes for each resource if that
/// is more. A usual owner takes 300, but clients may make it 4 KiB long.
pub fn owner_memory_bytes(max_resources: usize) -> u64 {
    const FOR_EACH: u64 = 640;
    (max_resources as u64).saturating_mul(FOR_EACH).max(LEAST_OWNER_MEMORY_BYTES)
}

/// How many tombstones stay at most for each of `--max-resources`. If there are more, the namespace that has most of
/// them loses its oldest ones.
pub const TOMBSTONES_FOR_EACH: usize = 2;

/// The limits of this server.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The limits of room for bundles.
    pub capacity: CapacityLimits,
    /// The largest number of resources, with the uploads in flight.
    pub max_resources: usize,
    /// Memory for the owners of all resources together, in bytes; see [`owner_memory_bytes`].
    pub owner_memory_bytes: u64,
    /// The largest number of uploads at once.
    pub max_concurrent_uploads: usize,
    /// The largest number of downloads at once.
    pub max_concurrent_downloads: usize,
    /// How much of these limits one holder may have; `None` is all of it.
    pub share: Option<Share>,
    /// How long downloads may go on after their resource was deleted.
    pub deletion_wait: Duration,
    /// The largest age of any resource; `None` is no limit.
    pub max_age: Option<Duration>,
}

/// The staged resources. Clones are handles to the same resources.
#[derive(Clone)]
pub struct Staging {
    parts: Arc<Parts>,
    stamping: Arc<AbortOnDropHandle<()>>,
}

struct Parts {
    ledger: Arc<dyn Ledger>,
    ready: Arc<ReadyResources>,
    storage: Storage,
    clock: Arc<dyn Clock>,
    time: Mutex<SteadyTime>,
    capacity: Arc<Capacity>,
    transfers: Arc<Transfers>,
    claim: Claim,
    /// Tasks that begin and acknowledge uploads, and that clean up after uploads whose client went away.
    background: TaskTracker,
    /// Uploads that this process began and has not acknowledged, nor removed: they stay here if a clean-up fails.
    own_uploads: Mutex<BTreeSet<ResourceId>>,
    /// Uses that could not be written. The next sweep tries again.
    unwritten_uses: Mutex<BTreeMap<ResourceId, Timestamp>>,
    /// The resource of the last look-up by a ticket, if the ledger failed in it.
    failed_look_up: Mutex<Option<ResourceId>>,
    metrics: Metrics,
    /// At the bytes of uploads. Half of the processors is for what receives and writes them.
    turns: Turns,
    limits: Limits,
}

impl Staging {
    /// Joins a ledger and a store that belong together, and reads what is ready.
    pub async fn open(
        ledger: Arc<dyn Ledger>,
        storage: Storage,
        clock: Arc<dyn Clock>,
        limits: Limits,
        metrics: Metrics,
        ownership: Ownership,
    ) -> Result<Self, ClaimError> {
        metrics.deletions_have(DeletionReason::ALL.iter().map(|reason| reason.as_str()));
        let ready = Arc::new(ReadyResources::new(limits.capacity.least_charge));
        ledger.follow(Arc::clone(&ready) as _);
        ready.load(&*ledger).await?;
        let knows = ready.taken().resources;
        let claim = Claim::check(&ledger, knows, &storage, ownership, metrics.clone()).await?;
        let capacity = Arc::new(Capacity::new(limits, Arc::clone(&ready)));
        let transfers = Arc::new(Transfers::new(limits));
        let background = TaskTracker::new();
        let time = Mutex::new(SteadyTime::new(&*clock));
        let processors = available_parallelism().map_or(1, NonZero::get);
        let parts = Parts {
            ledger,
            ready,
            storage,
            clock,
            time,
            capacity,
            transfers,
            claim,
            background,
            own_uploads: Mutex::default(),
            unwritten_uses: Mutex::default(),
            failed_look_up: Mutex::default(),
            metrics,
            turns: Turns::between_clients(processors.div_ceil(2)),
            limits,
        };
        parts.tell_of_unreadable();
        parts.begin_claim().await;
        let parts = Arc::new(parts);
        let stamping = AbortOnDropHandle::new(tokio::spawn(claim::keep_stamping(Arc::downgrade(&parts))));
        Ok(Self { parts, stamping: Arc::new(stamping) })
    }

    /// The task in the background that has ended. None ends by itself.
    pub fn ended_task(&self) -> Option<&'static str> {
        self.stamping.is_finished().then_some("the stamps")
    }

    /// Returns an error if there is no memory for another resource of `owner`. Uploads that pass this at the same time may
    /// together exceed the limit a little.
    pub fn check_owner(&self, owner: &Owner) -> Result<(), UploadError> {
        Ok(self.parts.capacity.check_owner(owner)?)
    }

    /// Returns an error if no bundle may have this length.
    pub fn check_size(&self, bytes: u64) -> Result<(), UploadError> {
        self.parts.check_size(bytes)
    }

    /// The resource that the ticket gives access to. If its `ttl` or the largest age is reached, it is gone, even before a
    /// sweep deletes it.
    pub async fn find(
        &self,
        id: ResourceId,
        secret: &ResourceSecret,
    ) -> Result<Resource<Ready>, AccessError> {
        let resource = self.parts.authorized(id, secret).await?;
        if let Some(ending) = resource.ending() {
            return Err(AccessError::gone(id, ending));
        }
        let ready = resource.into_ready().ok_or(AccessError::NotFound)?;
        // The next sweep deletes it; until then it is gone all the same.
        match self.parts.ended_by_age(&ready) {
            Some(ending) => Err(AccessError::gone(id, ending)),
            None => Ok(ready),
        }
    }

    /// The resource whose client has chosen this secret.
    pub async fn find_by_secret(&self, secret: &ResourceSecret) -> Result<Resource<Ready>, AccessError> {
        let Chosen::By(resource) = self.parts.ledger.find_by_secret(secret.hash()).await? else {
            return Err(AccessError::NotFound);
        };
        let resource = resource.into_ready().ok_or(AccessError::NotFound)?;
        let ending = self.parts.ended_by_age(&resource);
        ending.map_or(Ok(resource), |_| Err(AccessError::NotFound))
    }

    /// Whether a client has chosen this secret before, for an upload that is under way, or for a resource.
    pub async fn is_taken(&self, secret: &ResourceSecret) -> Result<bool, AccessError> {
        Ok(!matches!(self.parts.ledger.find_by_secret(secret.hash()).await?, Chosen::Never))
    }

    /// One resource in any state, without a ticket.
    pub async fn look_up(&self, id: ResourceId) -> Result<Option<Resource>, LedgerError> {
        self.parts.find(id).await
    }

    /// Up to `limit` tombstones with ids after `after`, in the order of their ids.
    pub async fn tombstones(&self, after: Option<ResourceId>, limit: u32) -> Result<Page, LedgerError> {
        self.parts.ledger.page(State::Deleted, after, limit).await
    }

    /// Removes tombstones that are older than [`TOMBSTONE_LIFE`], and then those that are too many.
    pub async fn forget_tombstones(&self, now: Timestamp) -> Result<Forgotten, LedgerError> {
        let Parts { ledger, limits, metrics, .. } = &*self.parts;
        let before = now.checked_sub(TOMBSTONE_LIFE).unwrap_or(Timestamp::MIN);
        let most = limits.max_resources.saturating_mul(TOMBSTONES_FOR_EACH) as u64;
        let forgotten = ledger.forget(before, most).await?;
        metrics.tombstones_dropped(forgotten.dropped);
        Ok(forgotten)
    }

    /// Checks whether downloads can be served: the ledger answers, and the store is there. If the last look-up by a
    /// ticket failed, that same look-up is tried again. A full disk, or a ledger that cannot be written, is no failure
    /// here.
    pub async fn check_readable(&self) -> Result<(), AccessError> {
        self.parts.storage.blobs.check().await.map_err(AccessError::Store)?;
        let failed = *lock(&self.parts.failed_look_up);
        let probe =
            failed.map_or_else(|| ResourceId::parse(PROBE_ID).map_err(|_| AccessError::NotFound), Ok)?;
        self.parts.look_up(probe).await?;
        Ok(())
    }

    /// The uid of the cluster that was asked about owners; `None` if none is known.
    pub async fn cluster(&self) -> Result<Option<String>, LedgerError> {
        Ok(self.parts.ledger.facts().await?.cluster)
    }

    /// Remembers the uid of the cluster; `None` forgets it.
    pub async fn remember_cluster(&self, uid: Option<String>) -> Result<(), LedgerError> {
        self.parts.ledger.write(Fact::Cluster(uid)).await
    }

    /// The kinds, with their namespaces, that a server on this ledger once read completely.
    pub async fn watched(&self) -> Result<Vec<WatchScope>, LedgerError> {
        Ok(self.parts.ledger.facts().await?.watched)
    }

    /// Remembers kinds that a server has read completely.
    pub async fn remember_watched(&self, scopes: Vec<WatchScope>) -> Result<(), LedgerError> {
        self.parts.ledger.write(Fact::Watched(scopes)).await
    }

    /// The rows that this version cannot read.
    pub fn unreadable(&self) -> Unreadable {
        self.parts.ready.unreadable()
    }

    /// The clock of all times here.
    pub fn clock(&self) -> &dyn Clock {
        &*self.parts.clock
    }

    /// The present time, as everything here measures ages by it: a wall clock that is set makes nothing older.
    pub fn readings(&self) -> Readings {
        self.parts.readings()
    }

    /// The metrics that count what happens here.
    pub fn metrics(&self) -> &Metrics {
        &self.parts.metrics
    }

    /// The limits of this server.
    pub fn limits(&self) -> Limits {
        self.parts.limits
    }

    /// The number of uploads and of downloads in flight.
    pub fn in_flight(&self) -> (usize, usize) {
        (self.parts.capacity.uploads(), self.parts.transfers.downloads())
    }

    /// Waits for the clean-up of broken uploads, writes a last stamp, and closes the ledger.
    pub async fn close(&self) {
        self.parts.background.close();
        self.parts.background.wait().await;
        if let Err(error) = self.parts.stamp_changes().await {
            tracing::warn!(error = %chain(&error), "could not write the last stamp of ledger and store");
        }
        self.parts.ledger.close().await;
    }
}

/// An id that no resource has: [`ResourceId::generate`] never makes one that is all zero.
const PROBE_ID: &str = "00000000-0000-0000-0000-000000000000";

impl Parts {
    /// The outcome of `work`, unless the ledger takes too long. What `work` has asked of the ledger goes on.
    async fn unless_stalled<T>(&self, work: impl Future<Output = T>) -> Result<T, LedgerError> {
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = self.ledger.stalled() => Err(LedgerError::Stalled),
        }
    }

    async fn authorized(&self, id: ResourceId, secret: &ResourceSecret) -> Result<Resource, AccessError> {
        let resource = match self.look_up(id).await {
            Err(LedgerError::Unreadable(row)) => return Err(set_aside(row, secret)),
            found => found?.ok_or(AccessError::NotFound)?,
        };
        // Without objects there is no ticket: who knows the secret may read, and no more.
        let is_without = resource.acknowledged().is_some_and(|ready| !ready.owner.has_objects());
        if is_without || resource.state() == State::Pending {
            return Err(AccessError::NotFound);
        }
        if resource.secret_hash.matches(secret) { Ok(resource) } else { Err(AccessError::WrongSecret) }
    }

    /// Looks up a row, and remembers whether the ledger failed.
    async fn look_up(&self, id: ResourceId) -> Result<Option<Resource>, LedgerError> {
        let found = self.find(id).await;
        let has_failed = !matches!(found, Ok(_) | Err(LedgerError::Unreadable(_)));
        *lock(&self.failed_look_up) = has_failed.then_some(id);
        found
    }

    async fn find(&self, id: ResourceId) -> Result<Option<Resource>, LedgerError> {
        let found = self.ledger.find(id).await;
        if matches!(found, Err(LedgerError::Unreadable(_))) && self.ready.contains(id) {
            // The row could be read before, so something else has changed it, and maybe other rows as well.
            self.ready.doubt();
        }
        found
    }

    /// Why and when a resource ended by its age alone, though no sweep has deleted it yet.
    fn ended_by_age(&self, resource: &Resource<Ready>) -> Option<Ending> {
        resource.life().ended_by_age(self.limits.max_age, &self.readings())
    }

    fn readings(&self) -> Readings {
        lock(&self.time).read(&*self.clock)
    }

    fn tell_of_unreadable(&self) {
        self.metrics.unreadable(self.ready.unreadable().count as u64);
    }
}

/// Only a ticket with the right secret is told that its row cannot be read.
fn set_aside(row: UnreadableRow, secret: &ResourceSecret) -> AccessError {
    if row.secret_hash.is_some_and(|hash| hash.matches(secret)) {
        LedgerError::Unreadable(row).into()
    } else {
        AccessError::WrongSecret
    }
}

/// How many changes of owners are written together.
const OBSERVATIONS_TOGETHER: usize = 1000;

impl Staging {
    /// Up to `limit` ready resources with ids after `after`, in the order of their ids. Empty if there are no more.
    pub fn ready(&self, after: Option<ResourceId>, limit: usize) -> Vec<Listed> {
        self.parts.ready.page(after, limit)
    }

    /// Writes what a sweep saw of owners. If the disk is full, it gives up the reserve for that, because only deletions
    /// make room, and they depend on this. Returns `false` if there is no room even then.
    pub async fn observe_for_sweep(&self, observations: &[Observation]) -> Result<bool, AccessError> {
        match self.observe(observations).await {
            Err(LedgerError::Full) => self.parts.give_up_reserve().await?,
            written => return Ok(written.map(|()| true)?),
        }
        match self.observe(observations).await {
            Err(LedgerError::Full) => Ok(false),
            written => Ok(written.map(|()| true)?),
        }
    }

    /// Writes what was seen of owners.
    pub async fn observe(&self, observations: &[Observation]) -> Result<(), LedgerError> {
        for part in observations.chunks(OBSERVATIONS_TOGETHER) {
            self.parts.ledger.observe(part.to_vec()).await?;
        }
        Ok(())
    }

    /// Whether a download is in flight, or a use is not written yet.
    pub fn is_in_use(&self, id: ResourceId) -> bool {
        self.parts.transfers.is_downloading(id) || lock(&self.parts.unwritten_uses).contains_key(&id)
    }
}
