//! Stage, open, release, recover: the one place that joins ledger and store and knows the durability order.
//!
//! An upload: row `pending` → bytes → sync → rename → sync of the folder → row `ready`, committed → answer.
//! A deletion: row `deleting` → bytes removed → row `deleted`, the tombstone. An upload that is broken off is given up in the
//! ledger before its bytes are removed, and its row goes last. Whatever a crash interrupts is finished by
//! [`Staging::recover`], at start and before every sweep.

mod capacity;
mod counted;
mod download;
mod error;
mod lease;
mod ready;
mod recover;
mod release;
mod room;
mod share;
mod stock;
mod transfers;
mod upload;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::ledger::{Epoch, Ledger, LedgerError, MemoryLimits, Stored, Unreadable, UnreadableRow};
use crate::store::Storage;
use capacity::Capacity;
use cloakroom_core::clock::Clock;
use cloakroom_core::metrics::Metrics;
use cloakroom_core::resource::{DeletionReason, Ready, Resource, ResourceId, ResourceSecret, RowName, State};
use lease::Leases;
use stock::CountedStates;
use transfers::Transfers;

pub use capacity::{CapacityLimits, LEAST_CHARGE, NoRoom};
pub use download::Download;
pub use error::{AccessError, StageError};
pub use recover::Recovered;
pub use share::{Share, ShareError};
pub use upload::{NewUpload, Staged, Terms, Upload};

/// A tombstone answers for its ticket this long.
pub const TOMBSTONE_LIFE: Duration = Duration::from_hours(7 * 24);

/// Memory for owners, of what the shipped manifests give. A usual owner takes about 250 bytes, so that 100,000 different ones
/// fit twice; clients may make them twenty times as long, and then sweeps look the others up in the ledger.
pub const OWNER_MEMORY_BYTES: usize = 64 << 20;

/// So many times `--max-resources` tombstones stay at most: the oldest of the namespace that has most go first.
pub const TOMBSTONES_FOR_EACH: usize = 2;

/// Tombstones that were removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// They had served their time.
    pub expired: u64,
    /// They were too many.
    pub dropped: u64,
}

/// How much this server takes on.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Room for bundles.
    pub capacity: CapacityLimits,
    /// Resources at once, uploads in flight included.
    pub max_resources: usize,
    /// Memory for the owners of all resources together; see [`OWNER_MEMORY_BYTES`].
    pub owner_memory_bytes: usize,
    /// Uploads at once.
    pub max_concurrent_uploads: usize,
    /// Downloads at once.
    pub max_concurrent_downloads: usize,
    /// What one holder may have of all these; `None` is everything.
    pub share: Option<Share>,
}

/// Staged resources. Clones are handles to the same ones.
#[derive(Clone)]
pub struct Staging {
    parts: Arc<Parts>,
    _renewal: Arc<AbortOnDropHandle<()>>,
}

struct Parts {
    ledger: Arc<dyn Ledger>,
    storage: Storage,
    clock: Arc<dyn Clock>,
    capacity: Arc<Capacity>,
    transfers: Arc<Transfers>,
    leases: Arc<Leases>,
    /// Clean-up of uploads whose client went away.
    background: TaskTracker,
    /// Uses that could not be written down; the sweep does it when the ledger can be written again.
    unwritten_uses: Mutex<BTreeMap<ResourceId, Timestamp>>,
    /// What a ticket was last used for, if the ledger failed then.
    failed_look_up: Mutex<Option<ResourceId>>,
    metrics: Metrics,
    counted_states: CountedStates,
    limits: Limits,
}

impl Staging {
    /// Joins a ledger and a store, counts what is stored, and reads what is ready.
    pub async fn open(
        ledger: Arc<dyn Ledger>,
        storage: Storage,
        clock: Arc<dyn Clock>,
        limits: Limits,
        metrics: Metrics,
    ) -> Result<Self, LedgerError> {
        metrics.deletions_have(DeletionReason::ALL.iter().map(|reason| reason.as_str()));
        let least_bytes = limits.capacity.least_charge;
        ledger.load(MemoryLimits { least_bytes, owner_memory_bytes: limits.owner_memory_bytes }).await?;
        let capacity = Arc::new(Capacity::new(limits, Arc::clone(&ledger)));
        let transfers = Arc::new(Transfers::new(limits));
        let background = TaskTracker::new();
        let leases = Arc::new(Leases::new(Arc::clone(&ledger)));
        let parts = Parts {
            ledger,
            storage,
            clock,
            capacity,
            transfers,
            leases,
            background,
            unwritten_uses: Mutex::default(),
            failed_look_up: Mutex::default(),
            metrics,
            counted_states: CountedStates::default(),
            limits,
        };
        parts.tell_of_unreadable().await?;
        let parts = Arc::new(parts);
        let renewal = tokio::spawn(lease::keep_renewing(Arc::downgrade(&parts)));
        Ok(Self { parts, _renewal: Arc::new(AbortOnDropHandle::new(renewal)) })
    }

    /// The cleaner's term, in which it may delete; `None` if another server has it.
    pub async fn term(&self) -> Result<Option<Epoch>, LedgerError> {
        self.parts.ledger.term().await
    }

    /// Refuses a length that no bundle may have.
    pub fn check_size(&self, bytes: u64) -> Result<(), StageError> {
        self.parts.check_size(bytes)
    }

    /// What the ticket opens, for whoever shows the right secret.
    pub async fn find(
        &self,
        id: ResourceId,
        secret: &ResourceSecret,
    ) -> Result<Resource<Ready>, AccessError> {
        let resource = self.parts.authorized(id, secret).await?;
        match resource.ending() {
            Some(ending) => Err(AccessError::gone(id, ending)),
            None => resource.into_ready().ok_or(AccessError::NotFound),
        }
    }

    /// One resource, whatever its state, for whoever needs no ticket.
    pub async fn look_up(&self, id: ResourceId) -> Result<Option<Resource>, LedgerError> {
        self.parts.ledger.find(id).await
    }

    /// Up to `limit` tombstones, in the order of their ids, after `after`.
    pub async fn tombstones(
        &self,
        after: Option<ResourceId>,
        limit: u32,
    ) -> Result<Vec<Resource>, LedgerError> {
        self.parts.ledger.tombstones(after, limit).await
    }

    /// Removes tombstones that have served their time, and then those that are too many.
    pub async fn forget_tombstones(&self, now: Timestamp) -> Result<Forgotten, LedgerError> {
        let Parts { ledger, limits, metrics, .. } = &*self.parts;
        let expired = match now.checked_sub(TOMBSTONE_LIFE) {
            Ok(before) => ledger.forget_tombstones(before).await?,
            Err(_) => 0,
        };
        let most = limits.max_resources.saturating_mul(TOMBSTONES_FOR_EACH) as u64;
        let dropped = ledger.trim_tombstones(most).await?;
        metrics.tombstones_dropped(dropped);
        Ok(Forgotten { expired, dropped })
    }

    /// What is acknowledged and not yet removed, without what small resources count as more than they have.
    pub async fn stored(&self) -> Result<Stored, LedgerError> {
        Ok(self.parts.ledger.stored(0).await?.into_values().sum())
    }

    /// Whether downloads can be served: the ledger answers, also to what it was last asked by a ticket, and the store's
    /// place is there. A full disk does not matter here, nor does a ledger that cannot be written.
    pub async fn check_readable(&self) -> Result<(), AccessError> {
        let failed = *self.parts.failed_look_up();
        let probe =
            failed.map_or_else(|| ResourceId::parse(PROBE_ID).map_err(|_| AccessError::NotFound), Ok)?;
        self.parts.look_up(probe).await?;
        self.parts.storage.blobs.check().await?;
        Ok(())
    }

    /// Which cluster was asked about owners so far, by its uid.
    pub async fn cluster(&self) -> Result<Option<String>, LedgerError> {
        self.parts.ledger.cluster().await
    }

    /// From now on that is the cluster; `None` forgets it.
    pub async fn remember_cluster(&self, uid: Option<String>) -> Result<(), LedgerError> {
        self.parts.ledger.remember_cluster(uid).await
    }

    /// The resources that this version cannot read.
    pub async fn unreadable(&self) -> Result<Unreadable, LedgerError> {
        self.parts.ledger.unreadable().await
    }

    /// One of them.
    pub async fn find_unreadable(&self, name: &RowName) -> Result<Option<UnreadableRow>, LedgerError> {
        self.parts.ledger.find_unreadable(name).await
    }

    /// The clock that times are taken from.
    pub fn clock(&self) -> &dyn Clock {
        &*self.parts.clock
    }

    /// Where what happens here is counted.
    pub fn metrics(&self) -> &Metrics {
        &self.parts.metrics
    }

    /// How much this server takes on.
    pub fn limits(&self) -> Limits {
        self.parts.limits
    }

    /// Uploads and downloads going on.
    pub fn in_flight(&self) -> (usize, usize) {
        (self.parts.capacity.uploads(), self.parts.transfers.downloads())
    }

    /// Waits for the clean-up of broken uploads, then lets go of the ledger.
    pub async fn close(&self) {
        self.parts.background.close();
        self.parts.background.wait().await;
        self.parts.ledger.close().await;
    }
}

/// An id that is no resource's: all zero is not what [`ResourceId::generate`] makes.
const PROBE_ID: &str = "00000000-0000-0000-0000-000000000000";

impl Parts {
    async fn authorized(&self, id: ResourceId, secret: &ResourceSecret) -> Result<Resource, AccessError> {
        let resource = match self.look_up(id).await {
            Err(LedgerError::Unreadable(row)) => return Err(set_aside(row, secret)),
            found => found?.ok_or(AccessError::NotFound)?,
        };
        if resource.state() == State::Pending {
            return Err(AccessError::NotFound);
        }
        if resource.secret_hash.matches(secret) { Ok(resource) } else { Err(AccessError::WrongSecret) }
    }

    /// Looks a row up, and remembers if the ledger failed.
    async fn look_up(&self, id: ResourceId) -> Result<Option<Resource>, LedgerError> {
        let found = self.ledger.find(id).await;
        let has_failed = !matches!(found, Ok(_) | Err(LedgerError::Unreadable(_)));
        *self.failed_look_up() = has_failed.then_some(id);
        found
    }

    fn failed_look_up(&self) -> MutexGuard<'_, Option<ResourceId>> {
        self.failed_look_up.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn tell_of_unreadable(&self) -> Result<(), LedgerError> {
        self.metrics.unreadable(self.ledger.unreadable().await?.count as u64);
        Ok(())
    }
}

/// Only its ticket hears of a row that cannot be read.
fn set_aside(row: UnreadableRow, secret: &ResourceSecret) -> AccessError {
    if row.secret_hash.is_some_and(|hash| hash.matches(secret)) {
        LedgerError::Unreadable(row).into()
    } else {
        AccessError::WrongSecret
    }
}
