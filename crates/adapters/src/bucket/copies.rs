//! Copies of the ledger, beside the blobs.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path as FilePath;

use cloakroom_core::client::Client;
use cloakroom_storage::store::{Begun, BlobWriter, StoreError};
use futures_util::TryStreamExt as _;
use object_store::path::Path;

use super::{BucketStore, download};

/// How much of the file is read at a time.
const PIECE_BYTES: usize = 1 << 20;

/// Writes the file at `file` to `path`.
pub(super) async fn write(store: &BucketStore, path: Path, file: &FilePath) -> Result<(), StoreError> {
    let from = file.to_owned();
    let open = move || {
        let file = File::open(from)?;
        file.metadata().map(|facts| (file, facts.len()))
    };
    let (file, length) = on_disk(open).await?;
    let Begun { writer, handle } = store.begin_at(path.clone(), Some(length), &Client::Server).await?;
    let kept = send(writer, file).await;
    if kept.is_err() {
        // If this fails too, a rule of the bucket removes the parts.
        let _ = store.backend.abort(&store.bucket, &path, handle.as_ref()).await;
    }
    kept
}

/// Writes the object at `path` into a new file at `file`, durably.
pub(super) async fn read(store: &BucketStore, path: Path, file: &FilePath) -> Result<(), StoreError> {
    let Some(facts) = store.bucket.facts(&path).await? else {
        let missing = format!("there is no {}", store.bucket.location.shown(&path));
        return Err(StoreError::Missing(missing.into()));
    };
    let to = file.to_owned();
    let create = move || OpenOptions::new().write(true).create_new(true).mode(0o600).open(to);
    let mut file = on_disk(create).await?;
    let mut pieces =
        download::open(&store.bucket, path, facts.size_bytes, vec![0..facts.size_bytes], &Client::Server)
            .await?;
    while let Some(piece) = pieces.try_next().await? {
        file = on_disk(move || file.write_all(&piece).map(|()| file)).await?;
    }
    on_disk(move || file.sync_all()).await
}

async fn send(mut writer: Box<dyn BlobWriter>, mut file: File) -> Result<(), StoreError> {
    loop {
        let next = move || {
            let mut bytes = Vec::with_capacity(PIECE_BYTES);
            (&mut file).take(PIECE_BYTES as u64).read_to_end(&mut bytes).map(|_| (bytes, file))
        };
        let (bytes, rest) = on_disk(next).await?;
        if bytes.is_empty() {
            return writer.commit().await;
        }
        file = rest;
        writer.write(bytes.into()).await?;
    }
}

/// Runs what may wait for the disk.
async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await.map_err(|_| StoreError::Stopping)?;
    done.map_err(|error| StoreError::Fault(error.into()))
}
