//! Bundles as files: `incoming/<id>` while they arrive, then `bundles/<first two characters>/<id>`.

mod batch;
mod buffers;
mod counter;
mod directory;
mod listing;
mod permission;
mod reader;
mod reserve;
mod shards;
mod writer;

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use super::{Begun, BlobStore, LocalDisk, Space, StoreError, StoredBlob};
use cloakroom_core::resource::{BlobKey, UploadHandle};
use reader::{DiskBlob, Reading};
use writer::DiskWriter;

pub use directory::DataDirectory;

/// Bundles in a data directory that this process has locked.
#[derive(Debug)]
pub struct DiskStore {
    directory: DataDirectory,
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
        Self { directory, incoming: writer::Shared::default(), reading: Reading::new(most) }
    }
}

#[async_trait]
impl BlobStore for DiskStore {
    async fn begin(&self, key: BlobKey, _length: Option<u64>) -> Result<Begun, StoreError> {
        let from = self.directory.incoming(key);
        let to = self.directory.bundle(key);
        let shared = self.incoming.clone();
        let writer = blocking(move || DiskWriter::create(from, to, shared)).await?;
        Ok(Begun { writer: Box::new(writer), handle: None })
    }

    async fn abort(&self, key: BlobKey, _handle: Option<&UploadHandle>) -> Result<(), StoreError> {
        let path = self.directory.incoming(key);
        blocking(move || remove(&path)).await?;
        self.delete(key).await
    }

    async fn open(&self, key: BlobKey) -> Result<Option<Box<dyn StoredBlob>>, StoreError> {
        let path = self.directory.bundle(key);
        let reading = self.reading.clone();
        let blob = blocking(move || DiskBlob::open(path, reading)).await?;
        Ok(blob.map(|blob| Box::new(blob) as _))
    }

    async fn delete(&self, key: BlobKey) -> Result<(), StoreError> {
        let path = self.directory.bundle(key);
        let open = Arc::clone(&self.reading.open);
        blocking(move || {
            let removed = remove(&path);
            open.forget(&path);
            removed
        })
        .await
    }

    async fn list(&self, after: Option<BlobKey>, limit: usize) -> Result<Vec<BlobKey>, StoreError> {
        let folders = [self.directory.incoming_folder(), self.directory.bundles_folder()];
        blocking(move || listing::page(&folders[0], &folders[1], after, limit)).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.space().await.map(drop)
    }
}

#[async_trait]
impl LocalDisk for DiskStore {
    async fn space(&self) -> Result<Space, StoreError> {
        let path = self.directory.path().to_owned();
        blocking(move || space(&path)).await
    }

    fn open_blobs(&self) -> Option<(usize, usize)> {
        self.reading.open.count()
    }

    async fn keep_reserve(&self) -> Result<(), StoreError> {
        let path = self.directory.reserve();
        blocking(move || reserve::keep(&path)).await
    }

    async fn release_reserve(&self) -> Result<(), StoreError> {
        let path = self.directory.reserve();
        blocking(move || reserve::release(&path)).await
    }
}

/// Runs file system calls on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| StoreError::Stopping)?
}

/// Removes a file durably. It succeeds if there is no such file.
fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Ok(()) => path.parent().map_or(Ok(()), sync_folder),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(StoreError::io("remove", path, error)),
    }
}

/// Makes the names in a folder survive power loss.
fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    let opened = fs::File::open(folder).map_err(|error| StoreError::io("open", folder, error))?;
    opened.sync_all().map_err(|error| StoreError::io("sync", folder, error))
}

/// Space for an unprivileged user: blocks that are kept for root are neither free nor used.
fn space(path: &Path) -> Result<Space, StoreError> {
    let space = rustix::fs::statvfs(path)
        .map_err(|errno| StoreError::io("ask the free space of", path, errno.into()))?;
    let bytes = |blocks: u64| blocks.saturating_mul(space.f_frsize);
    Ok(Space { free: bytes(space.f_bavail), used: bytes(space.f_blocks.saturating_sub(space.f_bfree)) })
}
