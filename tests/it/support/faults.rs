//! A store and a ledger that fail or stop where a test tells them to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use cloakroom::ledger::{
    Completion, Deletion, Freed, Ledger, LedgerError, PendingResource, ReadyPage, Stored,
};
use cloakroom::resource::{Bundle, Owner, Resource, ResourceId, RowName, Sighting, State};
use cloakroom::store::{Incoming, Space, Store, StoreError, StoredBundle};
use jiff::Timestamp;

/// A step of ledger or store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    LedgerBegin,
    StoreCreate,
    StoreWrite,
    StoreFinish,
    StorePublish,
    LedgerComplete,
    LedgerAbandon,
    LedgerMarkUsed,
    LedgerMarkDeleting,
    StoreRemove,
    LedgerMarkDeleted,
    LedgerObserve,
    LedgerFind,
}

/// What happens at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is not done, and fails.
    FailBefore,
    /// It is done, and fails all the same: an answer that got lost.
    FailAfter,
    /// It is not done, and the disk is full.
    Full,
    /// It is not done, and the disk is full until the reserve is given up.
    FullButForTheReserve,
    /// It is not done, and the disk is read-only.
    ReadOnly,
}

/// Which steps are at fault. Clones share the plan.
#[derive(Clone, Default)]
pub struct Faults(Arc<Mutex<BTreeMap<Step, Fault>>>);

impl Faults {
    pub fn set(&self, step: Step, fault: Fault) {
        self.0.lock().unwrap().insert(step, fault);
    }

    pub fn clear(&self) {
        self.0.lock().unwrap().clear();
    }

    fn at(&self, step: Step) -> Option<Fault> {
        self.0.lock().unwrap().get(&step).copied()
    }

    fn ledger_before(&self, step: Step) -> Result<(), LedgerError> {
        match self.at(step) {
            Some(Fault::FailBefore) => Err(LedgerError::Closed),
            Some(Fault::Full | Fault::FullButForTheReserve) => Err(LedgerError::Full),
            Some(Fault::ReadOnly) => Err(LedgerError::NotWritable(Arc::new(sqlx::Error::WorkerCrashed))),
            _ => Ok(()),
        }
    }

    fn ledger_after<T>(&self, step: Step, done: T) -> Result<T, LedgerError> {
        if self.at(step) == Some(Fault::FailAfter) { Err(LedgerError::Closed) } else { Ok(done) }
    }

    fn store_before(&self, step: Step) -> Result<(), StoreError> {
        match self.at(step) {
            Some(Fault::FailBefore) => Err(broken()),
            Some(Fault::Full | Fault::FullButForTheReserve) => {
                Err(StoreError::Full { path: "bundles".into() })
            }
            Some(Fault::ReadOnly) => Err(StoreError::ReadOnly { action: "use", path: "bundles".into() }),
            _ => Ok(()),
        }
    }

    fn store_after<T>(&self, step: Step, done: T) -> Result<T, StoreError> {
        if self.at(step) == Some(Fault::FailAfter) { Err(broken()) } else { Ok(done) }
    }
}

fn broken() -> StoreError {
    StoreError::Io { action: "use", path: "the disk".into(), source: std::io::Error::other("injected") }
}

/// A ledger with faults.
pub struct FaultyLedger {
    pub inner: Arc<dyn Ledger>,
    pub faults: Faults,
}

#[async_trait]
impl Ledger for FaultyLedger {
    async fn begin(&self, pending: PendingResource) -> Result<(), LedgerError> {
        self.faults.ledger_before(Step::LedgerBegin)?;
        let done = self.inner.begin(pending).await?;
        self.faults.ledger_after(Step::LedgerBegin, done)
    }

    async fn complete(&self, completion: Completion) -> Result<(), LedgerError> {
        self.faults.ledger_before(Step::LedgerComplete)?;
        let done = self.inner.complete(completion).await?;
        self.faults.ledger_after(Step::LedgerComplete, done)
    }

    async fn abandon(&self, id: ResourceId) -> Result<(), LedgerError> {
        self.faults.ledger_before(Step::LedgerAbandon)?;
        let done = self.inner.abandon(id).await?;
        self.faults.ledger_after(Step::LedgerAbandon, done)
    }

    async fn mark_used(&self, id: ResourceId, at: Timestamp) -> Result<bool, LedgerError> {
        self.faults.ledger_before(Step::LedgerMarkUsed)?;
        let done = self.inner.mark_used(id, at).await?;
        self.faults.ledger_after(Step::LedgerMarkUsed, done)
    }

    async fn mark_deleting(&self, decision: Deletion) -> Result<bool, LedgerError> {
        self.faults.ledger_before(Step::LedgerMarkDeleting)?;
        let done = self.inner.mark_deleting(decision).await?;
        self.faults.ledger_after(Step::LedgerMarkDeleting, done)
    }

    async fn mark_deleted(&self, id: ResourceId) -> Result<Option<Freed>, LedgerError> {
        self.faults.ledger_before(Step::LedgerMarkDeleted)?;
        let done = self.inner.mark_deleted(id).await?;
        self.faults.ledger_after(Step::LedgerMarkDeleted, done)
    }

    async fn forget_tombstones(&self, before: Timestamp) -> Result<u64, LedgerError> {
        self.inner.forget_tombstones(before).await
    }

    async fn trim_tombstones(&self, most: u64) -> Result<u64, LedgerError> {
        self.inner.trim_tombstones(most).await
    }

    async fn discard(&self, row: RowName) -> Result<Option<Vec<Freed>>, LedgerError> {
        self.inner.discard(row).await
    }

    async fn find(&self, id: ResourceId) -> Result<Option<Resource>, LedgerError> {
        self.faults.ledger_before(Step::LedgerFind)?;
        self.inner.find(id).await
    }

    async fn state(&self, id: ResourceId) -> Result<Option<State>, LedgerError> {
        self.inner.state(id).await
    }

    async fn owners(&self, ids: &[ResourceId]) -> Result<BTreeMap<ResourceId, Owner>, LedgerError> {
        self.inner.owners(ids).await
    }

    async fn uploaders(&self, ids: &[ResourceId]) -> Result<BTreeMap<ResourceId, String>, LedgerError> {
        self.inner.uploaders(ids).await
    }

    async fn tombstones(&self, after: Option<ResourceId>, limit: u32) -> Result<Vec<Resource>, LedgerError> {
        self.inner.tombstones(after, limit).await
    }

    async fn ids_in(
        &self,
        state: State,
        after: Option<ResourceId>,
        limit: u32,
    ) -> Result<Vec<ResourceId>, LedgerError> {
        self.inner.ids_in(state, after, limit).await
    }

    async fn ready(&self, after: Option<ResourceId>, limit: u32) -> Result<ReadyPage, LedgerError> {
        self.inner.ready(after, limit).await
    }

    async fn observe(&self, sightings: Vec<(ResourceId, Sighting)>) -> Result<(), LedgerError> {
        self.faults.ledger_before(Step::LedgerObserve)?;
        let done = self.inner.observe(sightings).await?;
        self.faults.ledger_after(Step::LedgerObserve, done)
    }

    async fn stored(&self, least_bytes: u64) -> Result<BTreeMap<String, Stored>, LedgerError> {
        self.inner.stored(least_bytes).await
    }

    async fn count_by_state(&self) -> Result<BTreeMap<&'static str, u64>, LedgerError> {
        self.inner.count_by_state().await
    }

    async fn cluster(&self) -> Result<Option<String>, LedgerError> {
        self.inner.cluster().await
    }

    async fn remember_cluster(&self, uid: Option<String>) -> Result<(), LedgerError> {
        self.inner.remember_cluster(uid).await
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}

/// What is on a disk whose free bytes a test says.
pub const USED_BY_OTHERS: u64 = 1_000_000;

/// A store with faults, and with a disk of any size.
pub struct FaultyStore {
    pub inner: Arc<dyn Store>,
    pub faults: Faults,
    pub free_bytes: Mutex<Option<u64>>,
}

#[async_trait]
impl Store for FaultyStore {
    async fn create(&self, id: ResourceId) -> Result<Box<dyn Incoming>, StoreError> {
        self.faults.store_before(Step::StoreCreate)?;
        let inner = self.inner.create(id).await?;
        let incoming = FaultyIncoming { inner, faults: self.faults.clone() };
        self.faults.store_after(Step::StoreCreate, Box::new(incoming) as _)
    }

    async fn open(&self, id: ResourceId) -> Result<Option<Box<dyn StoredBundle>>, StoreError> {
        self.inner.open(id).await
    }

    async fn remove(&self, id: ResourceId) -> Result<(), StoreError> {
        self.faults.store_before(Step::StoreRemove)?;
        let done = self.inner.remove(id).await?;
        self.faults.store_after(Step::StoreRemove, done)
    }

    async fn ids(&self) -> Result<Vec<ResourceId>, StoreError> {
        self.inner.ids().await
    }

    async fn space(&self) -> Result<Option<Space>, StoreError> {
        let told = *self.free_bytes.lock().unwrap();
        let Some(free) = told else { return self.inner.space().await };
        Ok(Some(Space { free, used: USED_BY_OTHERS }))
    }

    fn open_bundles(&self) -> Option<(usize, usize)> {
        self.inner.open_bundles()
    }

    async fn keep_reserve(&self) -> Result<(), StoreError> {
        self.inner.keep_reserve().await
    }

    async fn release_reserve(&self) -> Result<(), StoreError> {
        self.inner.release_reserve().await?;
        self.faults.0.lock().unwrap().retain(|_, fault| *fault != Fault::FullButForTheReserve);
        Ok(())
    }
}

struct FaultyIncoming {
    inner: Box<dyn Incoming>,
    faults: Faults,
}

#[async_trait]
impl Incoming for FaultyIncoming {
    async fn write(&mut self, bytes: Bytes) -> Result<(), StoreError> {
        self.faults.store_before(Step::StoreWrite)?;
        let done = self.inner.write(bytes).await?;
        self.faults.store_after(Step::StoreWrite, done)
    }

    async fn finish(&mut self) -> Result<Bundle, StoreError> {
        self.faults.store_before(Step::StoreFinish)?;
        let done = self.inner.finish().await?;
        self.faults.store_after(Step::StoreFinish, done)
    }

    async fn publish(self: Box<Self>) -> Result<(), StoreError> {
        let Self { inner, faults } = *self;
        faults.store_before(Step::StorePublish)?;
        let done = inner.publish().await?;
        faults.store_after(Step::StorePublish, done)
    }
}
