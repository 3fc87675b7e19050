//! Bundles as files: `incoming/<id>` while they arrive, `bundles/<first two characters>/<id>` from then on.

mod batch;
mod buffers;
mod directory;
mod incoming;
mod permission;
mod reader;
mod reserve;
mod shards;

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use super::{Incoming, Space, Store, StoreError, StoredBundle};
use crate::resource::ResourceId;
use buffers::Buffers;
use incoming::DiskIncoming;
use reader::{DiskBundle, OpenFiles};

pub use directory::DataDirectory;

/// Bundles in a data directory that this process holds the lock of.
#[derive(Debug)]
pub struct DiskStore {
    directory: DataDirectory,
    incoming: incoming::Shared,
    buffers: Arc<Buffers>,
    open: Arc<OpenFiles>,
}

impl DiskStore {
    /// Takes over a data directory.
    pub fn new(directory: DataDirectory) -> Self {
        Self::with_open_bundles(directory, usize::MAX)
    }

    /// The same, with at most so many bundles open for reading at once.
    pub fn with_open_bundles(directory: DataDirectory, most: usize) -> Self {
        let open = Arc::new(OpenFiles::new(most));
        Self { directory, incoming: incoming::Shared::default(), buffers: Arc::default(), open }
    }
}

#[async_trait]
impl Store for DiskStore {
    async fn create(&self, id: ResourceId) -> Result<Box<dyn Incoming>, StoreError> {
        let from = self.directory.incoming(id);
        let to = self.directory.bundle(id);
        let shared = self.incoming.clone();
        blocking(move || DiskIncoming::create(from, to, shared)).await.map(|incoming| Box::new(incoming) as _)
    }

    async fn open(&self, id: ResourceId) -> Result<Option<Box<dyn StoredBundle>>, StoreError> {
        let path = self.directory.bundle(id);
        let (buffers, open) = (Arc::clone(&self.buffers), Arc::clone(&self.open));
        let bundle = blocking(move || DiskBundle::open(path, &open, buffers)).await?;
        Ok(bundle.map(|bundle| Box::new(bundle) as _))
    }

    async fn remove(&self, id: ResourceId) -> Result<(), StoreError> {
        let paths = [self.directory.incoming(id), self.directory.bundle(id)];
        let open = Arc::clone(&self.open);
        blocking(move || {
            paths.iter().try_for_each(|path| {
                let removed = remove(path);
                open.forget(path);
                removed
            })
        })
        .await
    }

    async fn ids(&self) -> Result<Vec<ResourceId>, StoreError> {
        let incoming = self.directory.incoming_folder();
        let bundles = self.directory.bundles_folder();
        blocking(move || {
            let mut ids = ids_in(&incoming)?;
            for shard in list(&bundles)?.iter().filter(|entry| entry.path().is_dir()) {
                let found = ids_in(&shard.path())?;
                // What lies in another folder than its own is not ours.
                ids.extend(found.into_iter().filter(|id| shard.file_name() == *id.shard()));
            }
            Ok(ids)
        })
        .await
    }

    async fn space(&self) -> Result<Option<Space>, StoreError> {
        let path = self.directory.path().to_owned();
        blocking(move || space(&path)).await.map(Some)
    }

    fn open_bundles(&self) -> Option<(usize, usize)> {
        self.open.count()
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

/// Runs file system calls where they may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| StoreError::Stopping)?
}

/// Unlinks a file and makes that durable; no such file is success.
fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Ok(()) => path.parent().map_or(Ok(()), sync_folder),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(StoreError::io("remove", path, error)),
    }
}

/// Makes the names in a folder durable.
fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    let opened = fs::File::open(folder).map_err(|error| StoreError::io("open", folder, error))?;
    opened.sync_all().map_err(|error| StoreError::io("sync", folder, error))
}

fn ids_in(folder: &Path) -> Result<Vec<ResourceId>, StoreError> {
    let entries = list(folder)?.into_iter();
    // What cannot be asked is listed: only a folder is certainly no bundle.
    let files = entries.filter(|entry| entry.file_type().map_or(true, |kind| !kind.is_dir()));
    Ok(files.filter_map(|file| ResourceId::parse(file.file_name().to_str()?).ok()).collect())
}

fn list(folder: &Path) -> Result<Vec<fs::DirEntry>, StoreError> {
    let failed = |error| StoreError::io("list", folder, error);
    fs::read_dir(folder).map_err(failed)?.map(|entry| entry.map_err(failed)).collect()
}

/// For an unprivileged user: blocks kept for root are neither free nor used.
fn space(path: &Path) -> Result<Space, StoreError> {
    let space = rustix::fs::statvfs(path)
        .map_err(|errno| StoreError::io("ask the free space of", path, errno.into()))?;
    let bytes = |blocks: u64| blocks.saturating_mul(space.f_frsize);
    Ok(Space { free: bytes(space.f_bavail), used: bytes(space.f_blocks.saturating_sub(space.f_bfree)) })
}
