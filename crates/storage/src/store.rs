//! The port for the bytes of bundles.

mod error;

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use jiff::Timestamp;

use crate::stamp::Stamp;
use cloakroom_core::client::Client;
use cloakroom_core::metrics::LimitUse;
use cloakroom_core::resource::{BlobKey, UploadHandle};

pub use error::{Cause, StoreError};

/// Holds immutable blobs. A blob appears under its key complete, or not at all. A key has one writer, ever.
#[async_trait]
pub trait BlobStore: Send + Sync {
    /// Begins to take the bytes of `key`. `length` is their number, if it is known. The bytes are not visible before
    /// [`BlobWriter::commit`]. The memory that this takes counts for `client`.
    async fn begin(&self, key: BlobKey, length: Option<u64>, client: &Client) -> Result<Begun, StoreError>;

    /// Removes all that an upload left under `key`, committed or not. It succeeds if there is nothing. No writer of
    /// that key may be in use any more. `handle` is the one that [`Self::begin`] returned, if it is known.
    async fn abort(&self, key: BlobKey, handle: Option<&UploadHandle>) -> Result<(), StoreError>;

    /// Opens `ranges` of the committed blob of `key`, which has `size_bytes`; they are read one after the other. When this returns,
    /// the first bytes are there. So a blob that cannot be read is an error here, before anything was promised. A blob that is
    /// missing, or that has another size, is [`StoreError::Missing`]. If bytes are missing later, the stream ends with an error. No
    /// piece is of two ranges. The memory that this takes counts for `client`, and is kept from one range to the next.
    async fn open(
        &self,
        key: BlobKey,
        size_bytes: u64,
        ranges: Vec<Range<u64>>,
        client: &Client,
    ) -> Result<BlobStream, StoreError>;

    /// Removes the committed blob of `key`. It succeeds if there is none.
    async fn delete(&self, key: BlobKey) -> Result<(), StoreError>;

    /// Looks at the committed blob of `key` without opening it; `None` if there is none.
    async fn facts(&self, key: BlobKey) -> Result<Option<BlobFacts>, StoreError>;

    /// All committed blobs, in no order. One that appears or disappears meanwhile may be listed or not.
    fn list(&self) -> BoxStream<'_, Result<(BlobKey, BlobFacts), StoreError>>;

    /// Checks whether blobs can be read now.
    async fn check(&self) -> Result<(), StoreError>;

    /// How much of the memory for transfers is used; `None` if it has no bound of its own.
    fn memory(&self) -> Option<LimitUse> {
        None
    }
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

    /// Makes the bytes durable and visible before it returns. If the answer of a store gets lost, its adapter looks whether
    /// the blob is there. So after an error the blob is not committed, unless it is [`StoreError::Unavailable`]: then nothing
    /// is known, and the blob may even appear later.
    async fn commit(self: Box<Self>) -> Result<(), StoreError>;
}

/// Bytes of a committed blob, in order, in pieces that are read a little ahead.
pub type BlobStream = BoxStream<'static, Result<Bytes, StoreError>>;

/// Waits for the first piece of `pieces`. An error in its place is the error of this call.
pub async fn with_first_piece(mut pieces: BlobStream) -> Result<BlobStream, StoreError> {
    match pieces.next().await {
        Some(first) => Ok(stream::iter([Ok(first?)]).chain(pieces).boxed()),
        None => Ok(stream::empty().boxed()),
    }
}

/// What only a store on a local disk has. A blob that is open there stays readable when it is deleted.
#[async_trait]
pub trait LocalDisk: Send + Sync {
    /// How much room the disk has, and how much of it is used.
    async fn space(&self) -> Result<Space, StoreError>;

    /// How many blobs are open for reading, and how many may be open; `None` if there is no limit.
    fn open_blobs(&self) -> Option<(usize, usize)>;

    /// Keys under which there are bytes that are not committed: uploads in flight, and what is left of others.
    async fn arriving(&self) -> Result<Vec<BlobKey>, StoreError>;

    /// Called before each sweep: checks that the folder is still the one that this process has locked, and keeps some disk
    /// space in reserve, so that deletions can be stored on a full disk.
    async fn maintain(&self) -> Result<(), StoreError>;

    /// Frees the reserve.
    async fn release_reserve(&self) -> Result<(), StoreError>;

    /// The stamp of the ledger that the store belongs to; `None` if it belongs to none.
    async fn stamp(&self) -> Result<Option<Stamp>, StoreError>;

    /// Replaces the stamp `seen` durably. Returns `false`, and changes nothing, if the store has another one.
    async fn replace_stamp(&self, seen: Option<Stamp>, by: Stamp) -> Result<bool, StoreError>;
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
    /// The disk that they are on, with the ledger; `None` if they are not on a local disk.
    pub disk: Option<Arc<dyn LocalDisk>>,
}

impl Storage {
    /// Storage for blobs on a local disk, in the folder of the ledger.
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
