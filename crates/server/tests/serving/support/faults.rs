//! A store and a ledger that fail or stop where a test tells them to.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use cloakroom_core::client::Client;
use cloakroom_core::resource::{BlobKey, UploadHandle};
use cloakroom_storage::ledger::LedgerError;
use cloakroom_storage::stamp::Stamp;
use cloakroom_storage::store::{
    Begun, BlobFacts, BlobStore, BlobStream, BlobWriter, LocalDisk, Space, Storage, StoreError,
};
use cloakroom_testing::wait::BOUND;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt as _, TryStreamExt as _};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::points::{Point, Points};

/// A step of ledger or store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    LedgerBegin,
    StoreBegin,
    LedgerNoteHandle,
    StoreWrite,
    /// Between the sync and the rename of a disk, others see what they see before it: bytes that are not visible yet.
    StoreCommit,
    LedgerComplete,
    LedgerAbandon,
    StoreOpen,
    LedgerMarkUsed,
    LedgerMarkDeleting,
    StoreAbort,
    StoreDelete,
    LedgerFinishDeletion,
    LedgerFinishAbandoned,
    LedgerObserve,
    LedgerFind,
    LedgerWithoutRow,
    LedgerIdsIn,
    LedgerTotals,
    LedgerReady,
    LedgerWriteClaim,
    StoreReplaceStamp,
    StoreSpace,
    /// Those that no test names.
    LedgerOther,
    StoreOther,
    /// Asked only with a cluster.
    LedgerRememberWatched,
}

/// Where a step is held up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// It is not done yet.
    Before,
    /// It is done, and its answer is on its way.
    After,
}

/// Holds one step up, once, until a test lets it go on.
#[derive(Clone)]
pub struct Stop {
    is_reached: Arc<Semaphore>,
    goes_on: Arc<Semaphore>,
}

impl Stop {
    pub async fn reached(&self) {
        let is_reached = timeout(BOUND, self.is_reached.acquire()).await;
        is_reached.expect("the step is reached").unwrap().forget();
    }

    pub fn go_on(&self) {
        self.goes_on.add_permits(1);
    }
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
    /// It is not done, because the store, or the ledger, does not answer.
    Away,
    /// It is not done, because what does it has ended.
    Ended,
    /// It panics.
    Panic,
}

/// Which steps are at fault. Clones share the plan.
#[derive(Clone, Default)]
pub struct Faults {
    faults: Arc<Mutex<BTreeMap<Step, Fault>>>,
    stops: Arc<Mutex<BTreeMap<(Step, Side), Stop>>>,
    aborted: Arc<Mutex<Vec<Option<UploadHandle>>>>,
    pub points: Points,
}

impl Faults {
    pub fn set(&self, step: Step, fault: Fault) {
        self.faults.lock().unwrap().insert(step, fault);
    }

    pub fn clear(&self) {
        self.faults.lock().unwrap().clear();
    }

    /// Holds the next such step up.
    pub fn stop_at(&self, step: Step, side: Side) -> Stop {
        let closed = || Arc::new(Semaphore::new(0));
        let stop = Stop { is_reached: closed(), goes_on: closed() };
        self.stops.lock().unwrap().insert((step, side), stop.clone());
        stop
    }

    /// The handles that the store was given to abort uploads.
    pub fn aborted(&self) -> Vec<Option<UploadHandle>> {
        self.aborted.lock().unwrap().clone()
    }

    async fn reach(&self, step: Step, side: Side) {
        let stop = self.stops.lock().unwrap().remove(&(step, side));
        if let Some(stop) = stop {
            stop.is_reached.add_permits(1);
            stop.goes_on.acquire().await.unwrap().forget();
        }
    }

    fn at(&self, step: Step) -> Option<Fault> {
        self.faults.lock().unwrap().get(&step).copied()
    }

    pub(super) async fn of_ledger<T>(
        &self,
        step: Step,
        work: impl Future<Output = Result<T, LedgerError>>,
    ) -> Result<T, LedgerError> {
        let point = self.points.next().await;
        self.reach(step, Side::Before).await;
        self.ledger_before(step)?;
        let done = work.await?;
        match point {
            Some(Point::After) => self.points.end().await,
            Some(Point::Lost) => return Err(LedgerError::Unavailable(Arc::new(lost()))),
            _ => {}
        }
        self.reach(step, Side::After).await;
        self.ledger_after(step, done)
    }

    pub(super) async fn of_store<T>(
        &self,
        step: Step,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let point = self.points.next().await;
        self.reach(step, Side::Before).await;
        self.store_before(step)?;
        let done = work.await?;
        match point {
            Some(Point::After) => self.points.end().await,
            Some(Point::Lost) => return Err(StoreError::Unavailable(lost().into())),
            _ => {}
        }
        self.reach(step, Side::After).await;
        self.store_after(step, done)
    }

    fn ledger_before(&self, step: Step) -> Result<(), LedgerError> {
        match self.at(step) {
            Some(Fault::FailBefore) => Err(LedgerError::Database(Arc::new(lost()))),
            Some(Fault::Full | Fault::FullButForTheReserve) => Err(LedgerError::Full),
            Some(Fault::ReadOnly) => {
                Err(LedgerError::NotWritable(Arc::new(std::io::Error::other("the disk is read-only"))))
            }
            Some(Fault::Away) => Err(LedgerError::Unavailable(Arc::new(std::io::Error::other("locked")))),
            Some(Fault::Ended) => Err(LedgerError::Closed),
            Some(Fault::Panic) => panic!("injected"),
            _ => Ok(()),
        }
    }

    fn ledger_after<T>(&self, step: Step, done: T) -> Result<T, LedgerError> {
        if self.at(step) == Some(Fault::FailAfter) {
            Err(LedgerError::Database(Arc::new(lost())))
        } else {
            Ok(done)
        }
    }

    fn store_before(&self, step: Step) -> Result<(), StoreError> {
        match self.at(step) {
            Some(Fault::FailBefore) => Err(broken()),
            Some(Fault::Full | Fault::FullButForTheReserve) => {
                Err(StoreError::Full { what: "the disk is full", source: "injected".into() })
            }
            Some(Fault::ReadOnly | Fault::Away) => {
                Err(StoreError::Unavailable("it is read-only, or away".into()))
            }
            _ => Ok(()),
        }
    }

    fn store_after<T>(&self, step: Step, done: T) -> Result<T, StoreError> {
        if self.at(step) == Some(Fault::FailAfter) { Err(broken()) } else { Ok(done) }
    }
}

fn lost() -> std::io::Error {
    std::io::Error::other("the answer was lost")
}

fn broken() -> StoreError {
    StoreError::Fault("injected".into())
}

/// What is on a disk whose free bytes a test says.
pub const USED_BY_OTHERS: u64 = 1_000_000;

/// A store with faults, and with a disk of any size.
pub struct FaultyStore {
    pub inner: Storage,
    pub faults: Faults,
    pub free_bytes: Mutex<Option<u64>>,
}

impl FaultyStore {
    fn disk(&self) -> &dyn LocalDisk {
        &**self.inner.disk.as_ref().unwrap()
    }
}

#[async_trait]
impl BlobStore for FaultyStore {
    async fn begin(&self, key: BlobKey, length: Option<u64>, client: &Client) -> Result<Begun, StoreError> {
        let begun = self.faults.of_store(Step::StoreBegin, self.inner.blobs.begin(key, length, client)).await;
        let Begun { writer, handle } = begun?;
        Ok(Begun { writer: Box::new(FaultyWriter { inner: writer, faults: self.faults.clone() }), handle })
    }

    async fn abort(&self, key: BlobKey, handle: Option<&UploadHandle>) -> Result<(), StoreError> {
        self.faults.aborted.lock().unwrap().push(handle.cloned());
        self.faults.of_store(Step::StoreAbort, self.inner.blobs.abort(key, handle)).await
    }

    async fn open(
        &self,
        key: BlobKey,
        size_bytes: u64,
        ranges: Vec<Range<u64>>,
        client: &Client,
    ) -> Result<BlobStream, StoreError> {
        self.faults.of_store(Step::StoreOpen, self.inner.blobs.open(key, size_bytes, ranges, client)).await
    }

    async fn delete(&self, key: BlobKey) -> Result<(), StoreError> {
        self.faults.of_store(Step::StoreDelete, self.inner.blobs.delete(key)).await
    }

    async fn facts(&self, key: BlobKey) -> Result<Option<BlobFacts>, StoreError> {
        self.faults.of_store(Step::StoreOther, self.inner.blobs.facts(key)).await
    }

    fn list(&self) -> BoxStream<'_, Result<(BlobKey, BlobFacts), StoreError>> {
        let listed = async { Ok(self.inner.blobs.list()) };
        stream::once(self.faults.of_store(Step::StoreOther, listed)).try_flatten().boxed()
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.inner.blobs.check().await
    }
}

#[async_trait]
impl LocalDisk for FaultyStore {
    async fn stamp(&self) -> Result<Option<Stamp>, StoreError> {
        self.faults.of_store(Step::StoreOther, self.disk().stamp()).await
    }

    async fn replace_stamp(&self, seen: Option<Stamp>, by: Stamp) -> Result<bool, StoreError> {
        self.faults.of_store(Step::StoreReplaceStamp, self.disk().replace_stamp(seen, by)).await
    }

    async fn space(&self) -> Result<Space, StoreError> {
        let told = *self.free_bytes.lock().unwrap();
        let space = async {
            match told {
                Some(free) => Ok(Space { free, used: USED_BY_OTHERS }),
                None => self.disk().space().await,
            }
        };
        self.faults.of_store(Step::StoreSpace, space).await
    }

    fn open_blobs(&self) -> Option<(usize, usize)> {
        self.disk().open_blobs()
    }

    async fn arriving(&self) -> Result<Vec<BlobKey>, StoreError> {
        self.faults.of_store(Step::StoreOther, self.disk().arriving()).await
    }

    async fn maintain(&self) -> Result<(), StoreError> {
        self.disk().maintain().await
    }

    async fn release_reserve(&self) -> Result<(), StoreError> {
        self.disk().release_reserve().await?;
        self.faults.faults.lock().unwrap().retain(|_, fault| *fault != Fault::FullButForTheReserve);
        Ok(())
    }
}

struct FaultyWriter {
    inner: Box<dyn BlobWriter>,
    faults: Faults,
}

#[async_trait]
impl BlobWriter for FaultyWriter {
    async fn write(&mut self, bytes: Bytes) -> Result<(), StoreError> {
        self.faults.of_store(Step::StoreWrite, self.inner.write(bytes)).await
    }

    async fn commit(self: Box<Self>) -> Result<(), StoreError> {
        let Self { inner, faults } = *self;
        faults.of_store(Step::StoreCommit, inner.commit()).await
    }
}
