//! An upload into HDFS: one request to a datanode for all bytes, into a file that is renamed when it is whole. Until then it is in a
//! folder of its own, which no list of blobs has. A folder is left if the server, or the way to the cluster, ended first.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use cloakroom_core::metrics::{StoreCall, StoreOutcome};
use cloakroom_core::text::chain;
use cloakroom_storage::store::{Begun, BlobWriter, StoreError};
use futures_util::stream;
use jiff::{SignedDuration, Timestamp};
use object_store::Result;
use object_store::path::Path;
use reqwest::Body;
use tokio::sync::{Mutex, mpsc};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::super::calls::{Bucket, PATIENCE, to_complete};
use super::super::failure::{BROKEN, CallFailure};
use super::Hdfs;

const ACTION: &str = "write";

/// The name of the folder of all files that are not whole yet, and that of each file in its own folder there.
const INCOMING: &str = "incoming";
const FILE: &str = "file";

/// No upload takes that long.
const AGE: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The longest piece that is passed on, in bytes.
const PIECE_BYTES: usize = 64 << 10;

/// How many pieces wait for the datanode.
const WAITING: usize = 4;

/// An upload in flight.
struct FileWriter {
    bucket: Arc<Bucket>,
    hdfs: Arc<Hdfs>,
    path: Path,
    /// Where it is until it is whole: the only file in a folder. Without the folder it cannot be written or renamed any more.
    incoming: Path,
    /// To the request. It ends when this is dropped.
    pieces: mpsc::Sender<Bytes>,
    request: AbortOnDropHandle<Result<(), CallFailure>>,
    length: u64,
}

/// The folder of a blob that is not whole yet.
pub(super) fn folder(bucket: &Bucket, path: &Path) -> Path {
    bucket.location.path(INCOMING).join(path.filename().unwrap_or_default())
}

/// Writes a small file directly below the prefix.
pub(super) async fn create(hdfs: &Hdfs, path: &Path, bytes: Bytes) -> Result<()> {
    let mut parts: Vec<_> = path.parts().collect();
    let name = parts.pop();
    let folder: Path = parts.into_iter().chain([INCOMING.into()]).chain(name).collect();
    let part = folder.clone().join(FILE);
    let created = async {
        hdfs.make_folder(&folder).await?;
        hdfs.write(&part, whole(bytes)).await?;
        hdfs.rename(&part, path).await
    };
    let created = created.await;
    // An error says what is wrong; this one would say the same.
    let _ = hdfs.remove(&folder).await;
    created
}

/// Begins the upload of a file that never was there; see `BlobStore::begin`.
pub(super) async fn begin(hdfs: Arc<Hdfs>, bucket: &Arc<Bucket>, path: Path) -> Result<Begun, StoreError> {
    let folder = folder(bucket, &path);
    let make = || async { Ok(hdfs.make_folder(&folder).await?) };
    bucket.repeated("make the folder", &folder, PATIENCE, make).await?;
    let (pieces, arriving) = mpsc::channel(WAITING);
    let incoming = folder.join(FILE);
    let request = {
        let (bucket, hdfs, path) = (Arc::clone(bucket), Arc::clone(&hdfs), incoming.clone());
        let arriving = Arc::new(Mutex::new(arriving));
        async move {
            let body = || {
                let pieces = stream::unfold(Arc::clone(&arriving), async |arriving| {
                    let piece = arriving.lock().await.recv().await?;
                    Some((Ok::<_, std::convert::Infallible>(piece), arriving))
                });
                Body::wrap_stream(pieces)
            };
            let written = hdfs.write(&path, body).await;
            written.map_err(|trouble| bucket.failure(ACTION, &path, &trouble.into()))
        }
    };
    let writer = FileWriter {
        bucket: Arc::clone(bucket),
        hdfs,
        path,
        incoming,
        pieces,
        request: AbortOnDropHandle::new(tokio::spawn(request)),
        length: 0,
    };
    Ok(Begun { writer: Box::new(writer), handle: None })
}

/// A body of bytes that are all there.
pub(super) fn whole(bytes: Bytes) -> impl Fn() -> Body {
    move || bytes.clone().into()
}

impl FileWriter {
    fn late(&self) -> StoreError {
        late(&self.bucket, &self.hdfs, &self.incoming)
    }

    /// Why the request takes no more bytes.
    async fn ended(&mut self) -> StoreError {
        match timeout(PATIENCE, &mut self.request).await {
            Err(_) => self.late(),
            Ok(Err(_)) => StoreError::Stopping,
            Ok(Ok(Err(failure))) => failure.into(),
            Ok(Ok(Ok(()))) => self.bucket.no_answer(ACTION, &self.incoming, BROKEN).into(),
        }
    }
}

/// The datanode took no more bytes, or did not say that it has them.
fn late(bucket: &Bucket, hdfs: &Hdfs, path: &Path) -> StoreError {
    hdfs.metrics.store_request(StoreCall::Put, StoreOutcome::Unavailable);
    bucket.no_answer(ACTION, path, "has a datanode that did not go on in time").into()
}

#[async_trait]
impl BlobWriter for FileWriter {
    async fn write(&mut self, mut bytes: Bytes) -> Result<(), StoreError> {
        self.length += bytes.len() as u64;
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(PIECE_BYTES));
            match timeout(PATIENCE, self.pieces.send(piece)).await {
                Err(_) => return Err(self.late()),
                Ok(Err(_)) => return Err(self.ended().await),
                Ok(Ok(())) => {}
            }
        }
        Ok(())
    }

    async fn commit(self: Box<Self>) -> Result<(), StoreError> {
        let Self { bucket, hdfs, path, incoming, pieces, request, length } = *self;
        drop(pieces);
        match timeout(to_complete(length), request).await {
            Err(_) => return Err(late(&bucket, &hdfs, &incoming)),
            Ok(Err(_)) => return Err(StoreError::Stopping),
            Ok(Ok(written)) => written?,
        }
        let found = bucket.facts(&incoming).await?.map_or(0, |facts| facts.size_bytes);
        if found != length {
            let shown = bucket.location.shown(&incoming);
            let why = format!("cannot write {shown}: it has {found} bytes, and not {length}");
            return Err(StoreError::Fault(why.into()));
        }
        bucket.committed("rename", &path, length, PATIENCE, || hdfs.rename(&incoming, &path)).await?;
        // If this fails, a later list removes it.
        let _ = hdfs.remove(&folder(&bucket, &path)).await;
        Ok(())
    }
}

/// Removes the folders that are old enough. A folder that cannot be removed stays until the next list.
pub(super) async fn remove_old(bucket: &Bucket, hdfs: &Hdfs) {
    if let Err(error) = try_to_remove_old(bucket, hdfs).await {
        tracing::warn!(error = %chain(&error), "files of uploads that ended could not be removed");
    }
}

async fn try_to_remove_old(bucket: &Bucket, hdfs: &Hdfs) -> Result<(), StoreError> {
    let folder = bucket.location.path(INCOMING);
    let mut after = String::new();
    loop {
        let list = || async { Ok(hdfs.entries(&folder, &after).await?) };
        let (found, next) = match bucket.repeated("list", &folder, PATIENCE, list).await {
            Err(failure) if failure.is_absent_object() => return Ok(()),
            found => found?,
        };
        for entry in found {
            let changed_at = Timestamp::from_millisecond(entry.modification_time).unwrap_or(Timestamp::MAX);
            if Timestamp::now().duration_since(changed_at) > AGE {
                bucket.remove(&folder.clone().join(entry.path_suffix)).await?;
            }
        }
        match next {
            Some(next) => after = next,
            None => return Ok(()),
        }
    }
}
