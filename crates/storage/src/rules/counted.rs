//! Counts the bytes of a blob on their way into the store: their number and their SHA-256. Clients take turns at that, piece
//! by piece, so one with many uploads leaves others their part of the processor and the disk.
//!
//! Hashing takes about as long as receiving and writing together. It runs in the task that receives, while the bytes
//! are still in the processor's cache, because this uses two cores best (docs/benchmarks.md).

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use crate::store::{BlobWriter, StoreError};
use crate::turns::Turns;
use cloakroom_core::client::Client;
use cloakroom_core::resource::Bundle;

/// A writer that counts and hashes the bytes that pass through it.
pub(super) struct CountedWriter {
    writer: Box<dyn BlobWriter>,
    hash: Sha256,
    size_bytes: u64,
    turns: Turns,
    client: Client,
}

impl CountedWriter {
    /// `client` takes turns with others.
    pub(super) fn new(writer: Box<dyn BlobWriter>, turns: Turns, client: Client) -> Self {
        Self { writer, hash: Sha256::new(), size_bytes: 0, turns, client }
    }

    pub(super) async fn write(&mut self, bytes: Bytes) -> Result<(), StoreError> {
        let _turn = self.turns.take(self.client.clone()).await;
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

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::{Arc, Mutex};

    use async_trait::async_trait;

    use super::*;

    /// Notes whose bytes it gets, and takes some time for them.
    struct Noting(u8, Arc<Mutex<Vec<u8>>>);

    #[async_trait]
    impl BlobWriter for Noting {
        async fn write(&mut self, _: Bytes) -> Result<(), StoreError> {
            self.1.lock().unwrap().push(self.0);
            tokio::task::yield_now().await;
            Ok(())
        }

        async fn commit(self: Box<Self>) -> Result<(), StoreError> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_client_with_many_uploads_gets_no_more_turns_than_one_with_few() {
        const PIECES: usize = 50;
        let (turns, order) = (Turns::between_clients(1), Arc::default());
        let uploads = [1, 1, 1, 1, 1, 1, 1, 1, 2].map(|last| {
            let writer = Box::new(Noting(last, Arc::clone(&order)));
            let client = Client::Host(IpAddr::from([10, 0, 0, last]).into());
            let mut writer = CountedWriter::new(writer, turns.clone(), client);
            tokio::spawn(async move {
                for _ in 0..PIECES {
                    writer.write(Bytes::from_static(b"jar")).await.unwrap();
                }
            })
        });
        for upload in uploads {
            upload.await.unwrap();
        }
        let order = order.lock().unwrap();
        let all_of_second = order.iter().rposition(|of| *of == 2).unwrap();
        // While it had something to write. Without turns the other one had eight times as much.
        assert!(all_of_second < 3 * PIECES, "{all_of_second}: {order:?}");
    }
}
