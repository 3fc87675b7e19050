//! Leases, the term, the room and the ready index. They can be in memory because only one process has the data
//! directory. A start finds no leases, so all transfers of an earlier process are over.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::index::Index;
use super::operation::Freed;
use super::room::Rooms;
use cloakroom_core::clock::Clock;
use cloakroom_core::resource::ResourceId;
use cloakroom_storage::ledger::{
    Account, Authority, Charge, Completion, Epoch, LEASE_TIME, LeaseId, Shortage, Stored, Taken,
};

/// The part of the ledger that is in memory.
pub(super) struct Memory {
    clock: Arc<dyn Clock>,
    epoch: Epoch,
    leases: Mutex<Leases>,
    rooms: Mutex<Rooms>,
    index: Index,
    changes: AtomicU64,
}

#[derive(Default)]
struct Leases {
    /// The leases that are held, each with its resource and the time of its renewal.
    held: HashMap<LeaseId, Held>,
    uploads: HashMap<ResourceId, LeaseId>,
    downloads: HashMap<ResourceId, HashSet<LeaseId>>,
    /// Rows whose deletion is committed, and whose bytes are not removed yet.
    deleting: HashSet<ResourceId>,
    /// Rows whose deletion is in the group of changes that is being written.
    being_marked: HashSet<ResourceId>,
}

struct Held {
    resource: ResourceId,
    /// The time of the last renewal, by the monotonic clock.
    renewed: Duration,
}

impl Memory {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            epoch: Epoch::generate(&mut rand::rng()),
            leases: Mutex::default(),
            rooms: Mutex::default(),
            index: Index::default(),
            changes: AtomicU64::new(0),
        }
    }

    pub(super) fn changed(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// How many changes were committed.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    pub(super) fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(super) fn charge(&self, lease: LeaseId, charges: &[Charge]) -> Result<(), Shortage> {
        self.rooms().charge(lease, charges)
    }

    pub(super) fn charged(&self, account: &Account) -> u64 {
        self.rooms().of(account)
    }

    pub(super) fn strays(&self, strays: Stored) {
        self.rooms().set_strays(strays);
    }

    pub(super) fn freed(&self, freed: &Freed) {
        self.rooms().freed(freed);
    }

    /// Sets the accounts to what the rows say. No other change may run at the same time.
    pub(super) fn recount(&self, stored: &BTreeMap<String, Stored>) {
        self.rooms().recount(stored);
    }

    pub(super) fn taken(&self) -> Taken {
        let (owner_bytes, most_owner_bytes) = self.index.owner_bytes();
        Taken { owner_bytes, most_owner_bytes, ..self.rooms().taken() }
    }

    pub(super) fn least_bytes(&self) -> u64 {
        self.rooms().least_bytes()
    }

    pub(super) fn count_at_least(&self, least_bytes: u64) {
        self.rooms().count_at_least(least_bytes);
    }

    pub(super) fn index(&self) -> &Index {
        &self.index
    }

    fn rooms(&self) -> MutexGuard<'_, Rooms> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Leases> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the upload with this lease began a row.
    pub(super) fn begun(&self, resource: ResourceId, lease: LeaseId) {
        let held = Held { resource, renewed: self.clock.monotonic() };
        let mut leases = self.lock();
        leases.held.insert(lease, held);
        leases.uploads.insert(resource, lease);
    }

    /// Whether the upload with this lease is still in flight: nothing else has abandoned it.
    pub(super) fn is_uploading(&self, resource: ResourceId, lease: LeaseId) -> bool {
        self.lock().uploads.get(&resource) == Some(&lease)
    }

    /// Ends the upload of `resource` if `by` may do that. The upload can then no longer be completed.
    pub(super) fn abandon(&self, resource: ResourceId, by: Authority) -> bool {
        let mut leases = self.lock();
        let lease = leases.uploads.get(&resource).copied();
        let may = match by {
            Authority::Uploader(own) => lease.is_none_or(|lease| lease == own),
            Authority::Cleaner(epoch) => {
                epoch == self.epoch
                    && lease.is_none_or(|lease| !leases.is_live(lease, self.clock.monotonic()))
            }
            Authority::Ticket | Authority::Admin => false,
        };
        if may && let Some(lease) = lease {
            leases.uploads.remove(&resource);
            // The uploader keeps its room until it lets go of the lease, because its bytes are still there.
            if by != Authority::Uploader(lease) {
                leases.let_go(lease);
                self.rooms().release(lease);
            }
        }
        may
    }

    /// Whether no upload of `resource` is in flight.
    pub(super) fn is_abandoned(&self, resource: ResourceId) -> bool {
        !self.lock().uploads.contains_key(&resource)
    }

    /// Takes a lease for a download. Returns `false` if the deletion of `resource` is decided.
    pub(super) fn hold(&self, resource: ResourceId, lease: LeaseId) -> bool {
        let held = Held { resource, renewed: self.clock.monotonic() };
        let mut leases = self.lock();
        if leases.deleting.contains(&resource) || leases.being_marked.contains(&resource) {
            return false;
        }
        leases.held.insert(lease, held);
        leases.downloads.entry(resource).or_default().insert(lease);
        true
    }

    pub(super) fn let_go(&self, lease: LeaseId) {
        self.lock().let_go(lease);
        self.rooms().release(lease);
    }

    /// Records that a row is acknowledged: the room that was promised to its upload becomes the room that it really
    /// takes.
    pub(super) fn completed(&self, completion: &Completion, lease: LeaseId) {
        self.lock().let_go(lease);
        let mut rooms = self.rooms();
        rooms.release(lease);
        rooms.stored(completion.owner.namespace(), completion.bundle.size_bytes);
        drop(rooms);
        self.index.completed(completion);
    }

    /// Renews the leases that still exist, and returns the others.
    pub(super) fn renew(&self, leases: &[LeaseId]) -> Vec<LeaseId> {
        let now = self.clock.monotonic();
        let held = &mut self.lock().held;
        let is_lost = |lease: &LeaseId| held.get_mut(lease).map(|held| held.renewed = now).is_none();
        leases.iter().copied().filter(is_lost).collect()
    }

    /// Stops new downloads. Returns `false` if `by` has no right to delete, or if a download is in flight and the
    /// condition forbids that.
    pub(super) fn mark_deleting(
        &self,
        resource: ResourceId,
        by: Authority,
        even_if_downloading: bool,
    ) -> bool {
        let mut leases = self.lock();
        let has_right = match by {
            Authority::Cleaner(epoch) => epoch == self.epoch,
            Authority::Ticket | Authority::Admin => true,
            Authority::Uploader(_) => false,
        };
        let may =
            has_right && (even_if_downloading || !leases.is_downloading(resource, self.clock.monotonic()));
        if may {
            leases.being_marked.insert(resource);
        }
        may
    }

    /// Records that the deletion is committed.
    pub(super) fn marked_deleting(&self, resource: ResourceId) {
        self.lock().deleting.insert(resource);
        self.index.remove(resource);
    }

    /// Records that a group of changes is committed, or undone. Its deletions are then no longer undecided.
    pub(super) fn group_ended(&self) {
        self.lock().being_marked.clear();
    }

    /// Records that the row is gone, or a tombstone.
    pub(super) fn deletion_finished(&self, resource: ResourceId) {
        self.lock().deleting.remove(&resource);
    }

    /// Records that a row that could not be read is gone.
    pub(super) fn discarded(&self, resource: ResourceId) {
        self.deletion_finished(resource);
        self.index.remove(resource);
    }

    /// Whether a download of `resource` holds a lease that has not ended.
    pub(super) fn is_downloading(&self, resource: ResourceId) -> bool {
        self.lock().is_downloading(resource, self.clock.monotonic())
    }
}

impl Leases {
    fn is_live(&self, lease: LeaseId, now: Duration) -> bool {
        self.held.get(&lease).is_some_and(|held| now.saturating_sub(held.renewed) < LEASE_TIME)
    }

    fn is_downloading(&self, resource: ResourceId, now: Duration) -> bool {
        let leases = self.downloads.get(&resource);
        leases.is_some_and(|leases| leases.iter().any(|lease| self.is_live(*lease, now)))
    }

    fn let_go(&mut self, lease: LeaseId) {
        let Some(Held { resource, .. }) = self.held.remove(&lease) else { return };
        if self.uploads.get(&resource) == Some(&lease) {
            self.uploads.remove(&resource);
        }
        if let Some(leases) = self.downloads.get_mut(&resource) {
            leases.remove(&lease);
            if leases.is_empty() {
                self.downloads.remove(&resource);
            }
        }
    }
}
