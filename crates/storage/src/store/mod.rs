//! The port for the bytes of bundles, and the store that keeps them in memory.

mod error;
mod memory;

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use jiff::Timestamp;

use cloakroom_core::resource::{BlobKey, UploadHandle};

pub use error::{Cause, StoreError};
pub use memory::MemoryStore;

/// Holds immutable blobs under keys that are never used twice. A blob appears under its key complete, or not at all.
#[async_trait]
pub trait BlobStore: Send + Sync {
    /// Begins to take the bytes of `key`. `length` is their number, if it is known. The bytes are not visible before
    /// [`BlobWriter::commit`].
    async fn begin(&self, key: BlobKey, length: Option<u64>) -> Result<Begun, StoreError>;

    /// Removes all that an upload left under `key`, committed or not. It succeeds if there is nothing. No writer of
    /// that key may be in use any more. `handle` is the one that [`Self::begin`] returned, if it is known.
    async fn abort(&self, key: BlobKey, handle: Option<&UploadHandle>) -> Result<(), StoreError>;

    /// Opens the blob of `key`; `None` if no such blob was committed.
    async fn open(&self, key: BlobKey) -> Result<Option<Box<dyn StoredBlob>>, StoreError>;

    /// Removes the committed blob of `key`. It succeeds if there is none.
    async fn delete(&self, key: BlobKey) -> Result<(), StoreError>;

    /// Looks at the committed blob of `key` without opening it; `None` if there is none.
    async fn facts(&self, key: BlobKey) -> Result<Option<BlobFacts>, StoreError>;

    /// Up to `limit` keys after `after` that have bytes, committed or not, in order. Empty if there are no more. A key
    /// that appears or disappears meanwhile may be listed or not.
    async fn list(&self, after: Option<BlobKey>, limit: usize) -> Result<Vec<BlobKey>, StoreError>;

    /// Checks whether blobs can be read now.
    async fn check(&self) -> Result<(), StoreError>;
}

/// What a store knows of a blob without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlobFacts {
    /// The number of its bytes.
    pub size_bytes: u64,
    /// When it was last changed, by the store's clock. A copy that was put back may have the time of its original.
    pub changed_at: Timestamp,
}

/// An upload that a store has begun.
pub struct Begun {
    /// Takes the bytes of the upload.
    pub writer: Box<dyn BlobWriter>,
    /// What [`BlobStore::abort`] needs after a crash. It must be stored before the first byte is written. `None` if the
    /// key is enough.
    pub handle: Option<UploadHandle>,
}

/// An upload in flight. If it is dropped, [`BlobStore::abort`] must remove its bytes.
#[async_trait]
pub trait BlobWriter: Send {
    /// Takes the next bytes. It may return before they are written, but never holds more than a fixed number of them.
    async fn write(&mut self, bytes: Bytes) -> Result<(), StoreError>;

    /// Makes the bytes durable and visible before it returns.
    async fn commit(self: Box<Self>) -> Result<(), StoreError>;
}

/// A committed blob that is open for reading.
pub trait StoredBlob: Send + Sync {
    /// The number of its bytes.
    fn size_bytes(&self) -> u64;

    /// The bytes in `range`, in pieces that are read a little ahead. If bytes are missing, that is an error, because a
    /// blob never changes.
    fn read(self: Box<Self>, range: Range<u64>) -> BoxStream<'static, Result<Bytes, StoreError>>;
}

/// What only a store on a local disk has. A blob that is open there stays readable when it is deleted.
#[async_trait]
pub trait LocalDisk: Send + Sync {
    /// How much room the disk has, and how much of it is used.
    async fn space(&self) -> Result<Space, StoreError>;

    /// How many blobs are open for reading, and how many may be open; `None` if there is no limit.
    fn open_blobs(&self) -> Option<(usize, usize)>;

    /// Called before each sweep: checks that the folder is still the one that this process has locked, and keeps some disk
    /// space in reserve, so that deletions can be stored on a full disk.
    async fn maintain(&self) -> Result<(), StoreError>;

    /// Frees the reserve.
    async fn release_reserve(&self) -> Result<(), StoreError>;
}

/// The space of a disk, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Space that this process can still use.
    pub free: u64,
    /// Space that is used, by this process or others.
    pub used: u64,
}

/// A store, and its disk if it is on a local one.
#[derive(Clone)]
pub struct Storage {
    /// The blobs of the store.
    pub blobs: Arc<dyn BlobStore>,
    /// The disk that they are on; `None` if they are not on a local disk.
    pub disk: Option<Arc<dyn LocalDisk>>,
}

impl Storage {
    /// Storage for blobs on a local disk.
    pub fn on_disk(store: Arc<impl BlobStore + LocalDisk + 'static>) -> Self {
        Self { blobs: Arc::clone(&store) as _, disk: Some(store) }
    }

    /// Storage for blobs that are not on a local disk.
    pub fn elsewhere(store: Arc<impl BlobStore + 'static>) -> Self {
        Self { blobs: store, disk: None }
    }

    /// How much space the disk has; `None` without a local disk.
    pub async fn space(&self) -> Result<Option<Space>, StoreError> {
        match &self.disk {
            Some(disk) => disk.space().await.map(Some),
            None => Ok(None),
        }
    }
}
