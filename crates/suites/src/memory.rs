//! Blobs in memory. They behave as in an object store: uploads have handles, and there is no disk.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use jiff::Timestamp;

use cloakroom_core::client::Client;
use cloakroom_core::lock::lock;
use cloakroom_core::resource::{BlobKey, UploadHandle};
use cloakroom_storage::store::{
    Begun, BlobFacts, BlobStore, BlobStream, BlobWriter, StoreError, with_first_piece,
};

/// How much is read at a time: little, so that a small blob has more than one piece.
const PIECE_BYTES: u64 = 16;

/// A store whose blobs end with the process. Clones are the same store.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore(Arc<Mutex<Blobs>>);

#[derive(Debug, Default)]
struct Blobs {
    committed: BTreeMap<BlobKey, Committed>,
    arriving: BTreeMap<BlobKey, Arriving>,
    begun: u64,
}

#[derive(Debug)]
struct Committed {
    bytes: Bytes,
    at: Timestamp,
}

#[derive(Debug)]
struct Arriving {
    handle: UploadHandle,
    bytes: BytesMut,
}

struct MemoryWriter {
    store: MemoryStore,
    key: BlobKey,
    handle: UploadHandle,
}

impl MemoryStore {
    /// The keys of uploads that were neither committed nor aborted.
    pub fn arriving(&self) -> Vec<BlobKey> {
        lock(&self.0).arriving.keys().copied().collect()
    }

    /// Nothing is held open, so a blob that is deleted cannot be read to its end.
    fn piece(&self, key: BlobKey, range: Range<u64>) -> Result<Bytes, StoreError> {
        let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = lock(&self.0).committed.get(&key).map(|blob| blob.bytes.clone());
        let bytes = bytes.ok_or_else(|| lost("read", key, "there is no such blob"))?;
        let piece = bytes.get(at(range.start)..at(range.end)).map(|piece| bytes.slice_ref(piece));
        piece.ok_or_else(|| lost("read", key, "it is shorter"))
    }
}

impl Committed {
    fn facts(&self) -> BlobFacts {
        BlobFacts { size_bytes: self.bytes.len() as u64, changed_at: self.at }
    }
}

impl Blobs {
    /// The upload to `key` with this handle; an error once it was aborted.
    fn arriving(&mut self, key: BlobKey, handle: &UploadHandle) -> Result<&mut Arriving, StoreError> {
        let arriving = self.arriving.get_mut(&key).filter(|arriving| arriving.handle == *handle);
        arriving.ok_or_else(|| lost("write to", key, "the upload was aborted"))
    }
}

fn lost(action: &'static str, key: BlobKey, why: &str) -> StoreError {
    StoreError::Fault(format!("cannot {action} {key}: {why}").into())
}

#[async_trait]
impl BlobStore for MemoryStore {
    async fn begin(&self, key: BlobKey, _length: Option<u64>, _client: &Client) -> Result<Begun, StoreError> {
        let mut blobs = lock(&self.0);
        if blobs.arriving.contains_key(&key) || blobs.committed.contains_key(&key) {
            return Err(lost("create", key, "there is a blob of this key"));
        }
        blobs.begun += 1;
        let handle = UploadHandle::from_text(format!("upload-{}", blobs.begun));
        blobs.arriving.insert(key, Arriving { handle: handle.clone(), bytes: BytesMut::new() });
        let writer = MemoryWriter { store: self.clone(), key, handle: handle.clone() };
        Ok(Begun { writer: Box::new(writer), handle: Some(handle) })
    }

    async fn abort(&self, key: BlobKey, _handle: Option<&UploadHandle>) -> Result<(), StoreError> {
        let mut blobs = lock(&self.0);
        blobs.arriving.remove(&key);
        blobs.committed.remove(&key);
        Ok(())
    }

    async fn open(
        &self,
        key: BlobKey,
        size_bytes: u64,
        ranges: Vec<Range<u64>>,
        _client: &Client,
    ) -> Result<BlobStream, StoreError> {
        let found = lock(&self.0).committed.get(&key).map(Committed::facts);
        let missing = |why: String| StoreError::Missing(format!("cannot open {key}: {why}").into());
        let found = found.ok_or_else(|| missing("there is no such blob".to_owned()))?;
        if found.size_bytes != size_bytes {
            return Err(missing(format!("it has {} bytes, and not {size_bytes}", found.size_bytes)));
        }
        let store = self.clone();
        let pieces = stream::iter(ranges).flat_map(move |range| {
            let store = store.clone();
            stream::unfold(range.start, move |from| {
                let to = range.end.min(from.saturating_add(PIECE_BYTES));
                std::future::ready((from < range.end).then(|| (store.piece(key, from..to), to)))
            })
        });
        with_first_piece(pieces.boxed()).await
    }

    async fn delete(&self, key: BlobKey) -> Result<(), StoreError> {
        lock(&self.0).committed.remove(&key);
        Ok(())
    }

    async fn facts(&self, key: BlobKey) -> Result<Option<BlobFacts>, StoreError> {
        Ok(lock(&self.0).committed.get(&key).map(Committed::facts))
    }

    fn list(&self) -> BoxStream<'_, Result<(BlobKey, BlobFacts), StoreError>> {
        let all: Vec<_> =
            lock(&self.0).committed.iter().map(|(key, blob)| Ok((*key, blob.facts()))).collect();
        stream::iter(all).boxed()
    }

    async fn check(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

#[async_trait]
impl BlobWriter for MemoryWriter {
    async fn write(&mut self, bytes: Bytes) -> Result<(), StoreError> {
        lock(&self.store.0).arriving(self.key, &self.handle)?.bytes.extend_from_slice(&bytes);
        Ok(())
    }

    async fn commit(self: Box<Self>) -> Result<(), StoreError> {
        let mut blobs = lock(&self.store.0);
        let bytes = std::mem::take(&mut blobs.arriving(self.key, &self.handle)?.bytes).freeze();
        blobs.arriving.remove(&self.key);
        blobs.committed.insert(self.key, Committed { bytes, at: Timestamp::now() });
        Ok(())
    }
}
