//! An upload into a bucket. A short one is one request; a longer one is parts of one size, which are sent while the next ones
//! arrive.

use std::mem;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use cloakroom_core::client::Client;
use cloakroom_core::resource::UploadHandle;
use cloakroom_storage::store::{Begun, BlobWriter, StoreError};
use object_store::MultipartId;
use object_store::multipart::PartId;
use object_store::path::Path;
use tokio::task::JoinSet;

use super::super::calls::{Bucket, PATIENCE, to_complete, to_move};
use super::super::pool::{Part, Taken};
use super::Objects;

/// No store takes smaller parts, except for the last one of a blob.
const SMALLEST_PART: u64 = 5 << 20;

/// No store takes more parts of a blob.
const MOST_PARTS: u64 = 10_000;

/// How many parts of an upload may be on their way. Several hide the time that a distant store takes to answer.
const PARTS_AT_ONCE: usize = 4;

/// An upload in flight.
struct BucketWriter {
    bucket: Arc<Bucket>,
    objects: Arc<Objects>,
    path: Path,
    /// The id of an upload in parts; `None` if all is sent in one request.
    in_parts: Option<MultipartId>,
    part_bytes: usize,
    /// The part that is being filled; `None` if no byte of it has come.
    part: Option<Part>,
    sending: JoinSet<Result<(usize, PartId), StoreError>>,
    /// The parts that were sent, in order; `None` if the answer is not there yet.
    sent: Vec<Option<PartId>>,
    length: u64,
    /// For whom the memory counts.
    client: Client,
}

/// The longest id of an upload in bytes. S3's have about 100, and gateways put some state into theirs. The id is a part of
/// URLs, and the library panics at one that is too long for them.
pub(super) const LONGEST_HANDLE: usize = 4096;

/// How many bytes the parts of a blob of `length` have.
pub(in crate::bucket) fn part_bytes(length: u64) -> u64 {
    length.div_ceil(MOST_PARTS).max(SMALLEST_PART)
}

/// Begins the upload of an object that never was there; see `BlobStore::begin`.
pub(super) async fn begin(
    objects: Arc<Objects>,
    bucket: &Arc<Bucket>,
    path: Path,
    length: Option<u64>,
    client: &Client,
) -> Result<Begun, StoreError> {
    let part_bytes = part_bytes(length.unwrap_or(bucket.largest));
    let (part_bytes, in_parts) = match length {
        Some(length) if length <= part_bytes => (length, None),
        _ => {
            let create = || objects.library.create_multipart(&path);
            (part_bytes, Some(bucket.repeated("begin the upload of", &path, PATIENCE, create).await?))
        }
    };
    if let Some(id) = in_parts.as_ref().filter(|id| id.len() > LONGEST_HANDLE) {
        let told = format!(
            "the store gave the upload of {} an id of {} bytes, and at most {LONGEST_HANDLE} are taken: a gateway in front of \
             the store may have made it",
            bucket.location.shown(&path),
            id.len()
        );
        return Err(StoreError::Fault(told.into()));
    }
    // In Azure the parts belong to the path, and an id is not needed.
    let handle = in_parts.as_ref().filter(|id| !id.is_empty()).map(UploadHandle::from_text);
    let writer = BucketWriter {
        bucket: Arc::clone(bucket),
        objects,
        path,
        in_parts,
        part_bytes: usize::try_from(part_bytes).unwrap_or(usize::MAX),
        part: None,
        sending: JoinSet::new(),
        sent: Vec::new(),
        length: 0,
        client: client.clone(),
    };
    Ok(Begun { writer: Box::new(writer), handle })
}

impl BucketWriter {
    /// Sends the bytes that have arrived as the next part.
    async fn send_part(&mut self, id: &MultipartId) -> Result<(), StoreError> {
        // First, because from here on the client is not waited for.
        let (bytes, memory) = self.arrived()?;
        while self.sending.len() >= PARTS_AT_ONCE {
            self.next_answer().await?;
        }
        let (bucket, objects) = (Arc::clone(&self.bucket), Arc::clone(&self.objects));
        let (path, id, number) = (self.path.clone(), id.clone(), self.sent.len());
        self.sent.push(None);
        self.sending.spawn(async move {
            let put = || objects.library.put_part(&path, &id, number, bytes.clone().into());
            let part = bucket.repeated("write a part of", &path, to_move(bytes.len() as u64), put).await;
            drop(memory);
            Ok((number, part?))
        });
        Ok(())
    }

    /// The bytes that have arrived, and the memory that they take.
    fn arrived(&mut self) -> Result<(Bytes, Option<Taken>), StoreError> {
        match self.part.take() {
            Some(part) => part.take().map(|(bytes, memory)| (bytes, Some(memory))),
            None => Ok((Bytes::new(), None)),
        }
    }

    /// Waits for the answer to one of the parts that are on their way.
    async fn next_answer(&mut self) -> Result<(), StoreError> {
        if let Some(answered) = self.sending.join_next().await {
            let (number, part) = answered.map_err(|_| StoreError::Stopping)??;
            self.sent[number] = Some(part);
        }
        Ok(())
    }

    async fn complete(mut self, id: MultipartId) -> Result<(), StoreError> {
        // S3 and Google take no list without parts, and Azure takes no part without bytes.
        let needs_a_part = self.sent.is_empty() && !self.objects.cloud.takes_no_parts;
        if self.part.is_some() || needs_a_part {
            self.send_part(&id).await?;
        }
        while !self.sending.is_empty() {
            self.next_answer().await?;
        }
        let (bucket, path) = (&self.bucket, &self.path);
        let parts: Vec<PartId> = mem::take(&mut self.sent).into_iter().flatten().collect();
        let complete = || self.objects.library.complete_multipart(path, &id, parts.clone());
        bucket
            .committed("complete the upload of", path, self.length, to_complete(self.length), complete)
            .await
    }

    async fn put(mut self) -> Result<(), StoreError> {
        let (bytes, _memory) = self.arrived()?;
        let (bucket, path) = (&self.bucket, &self.path);
        let put = || bucket.api.create(path, bytes.clone());
        bucket.committed("write", path, self.length, to_move(self.length), put).await
    }
}

#[async_trait]
impl BlobWriter for BucketWriter {
    async fn write(&mut self, mut bytes: Bytes) -> Result<(), StoreError> {
        self.length += bytes.len() as u64;
        while !bytes.is_empty() {
            if self.in_parts.is_none() && self.length > self.part_bytes as u64 {
                let more = format!(
                    "cannot write {}: more bytes come than were announced",
                    self.bucket.location.shown(&self.path)
                );
                return Err(StoreError::Fault(more.into()));
            }
            let part = match self.part.take() {
                Some(part) => part,
                None => self.bucket.pool_of(&self.client).part(&self.client, self.part_bytes).await,
            };
            let is_full = self.part.insert(part).fill(&mut bytes)?;
            if is_full && let Some(id) = self.in_parts.clone() {
                self.send_part(&id).await?;
            }
        }
        Ok(())
    }

    async fn commit(mut self: Box<Self>) -> Result<(), StoreError> {
        match self.in_parts.take() {
            Some(id) => self.complete(id).await,
            None => self.put().await,
        }
    }
}
