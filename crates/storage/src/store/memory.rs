//! Blobs in memory. They behave as in an object store: uploads have handles, and there is no disk.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use jiff::Timestamp;

use super::{Begun, BlobFacts, BlobStore, BlobWriter, StoreError, StoredBlob};
use cloakroom_core::resource::{BlobKey, UploadHandle};

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

struct MemoryBlob {
    store: MemoryStore,
    key: BlobKey,
    size_bytes: u64,
}

impl MemoryStore {
    fn lock(&self) -> MutexGuard<'_, Blobs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
    async fn begin(&self, key: BlobKey, _length: Option<u64>) -> Result<Begun, StoreError> {
        let mut blobs = self.lock();
        if blobs.arriving.contains_key(&key) || blobs.committed.contains_key(&key) {
            return Err(lost("create", key, "there is a blob of this key"));
        }
        blobs.begun += 1;
        let handle = UploadHandle(format!("upload-{}", blobs.begun));
        blobs.arriving.insert(key, Arriving { handle: handle.clone(), bytes: BytesMut::new() });
        let writer = MemoryWriter { store: self.clone(), key, handle: handle.clone() };
        Ok(Begun { writer: Box::new(writer), handle: Some(handle) })
    }

    async fn abort(&self, key: BlobKey, _handle: Option<&UploadHandle>) -> Result<(), StoreError> {
        let mut blobs = self.lock();
        blobs.arriving.remove(&key);
        blobs.committed.remove(&key);
        Ok(())
    }

    async fn open(&self, key: BlobKey) -> Result<Option<Box<dyn StoredBlob>>, StoreError> {
        let size_bytes = self.lock().committed.get(&key).map(|blob| blob.bytes.len() as u64);
        let blob = |size_bytes| Box::new(MemoryBlob { store: self.clone(), key, size_bytes }) as _;
        Ok(size_bytes.map(blob))
    }

    async fn delete(&self, key: BlobKey) -> Result<(), StoreError> {
        self.lock().committed.remove(&key);
        Ok(())
    }

    async fn facts(&self, key: BlobKey) -> Result<Option<BlobFacts>, StoreError> {
        let blobs = self.lock();
        let facts = |blob: &Committed| BlobFacts { size_bytes: blob.bytes.len() as u64, changed_at: blob.at };
        Ok(blobs.committed.get(&key).map(facts))
    }

    async fn list(&self, after: Option<BlobKey>, limit: usize) -> Result<Vec<BlobKey>, StoreError> {
        let blobs = self.lock();
        let all: BTreeSet<BlobKey> = blobs.committed.keys().chain(blobs.arriving.keys()).copied().collect();
        Ok(all.into_iter().filter(|key| after.is_none_or(|after| *key > after)).take(limit).collect())
    }

    async fn check(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

#[async_trait]
impl BlobWriter for MemoryWriter {
    async fn write(&mut self, bytes: Bytes) -> Result<(), StoreError> {
        self.store.lock().arriving(self.key, &self.handle)?.bytes.extend_from_slice(&bytes);
        Ok(())
    }

    async fn commit(self: Box<Self>) -> Result<(), StoreError> {
        let mut blobs = self.store.lock();
        let bytes = std::mem::take(&mut blobs.arriving(self.key, &self.handle)?.bytes).freeze();
        blobs.arriving.remove(&self.key);
        blobs.committed.insert(self.key, Committed { bytes, at: Timestamp::now() });
        Ok(())
    }
}

impl StoredBlob for MemoryBlob {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn read(self: Box<Self>, range: Range<u64>) -> BoxStream<'static, Result<Bytes, StoreError>> {
        if range.is_empty() {
            return stream::empty().boxed();
        }
        // Nothing is held open: a blob that is deleted before it is read cannot be read.
        stream::once(async move { self.part(range) }).boxed()
    }
}

impl MemoryBlob {
    fn part(&self, range: Range<u64>) -> Result<Bytes, StoreError> {
        let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = self.store.lock().committed.get(&self.key).map(|blob| blob.bytes.clone());
        let bytes = bytes.ok_or_else(|| lost("read", self.key, "there is no such blob"))?;
        let part = bytes.get(at(range.start)..at(range.end)).map(|part| bytes.slice_ref(part));
        part.ok_or_else(|| lost("read", self.key, "it is shorter"))
    }
}
