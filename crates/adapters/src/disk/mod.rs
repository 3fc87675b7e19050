//! Bundles as files: `incoming/<id>` while they arrive, then `bundles/<first two characters>/<id>`.

mod batch;
mod buffers;
mod calls;
mod counter;
mod directory;
mod error;
mod listing;
mod permission;
mod reader;
mod reserve;
mod root;
mod shards;
mod writer;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use calls::Calls;
use cloakroom_core::resource::{BlobKey, UploadHandle};
use cloakroom_storage::store::{Begun, BlobFacts, BlobStore, LocalDisk, Space, StoreError, StoredBlob};
use reader::{DiskBlob, Reading};
use root::Root;
use writer::DiskWriter;

pub use directory::DataDirectory;
pub use error::{DiskError, NotPermitted};

/// Bundles in a data directory that this process has locked.
#[derive(Debug)]
pub struct DiskStore {
    directory: Arc<DataDirectory>,
    calls: Calls,
    incoming: writer::Shared,
    reading: Reading,
}

impl DiskStore {
    /// A store in `directory`, without a limit of open blobs.
    pub fn new(directory: DataDirectory) -> Self {
        Self::with_open_blobs(directory, usize::MAX)
    }

    /// A store with at most `most` blobs open for reading at once.
    pub fn with_open_blobs(directory: DataDirectory, most: usize) -> Self {
        let (root, calls) = (directory.root(), Calls::default());
        let incoming = writer::Shared::new(Arc::clone(root), directory.place().clone(), calls.clone());
        let reading = Reading::new(Arc::clone(root), calls.clone(), most);
        Self { directory: Arc::new(directory), calls, incoming, reading }
    }

    /// Runs `work` in the data directory, on a thread that may block.
    async fn in_root<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Root) -> Result<T, DiskError> + Send + 'static,
    ) -> Result<T, DiskError> {
        let root = Arc::clone(self.directory.root());
        self.calls.run(move || work(&root)).await
    }
}

#[async_trait]
impl BlobStore for DiskStore {
    async fn begin(&self, key: BlobKey, _length: Option<u64>) -> Result<Begun, StoreError> {
        let shared = self.incoming.clone();
        let writer = self.calls.run(move || DiskWriter::create(key, shared)).await?;
        Ok(Begun { writer: Box::new(writer), handle: None })
    }

    async fn abort(&self, key: BlobKey, _handle: Option<&UploadHandle>) -> Result<(), StoreError> {
        self.in_root(move |root| root.remove(&directory::incoming(key))).await?;
        self.delete(key).await
    }

    async fn open(&self, key: BlobKey) -> Result<Option<Box<dyn StoredBlob>>, StoreError> {
        let reading = self.reading.clone();
        let blob = DiskBlob::open(key, reading).await?;
        Ok(blob.map(|blob| Box::new(blob) as _))
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
        let found = self.in_root(move |root| root.look_at(&directory::bundle(key))).await?;
        Ok(found.map(|found| BlobFacts {
            size_bytes: u64::try_from(found.st_size).unwrap_or(0),
            changed_at: Timestamp::from_second(found.st_mtime).unwrap_or(Timestamp::MAX),
        }))
    }

    async fn list(&self, after: Option<BlobKey>, limit: usize) -> Result<Vec<BlobKey>, StoreError> {
        Ok(self.in_root(move |root| listing::page(root, after, limit)).await?)
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

    async fn maintain(&self) -> Result<(), StoreError> {
        let directory = Arc::clone(&self.directory);
        let maintained = self.calls.run(move || {
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
