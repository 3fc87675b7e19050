//! Writes a blob as it arrives. One task receives bytes while a blocking task writes the bytes before them.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use cloakroom_core::client::Client;
use cloakroom_core::resource::BlobKey;
use rustix::fs::OFlags;
use tokio::task::JoinHandle;
use tokio_util::task::AbortOnDropHandle;

use super::batch::Batch;
use super::calls::DiskCalls;
use super::root::Root;
use super::{Counted, Counter, DiskError, directory};
use crate::place::Place;
use cloakroom_core::lock::lock;
use cloakroom_storage::store::{BlobWriter, StoreError};
use cloakroom_storage::turns::Turns;

/// How many bytes are handed to the blocking task at a time: enough to make this cheap. An upload holds at most two
/// batches. If many blobs arrive at once, their batches get smaller, so that all of them together keep to a goal.
const LARGEST_BATCH: usize = 1 << 20;
const SMALLEST_BATCH: usize = 64 << 10;
const BATCHES_GOAL: usize = 2 << 20;

/// After this many bytes the disk is asked to begin writing, so that the final sync has little left to do. The number is
/// small because a sync also waits for what other uploads have asked the disk for. So does each write of the ledger.
const FLUSH_BYTES: u64 = 4 << 20;

/// After this many bytes the upload waits until the disk has done what it was asked for.
const MOST_UNFLUSHED_BYTES: u64 = 2 * FLUSH_BYTES;

/// On a slow disk, the next upload asks after this time although the one before is not done.
const LONGEST_FLUSH: Duration = Duration::from_secs(1);

pub(super) struct DiskWriter {
    key: BlobKey,
    client: Client,
    shared: Shared,
    batch: Batch,
    writing: Writing,
    /// Ends with the upload if it still waits for its turn.
    flushing: Option<AbortOnDropHandle<Result<(), DiskError>>>,
    since_flush: u64,
    arriving: Counted,
}

/// The parts that all uploads of one store share.
#[derive(Debug, Clone)]
pub(super) struct Shared {
    root: Arc<Root>,
    place: Place,
    calls: DiskCalls,
    shards: Arc<ShardFolders>,
    arriving: Counter,
    /// Which upload may ask the disk to begin writing. One does at a time.
    flushes: Turns,
}

impl Shared {
    pub(super) fn new(root: Arc<Root>, place: Place, calls: DiskCalls) -> Self {
        let flushes = Turns::one_by_one(LONGEST_FLUSH);
        Self { root, place, calls, shards: Arc::default(), arriving: Counter::default(), flushes }
    }
}

/// The state of the file: either it is here, or the blocking task has it. After a failure neither has it.
enum Writing {
    Idle(OpenFile),
    Busy(JoinHandle<Result<OpenFile, DiskError>>),
    Failed,
}

struct OpenFile {
    file: File,
    path: PathBuf,
}

impl DiskWriter {
    pub(super) fn create(key: BlobKey, client: Client, shared: Shared) -> Result<Self, DiskError> {
        let name = directory::incoming(key);
        let file = shared.root.open(&name, OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY, "create")?;
        let file = OpenFile { file, path: shared.root.shown(&name) };
        let arriving = shared.arriving.one_more();
        Ok(Self {
            key,
            client,
            shared,
            batch: Batch::default(),
            writing: Writing::Idle(file),
            flushing: None,
            since_flush: 0,
            arriving,
        })
    }

    /// Takes the file back from the blocking task. Returns the error of that task if it had one.
    async fn idle(&mut self) -> Result<OpenFile, DiskError> {
        match mem::replace(&mut self.writing, Writing::Failed) {
            Writing::Idle(file) => Ok(file),
            Writing::Busy(task) => task.await.map_err(|_| DiskError::Stopping)?,
            Writing::Failed => Err(DiskError::Stopping),
        }
    }

    async fn hand_over(&mut self) -> Result<(), DiskError> {
        let mut file = self.idle().await?;
        self.flush_early(&file).await?;
        self.since_flush += self.batch.length() as u64;
        let batch = self.batch.take();
        self.writing = Writing::Busy(self.shared.calls.begin(move || {
            file.append(&batch)?;
            Ok(file)
        })?);
        Ok(())
    }

    /// Starts to write back the page cache while more bytes arrive. A sync that failed is never tried again, because a
    /// second one may report success for pages that were lost. So the upload fails.
    async fn flush_early(&mut self, file: &OpenFile) -> Result<(), DiskError> {
        let is_flushing = self.flushing.as_ref().is_some_and(|flush| !flush.is_finished());
        if self.since_flush < if is_flushing { MOST_UNFLUSHED_BYTES } else { FLUSH_BYTES } {
            return Ok(());
        }
        self.flushed().await?;
        self.since_flush = 0;
        let path = file.path.clone();
        let file = file.file.try_clone().map_err(|error| DiskError::io("open", &path, error))?;
        let sync = move || file.sync_data().map_err(|error| DiskError::io("sync", &path, error));
        let (client, Shared { calls, flushes, .. }) = (self.client.clone(), self.shared.clone());
        self.flushing = Some(AbortOnDropHandle::new(tokio::spawn(async move {
            let _turn = flushes.take(client).await;
            calls.begin_sync(sync)?.await.map_err(|_| DiskError::Stopping)?
        })));
        Ok(())
    }

    async fn flushed(&mut self) -> Result<(), DiskError> {
        match self.flushing.take() {
            Some(flush) => flush.await.map_err(|_| DiskError::Stopping)?,
            None => Ok(()),
        }
    }
}

#[async_trait]
impl BlobWriter for DiskWriter {
    async fn write(&mut self, bytes: Bytes) -> Result<(), StoreError> {
        self.batch.push(bytes);
        let enough = (BATCHES_GOAL / self.arriving.count()).clamp(SMALLEST_BATCH, LARGEST_BATCH);
        if self.batch.length() >= enough {
            self.hand_over().await?;
        }
        Ok(())
    }

    async fn commit(mut self: Box<Self>) -> Result<(), StoreError> {
        self.hand_over().await?;
        let file = self.idle().await?;
        self.flushed().await?;
        let (key, shared) = (self.key, self.shared);
        let calls = shared.calls.clone();
        Ok(calls
            .begin_sync(move || publish(&file, key, &shared))?
            .await
            .map_err(|_| StoreError::Stopping)??)
    }
}

impl OpenFile {
    fn append(&mut self, batch: &[Bytes]) -> Result<(), DiskError> {
        write_all(&mut self.file, batch).map_err(|error| DiskError::io("write to", &self.path, error))
    }
}

/// Writes a whole batch, mostly with one system call.
fn write_all(file: &mut File, batch: &[Bytes]) -> io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> = batch.iter().map(|bytes| IoSlice::new(bytes)).collect();
    let mut rest = slices.as_mut_slice();
    IoSlice::advance_slices(&mut rest, 0);
    while !rest.is_empty() {
        match file.write_vectored(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut rest, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Makes the bytes durable, then the name, then the folder of the name. An acknowledgement needs this order, and a
/// folder that is still at its path.
fn publish(file: &OpenFile, key: BlobKey, shared: &Shared) -> Result<(), DiskError> {
    let Shared { root, place, shards, .. } = shared;
    file.file.sync_data().map_err(|error| DiskError::io("sync", &file.path, error))?;
    let to = directory::bundle(key);
    if let Some(shard) = to.parent() {
        shards.ensure(root, shard)?;
    }
    root.rename(&directory::incoming(key), &to)?;
    root.sync_folder_of(&to)?;
    Ok(place.look()?)
}

/// The folders over which bundles are spread. Remembers which of them are certain to survive power loss.
#[derive(Debug, Default)]
pub(super) struct ShardFolders {
    durable: Mutex<HashSet<PathBuf>>,
}

impl ShardFolders {
    /// Creates the folder if it is missing, and returns once its name is durable. It is not enough that the folder
    /// exists: another upload may have made it a moment ago, and may not have synced it yet.
    pub(super) fn ensure(&self, root: &Root, shard: &Path) -> Result<(), DiskError> {
        let mut durable = lock(&self.durable);
        if durable.contains(shard) && root.is_folder(shard) {
            return Ok(());
        }
        if let Some(parent) = shard.parent() {
            root.make_folder(parent)?;
            // It may have been removed, and is then made again.
            root.sync_folder_of(parent)?;
        }
        root.make_folder(shard)?;
        root.sync_folder_of(shard)?;
        durable.insert(shard.to_owned());
        Ok(())
    }
}
