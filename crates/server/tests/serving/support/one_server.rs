//! A server that can be held up at any step, and the data that its successor finds.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use cloakroom_adapters::sqlite::SqliteLedger;
use cloakroom_core::client::Client;
use cloakroom_core::metrics::{Limited, Metrics};
use cloakroom_core::resource::{
    DeletionReason, Holder, Lifetime, Owner, OwnerKind, Ready, Resource, ResourceId, ResourceSecret,
};
use cloakroom_storage::ledger::Ledger;
use cloakroom_storage::log::Timing;
use cloakroom_storage::store::{Storage, StoreError};
use cloakroom_storage::{
    AccessError, Authority, ClaimError, Download, Limits, NewUpload, Ownership, Recovered, Share, Staged,
    Staging, StraysGo, Terms, Upload, UploadError,
};
use cloakroom_suites::ledgers::{Opened, took_over};
use cloakroom_suites::memory_log::MemoryLog;
use cloakroom_suites::stores::{Store, StoreData};
use cloakroom_testing::clock::ManualClock;
use cloakroom_testing::wait::{BOUND, until};
use futures_util::{StreamExt as _, TryStreamExt as _};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::app::{Options, change_ledger};
use super::faults::{Faults, FaultyStore, Side, Step, Stop};
use super::faulty_ledger::FaultyLedger;

pub const BUNDLE: &[u8] = b"jars that must not get lost";
pub const SIDES: [Side; 2] = [Side::Before, Side::After];
pub const UNUSED_TIMEOUT: Duration = Duration::from_mins(30);

/// What one server after the other works on.
pub struct SharedData {
    pub clock: Arc<ManualClock>,
    pub ledger: Arc<dyn Ledger>,
    pub store: StoreData,
    files: Files,
}

/// What the ledger is in.
enum Files {
    OnDisk(TempDir),
    /// Only the log lasts. A server that takes over from another one does not wait for its stamp.
    InBucket(Arc<MemoryLog>, Box<Opened>),
}

impl Files {
    async fn new(store: &StoreData) -> Self {
        if store.storage.disk.is_some() {
            return Self::OnDisk(tempfile::tempdir().unwrap());
        }
        let log = Arc::<MemoryLog>::default();
        let opened = Self::taken_over(&log).await;
        Self::InBucket(log, opened)
    }

    async fn taken_over(log: &Arc<MemoryLog>) -> Box<Opened> {
        let timing = Timing { patience: Duration::ZERO, look: BOUND, beat: BOUND };
        Box::new(took_over(Arc::clone(log) as _, timing, None).await.unwrap())
    }

    async fn ledger(&self) -> Arc<dyn Ledger> {
        match self {
            Self::OnDisk(folder) => {
                Arc::new(SqliteLedger::open(&folder.path().join("ledger.db")).await.unwrap())
            }
            Self::InBucket(_, opened) => Arc::clone(&opened.ledger) as _,
        }
    }

    fn ownership(&self) -> Ownership {
        let heartbeat = match self {
            Self::OnDisk(_) => None,
            Self::InBucket(_, opened) => Some((Arc::clone(&opened.started.heartbeat.0), Duration::ZERO)),
        };
        Ownership { heartbeat, ..Ownership::default() }
    }

    fn folder(&self) -> &Path {
        match self {
            Self::OnDisk(folder) => folder.path(),
            Self::InBucket(_, opened) => opened.folder.path(),
        }
    }

    async fn restarted(self) -> Self {
        match self {
            Self::OnDisk(folder) => Self::OnDisk(folder),
            Self::InBucket(log, _) => {
                let opened = Self::taken_over(&log).await;
                Self::InBucket(log, opened)
            }
        }
    }
}

/// One of them.
pub struct Server {
    pub staging: Staging,
    pub faults: Faults,
}

impl SharedData {
    pub async fn new(store: &'static Store) -> Self {
        let (clock, store) = (Arc::new(ManualClock::new()), store.create().await);
        let files = Files::new(&store).await;
        Self { clock, ledger: files.ledger().await, store, files }
    }

    /// A server with shares, so that its uploads ask for the room of their holder.
    pub async fn server(&self) -> Server {
        self.server_with(Limits { share: Some(Share::DEFAULT), ..Options::default().limits }).await
    }

    pub async fn server_with(&self, limits: Limits) -> Server {
        self.opened(&Faults::default(), limits).await.unwrap()
    }

    /// A server that may not start.
    pub async fn opened(&self, faults: &Faults, limits: Limits) -> Result<Server, ClaimError> {
        let ledger = FaultyLedger { inner: Arc::clone(&self.ledger), faults: faults.clone() };
        let store = Arc::new(FaultyStore {
            inner: self.store.storage.clone(),
            faults: faults.clone(),
            free_bytes: Mutex::default(),
        });
        let is_disk = self.store.storage.disk.is_some();
        let storage = if is_disk { Storage::on_disk(store) } else { Storage::elsewhere(store) };
        let clock = Arc::clone(&self.clock) as _;
        let ownership = self.files.ownership();
        let opened = Staging::open(Arc::new(ledger), storage, clock, limits, Metrics::new(), ownership).await;
        Ok(Server { staging: opened?, faults: faults.clone() })
    }

    /// The same data after a restart: what the ledger had in memory only is gone.
    pub async fn restarted(self) -> Self {
        // In a bucket this waits until the log has all changes.
        self.ledger.totals().await.unwrap();
        self.crashed().await
    }

    /// The same, and in a bucket what the log has not is gone as well.
    pub async fn crashed(self) -> Self {
        let files = self.files.restarted().await;
        Self { ledger: files.ledger().await, files, ..self }
    }

    pub async fn with_server(store: &'static Store) -> (Self, Server) {
        let shared = Self::new(store).await;
        let server = shared.server().await;
        (shared, server)
    }

    /// The same, after the end of the server in the middle of an upload, when `step` was done.
    pub async fn with_interrupted(store: &'static Store, step: Step) -> Self {
        let (shared, server) = Self::with_server(store).await;
        let dead = server.stopped_at(step, Side::After);
        let _never_ends = server.uploads();
        dead.reached().await;
        shared.restarted().await
    }

    pub fn is_in_bucket(&self) -> bool {
        matches!(self.files, Files::InBucket(..))
    }

    /// A change of the ledger that no server makes.
    pub async fn change_ledger(&self, sql: &str) {
        change_ledger(self.files.folder(), sql).await;
    }

    pub async fn rows(&self) -> BTreeMap<&'static str, u64> {
        self.ledger.totals().await.unwrap().by_state
    }

    /// How many keys have bytes, committed or not.
    pub async fn blobs(&self) -> usize {
        self.store.arriving().await.len() + self.store.list().count().await
    }

    /// Where the upload failed at its caller's, it is cleaned up in the background.
    pub async fn assert_nothing_left(&self, what: &str) {
        until(what, async || (self.rows().await, self.blobs().await) == (BTreeMap::new(), 0)).await;
    }
}

impl Server {
    /// Begins an upload whose length is not announced, in a task that can be held up.
    pub fn begins(&self) -> JoinHandle<Result<Upload, UploadError>> {
        let staging = self.staging.clone();
        let new = NewUpload { holder: Some(Holder::namespace("demo")), ..NewUpload::default() };
        tokio::spawn(async move { staging.begin_upload(new).await })
    }

    /// Uploads all of it, in a task that can be held up.
    pub fn uploads(&self) -> JoinHandle<Result<Staged, UploadError>> {
        let staging = self.staging.clone();
        let new = NewUpload { holder: Some(Holder::namespace("demo")), ..NewUpload::default() };
        tokio::spawn(async move {
            let mut upload = staging.begin_upload(new).await?;
            upload.write(Bytes::from_static(BUNDLE)).await?;
            finish(upload).await
        })
    }

    pub async fn staged(&self) -> Staged {
        self.uploads().await.unwrap().unwrap()
    }

    pub async fn recovers(&self) -> Recovered {
        self.sweeps().await.unwrap().unwrap()
    }

    /// A thorough recovery, as a sweep begins with it, in a task that can be held up.
    pub fn sweeps(&self) -> JoinHandle<Result<Recovered, AccessError>> {
        let staging = self.staging.clone();
        tokio::spawn(async move { staging.recover(true, StraysGo::Now).await })
    }

    /// How many resources and uploads take room.
    pub async fn taken_resources(&self) -> u64 {
        let limits = self.staging.stock().await.limits;
        limits.iter().find(|limit| limit.of == Limited::Resources).unwrap().used
    }

    pub async fn row(&self, staged: &Staged) -> Resource<Ready> {
        self.staging.look_up(staged.id).await.unwrap().unwrap().into_ready().unwrap()
    }

    /// As a sweep does it that has decided on `seen`.
    pub fn expires(&self, seen: Resource<Ready>) -> JoinHandle<Result<bool, AccessError>> {
        let staging = self.staging.clone();
        tokio::spawn(async move {
            let at = staging.clock().now();
            staging.expire(&seen, DeletionReason::Unused, at, Authority::Sweep).await
        })
    }

    pub fn releases(&self, staged: &Staged) -> JoinHandle<Result<(), AccessError>> {
        let (staging, id, secret) = (self.staging.clone(), staged.id, staged.secret.clone());
        tokio::spawn(async move { staging.release(id, &secret).await })
    }

    pub async fn opens(&self, staged: &Staged) -> Result<Download, AccessError> {
        open_whole(&self.staging, staged.id, &staged.secret).await
    }

    /// The whole of it, as the HTTP edge does it.
    pub fn downloads(&self, staged: &Staged) -> JoinHandle<Result<Vec<u8>, AccessError>> {
        let (staging, id, secret) = (self.staging.clone(), staged.id, staged.secret.clone());
        tokio::spawn(async move {
            let download = open_whole(&staging, id, &secret).await?;
            staging.mark_used(download.resource()).await?;
            Ok(read(download).await.unwrap())
        })
    }

    pub async fn assert_downloads(&self, staged: &Staged, what: &str) {
        assert_eq!(self.downloads(staged).await.unwrap().unwrap(), BUNDLE, "{what}");
    }

    pub fn stopped_at(&self, step: Step, side: Side) -> Stop {
        self.faults.stop_at(step, side)
    }
}

pub async fn finish(upload: Upload) -> Result<Staged, UploadError> {
    finish_admitted(upload, ()).await
}

pub async fn finish_admitted(upload: Upload, admission: impl Send + 'static) -> Result<Staged, UploadError> {
    let labels = [("app".to_owned(), "demo".to_owned())];
    let terms = Terms {
        owner: Owner::new(OwnerKind::default(), "demo", labels, None).unwrap(),
        lifetime: Lifetime { unused_timeout: UNUSED_TIMEOUT, ttl: None },
        expected_sha256: None,
    };
    upload.finish(terms, Metrics::new().upload(), admission).await
}

/// Opens the whole of a bundle, as a GET does.
pub async fn open_whole(
    staging: &Staging,
    id: ResourceId,
    secret: &ResourceSecret,
) -> Result<Download, AccessError> {
    let resource = staging.find(id, secret).await?;
    let size_bytes = resource.data.bundle.size_bytes;
    staging.open_download(resource, vec![0..size_bytes], Client::Server).await
}

pub async fn read(download: Download) -> Result<Vec<u8>, StoreError> {
    let pieces: Vec<Bytes> = download.read().try_collect().await?;
    Ok(pieces.concat())
}
