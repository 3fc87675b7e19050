//! A part of an upload, while its bytes arrive.

use bytes::{Bytes, BytesMut};
use cloakroom_core::client::Client;
use cloakroom_storage::store::StoreError;

use super::{Kind, Pause, Pool, Taken};

/// A part of an upload that is being filled.
#[derive(Debug)]
pub(in crate::bucket) struct Part {
    filled: Pause<BytesMut>,
    bytes: usize,
}

impl Pool {
    /// Waits until `client` may have memory for a part of `bytes`.
    pub(in crate::bucket) async fn part(&self, client: &Client, bytes: usize) -> Part {
        let taken = self.take(client, bytes as u64).await;
        Part { filled: self.pause(Kind::Upload, BytesMut::with_capacity(bytes), taken), bytes }
    }
}

impl Part {
    /// Takes bytes out of `from` until the part is full. Returns whether it is.
    pub(in crate::bucket) fn fill(&self, from: &mut Bytes) -> Result<bool, StoreError> {
        let filled = self.filled.with(|filled| {
            let room = self.bytes - filled.len();
            filled.extend_from_slice(&from.split_to(from.len().min(room)));
            filled.len() == self.bytes
        });
        filled.ok_or(StoreError::TooSlow)
    }

    /// The bytes of the part, and the memory for them.
    pub(in crate::bucket) fn take(self) -> Result<(Bytes, Taken), StoreError> {
        let (bytes, memory) = self.filled.end().ok_or(StoreError::TooSlow)?;
        Ok((bytes.freeze(), memory))
    }
}
