//! Bundles as files: `incoming/<id>` while they arrive, then `bundles/<first two characters>/<id>`.

mod batch;
mod buffers;
mod calls;
mod directory;
mod error;
mod listing;
mod reader;
mod reserve;
mod root;
mod stamp;
mod writer;

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt as _, TryStreamExt as _};

use cloakroom_core::client::Client;
use cloakroom_core::resource::{BlobKey, UploadHandle};
use cloakroom_storage::stamp::Stamp;
use cloakroom_storage::store::{
    Begun, BlobFacts, BlobStore, BlobStream, LocalDisk, Space, StoreError, with_first_piece,
};
use reader::{DiskBlob, Reading};
use root::Root;
use writer::DiskWriter;

pub use directory::DataDirectory;
pub use error::{DiskError, NotPermitted};

/// Bundles in a data directory that this process has locked.
#[derive(Debug)]
pub struct DiskStore {
    directory: DataDirectory,
    incoming: writer::Shared,
    reading: Reading,
    /// Held while the stamp is replaced. The lock of the directory keeps other processes off.
    stamping: tokio::sync::Mutex<()>,
}

impl DiskStore {
    /// A store in `directory`, without a limit of open blobs.
    pub fn new(directory: DataDirectory) -> Self {
        Self::with_open_blobs(directory, usize::MAX)
    }

    /// A store with at most `most` blobs open for reading at once.
    pub fn with_open_blobs(directory: DataDirectory, most: usize) -> Self {
        let (root, calls) = (directory.root(), directory.calls());
        let incoming = writer::Shared::new(Arc::clone(root), directory.place().clone(), calls.clone());
        let reading = Reading::new(Arc::clone(root), calls.clone(), most);
        let stamping = tokio::sync::Mutex::default();
        Self { directory, incoming, reading, stamping }
    }

    /// Runs `work` in the data directory, on a thread that may block.
    async fn in_root<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Root) -> Result<T, DiskError> + Send + 'static,
    ) -> Result<T, DiskError> {
        let root = Arc::clone(self.directory.root());
        self.directory.calls().run(move || work(&root)).await
    }
}

#[async_trait]
impl BlobStore for DiskStore {
    async fn begin(&self, key: BlobKey, _length: Option<u64>, client: &Client) -> Result<Begun, StoreError> {
        let (client, shared) = (client.clone(), self.incoming.clone());
        let writer = self.directory.calls().run(move || DiskWriter::create(key, client, shared)).await?;
        Ok(Begun { writer: Box::new(writer), handle: None })
    }

    async fn abort(&self, key: BlobKey, _handle: Option<&UploadHandle>) -> Result<(), StoreError> {
        self.in_root(move |root| root.remove(&directory::incoming(key))).await?;
        self.delete(key).await
    }

    async fn open(
        &self,
        key: BlobKey,
        size_bytes: u64,
        ranges: Vec<Range<u64>>,
        _client: &Client,
    ) -> Result<BlobStream, StoreError> {
        let blob = DiskBlob::open(key, size_bytes, self.reading.clone()).await?;
        with_first_piece(blob.read(ranges)).await
    }

    async fn delete(&self, key: BlobKey) -> Result<(), StoreError> {
        let open = Arc::clone(&self.reading.open);
        self.in_root(move |root| {
            let removed = root.remove(&directory::bundle(key));
            open.forget(key);
            removed
        })
        .await?;
        Ok(())
    }

    async fn facts(&self, key: BlobKey) -> Result<Option<BlobFacts>, StoreError> {
        Ok(self.in_root(move |root| listing::facts(root, key)).await?)
    }

    fn list(&self) -> BoxStream<'_, Result<(BlobKey, BlobFacts), StoreError>> {
        let shards = stream::once(self.in_root(listing::shards))
            .map_ok(|shards| stream::iter(shards).map(Ok::<_, DiskError>));
        let blobs =
            shards.try_flatten().and_then(|shard| self.in_root(move |root| listing::blobs(root, &shard)));
        blobs.map_ok(|blobs| stream::iter(blobs).map(Ok::<_, DiskError>)).try_flatten().err_into().boxed()
    }

    async fn check(&self) -> Result<(), StoreError> {
        let place = self.directory.place().clone();
        self.in_root(move |root| {
            root.space()?;
            Ok(place.look()?)
        })
        .await?;
        Ok(())
    }
}

#[async_trait]
impl LocalDisk for DiskStore {
    async fn space(&self) -> Result<Space, StoreError> {
        Ok(self.in_root(Root::space).await?)
    }

    fn open_blobs(&self) -> Option<(usize, usize)> {
        self.reading.open.count()
    }

    async fn stamp(&self) -> Result<Option<Stamp>, StoreError> {
        Ok(self.in_root(stamp::read).await?)
    }

    async fn replace_stamp(&self, seen: Option<Stamp>, by: Stamp) -> Result<bool, StoreError> {
        let _one = self.stamping.lock().await;
        Ok(self.in_root(move |root| stamp::replace(root, seen, by)).await?)
    }

    async fn arriving(&self) -> Result<Vec<BlobKey>, StoreError> {
        Ok(self.in_root(listing::arriving).await?)
    }

    async fn maintain(&self) -> Result<(), StoreError> {
        let directory = self.directory.clone();
        let maintained = self.directory.calls().run(move || {
            directory.place().look()?;
            directory.make_again()?;
            reserve::keep(directory.root())
        });
        Ok(maintained.await?)
    }

    async fn release_reserve(&self) -> Result<(), StoreError> {
        Ok(self.in_root(reserve::release).await?)
    }
}

/// Makes the names in a folder survive power loss.
fn sync_folder(folder: &Path) -> Result<(), DiskError> {
    let opened = fs::File::open(folder).map_err(|error| DiskError::io("open", folder, error))?;
    opened.sync_all().map_err(|error| DiskError::io("sync", folder, error))
}

/// A count that follows the life of its parts. Clones are the same count.
#[derive(Debug, Clone, Default)]
struct Counter(Arc<AtomicUsize>);

/// One of the counted things. It is counted until it is dropped.
#[derive(Debug)]
struct Counted(Counter);

impl Counter {
    fn one_more(&self) -> Counted {
        self.0.fetch_add(1, Ordering::Relaxed);
        Counted(self.clone())
    }
}

impl Counted {
    /// How many there are now, this one included.
    fn count(&self) -> usize {
        self.0.0.load(Ordering::Relaxed).max(1)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
