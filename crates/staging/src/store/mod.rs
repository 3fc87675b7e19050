//! Where bundles' bytes are.

mod disk;
mod error;
mod memory;

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;

use cloakroom_core::resource::{BlobKey, UploadHandle};

pub use disk::{DataDirectory, DiskStore};
pub use error::{NotPermitted, StoreError};
pub use memory::MemoryStore;

/// Holds immutable blobs under keys that are never used twice. Bytes appear under a key all at once or not at all.
#[async_trait]
pub trait BlobStore: Send + Sync {
    /// Begins to take the bytes of `key`, `length` of them if that is known. They are not visible before
    /// [`BlobWriter::commit`].
    async fn begin(&self, key: BlobKey, length: Option<u64>) -> Result<Begun, StoreError>;

    /// Removes whatever an upload left under `key`, committed or not; nothing there is success. No writer of that key may
    /// be in use any more. `handle` is what [`Self::begin`] gave, as far as that is known.
    async fn abort(&self, key: BlobKey, handle: Option<&UploadHandle>) -> Result<(), StoreError>;

    /// Opens the blob of `key`; `None` if none was committed.
    async fn open(&self, key: BlobKey) -> Result<Option<Box<dyn StoredBlob>>, StoreError>;

    /// Removes the committed blob of `key`; nothing there is success.
    async fn delete(&self, key: BlobKey) -> Result<(), StoreError>;

    /// Up to `limit` keys that have bytes, committed or not, in their order, after `after`; none if there are no more. What
    /// changes meanwhile may be there or not.
    async fn list(&self, after: Option<BlobKey>, limit: usize) -> Result<Vec<BlobKey>, StoreError>;

    /// Whether blobs could be read now.
    async fn check(&self) -> Result<(), StoreError>;
}

/// An upload that a store has begun.
pub struct Begun {
    /// Takes the bytes.
    pub writer: Box<dyn BlobWriter>,
    /// What [`BlobStore::abort`] needs to be told after a crash; to be kept before the first byte is written. `None` if the
    /// key is enough.
    pub handle: Option<UploadHandle>,
}

/// Bytes on their way in. Dropping it leaves them to [`BlobStore::abort`].
#[async_trait]
pub trait BlobWriter: Send {
    /// Takes the next bytes. It may return before they are written, but never holds more than a fixed number of them.
    async fn write(&mut self, bytes: Bytes) -> Result<(), StoreError>;

    /// Makes the bytes durable and visible, both before it returns.
    async fn commit(self: Box<Self>) -> Result<(), StoreError>;
}

/// The bytes of one blob.
pub trait StoredBlob: Send + Sync {
    /// Their number.
    fn size_bytes(&self) -> u64;

    /// The bytes in `range`, in pieces that are read a little ahead. Fewer than that is an error, because a blob never changes.
    fn read(self: Box<Self>, range: Range<u64>) -> BoxStream<'static, Result<Bytes, StoreError>>;
}

/// What only a store on a disk of this machine has. What was opened there stays readable when its blob is deleted.
#[async_trait]
pub trait LocalDisk: Send + Sync {
    /// How much room the disk has.
    async fn space(&self) -> Result<Space, StoreError>;

    /// How many blobs are open for reading, and how many may be; `None` if there is no such limit.
    fn open_blobs(&self) -> Option<(usize, usize)>;

    /// Makes sure that a little room is kept back, so that deletions can be written down on a full disk.
    async fn keep_reserve(&self) -> Result<(), StoreError>;

    /// Gives the kept-back room up.
    async fn release_reserve(&self) -> Result<(), StoreError>;
}

/// The room of a disk, all in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// How many more it could take.
    pub free: u64,
    /// What is taken, by anyone.
    pub used: u64,
}

/// A store, with the disk that it is on, if it is on one of this machine.
#[derive(Clone)]
pub struct Storage {
    /// The blobs.
    pub blobs: Arc<dyn BlobStore>,
    /// Their disk.
    pub disk: Option<Arc<dyn LocalDisk>>,
}

impl Storage {
    /// Blobs on a disk of this machine.
    pub fn on_disk(store: Arc<impl BlobStore + LocalDisk + 'static>) -> Self {
        Self { blobs: Arc::clone(&store) as _, disk: Some(store) }
    }

    /// Blobs elsewhere.
    pub fn elsewhere(store: Arc<impl BlobStore + 'static>) -> Self {
        Self { blobs: store, disk: None }
    }

    /// How much room the disk has, if there is one.
    pub async fn space(&self) -> Result<Option<Space>, StoreError> {
        match &self.disk {
            Some(disk) => disk.space().await.map(Some),
            None => Ok(None),
        }
    }
}
