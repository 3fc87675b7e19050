//! Counts the bytes of a blob on their way into the store: their number and their SHA-256.
//!
//! Hashing takes about as long as receiving and writing together. It runs in the task that receives, while the bytes
//! are still in the processor's cache, because this uses two cores best (docs/benchmarks.md).

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use crate::store::{BlobWriter, StoreError};
use cloakroom_core::resource::Bundle;

/// A writer that counts and hashes the bytes that pass through it.
pub(super) struct CountedWriter {
    writer: Box<dyn BlobWriter>,
    hash: Sha256,
    size_bytes: u64,
}

impl CountedWriter {
    pub(super) fn new(writer: Box<dyn BlobWriter>) -> Self {
        Self { writer, hash: Sha256::new(), size_bytes: 0 }
    }

    pub(super) async fn write(&mut self, bytes: Bytes) -> Result<(), StoreError> {
        self.hash.update(&bytes);
        self.size_bytes += bytes.len() as u64;
        self.writer.write(bytes).await
    }

    /// Number and digest of all bytes so far.
    pub(super) fn bundle(&self) -> Bundle {
        Bundle { size_bytes: self.size_bytes, sha256: self.hash.clone().finalize().into() }
    }

    pub(super) async fn commit(self) -> Result<(), StoreError> {
        self.writer.commit().await
    }
}
