//! The ledger in the bucket: the groups of its log are `PREFIX/log/EPOCH-NUMBER`, its copies `PREFIX/ledger/EPOCH-NUMBER.db`, and the
//! stamp says which server writes.

use std::path::Path as FilePath;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use cloakroom_storage::log::{KeptCopy, LogError, LogStore, Object, Position, WriterStamp};
use cloakroom_storage::store::StoreError;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use object_store::path::Path;

use super::calls::{Attempts, Bucket, PATIENCE, to_move};
use super::{BucketStore, copies, listing};

/// How many groups are removed at once.
const REMOVED_AT_ONCE: usize = 8;

/// How many bytes are kept in reserve: enough to log some hundred deletions.
const RESERVE_BYTES: usize = 1 << 20;

/// What the names of copies end with.
const COPY: &str = ".db";

#[async_trait]
impl LogStore for BucketStore {
    async fn stamp(&self) -> Result<Option<WriterStamp>, LogError> {
        let found = self.backend.stamp(&self.bucket, &self.bucket.location.stamp()).await?;
        let parsed = found.map(|stamp| stamp.text.parse()).transpose();
        parsed.map_err(|stamp| LogError::Stamp { place: self.shown(Object::Stamp), stamp })
    }

    async fn replace_stamp(&self, seen: Option<WriterStamp>, by: WriterStamp) -> Result<bool, LogError> {
        let seen = seen.map(|seen| seen.to_string());
        Ok(self.replace(seen.as_deref(), &by.to_string()).await?)
    }

    fn shown(&self, object: Object) -> String {
        let path = match object {
            Object::Stamp => self.bucket.location.stamp(),
            Object::Group(at) => self.group_path(at),
            Object::Copy(at) => self.copy_path(at),
        };
        self.bucket.location.shown(&path)
    }

    async fn write_group(&self, at: Position, group: Bytes) -> Result<(), LogError> {
        Ok(write_group(&self.bucket, &self.group_path(at), group).await?)
    }

    async fn group(&self, at: Position) -> Result<Option<Bytes>, LogError> {
        Ok(read(&self.bucket, &self.group_path(at)).await?)
    }

    async fn groups(&self) -> Result<Vec<Position>, LogError> {
        let groups = listing::objects(&self.bucket, self.bucket.location.log());
        Ok(groups.try_filter_map(async |found| Ok(place(&found.path, ""))).try_collect().await?)
    }

    async fn remove_groups(&self, last: Position) -> Result<(), LogError> {
        let mut old = self.groups().await?;
        old.retain(|at| *at <= last);
        let removals =
            stream::iter(old).map(|at| async move { self.bucket.remove(&self.group_path(at)).await });
        Ok(removals.buffer_unordered(REMOVED_AT_ONCE).try_collect().await?)
    }

    async fn copies(&self) -> Result<Vec<KeptCopy>, LogError> {
        let objects = listing::objects(&self.bucket, self.bucket.location.copies());
        let mut copies: Vec<KeptCopy> = objects
            .try_filter_map(async |found| {
                let written_at = found.facts.changed_at;
                Ok(place(&found.path, COPY).map(|at| KeptCopy { at, written_at }))
            })
            .try_collect()
            .await?;
        copies.sort_unstable_by_key(|copy| copy.at);
        Ok(copies)
    }

    async fn write_copy(&self, at: Position, path: &FilePath) -> Result<(), LogError> {
        Ok(copies::write(self, self.copy_path(at), path).await?)
    }

    async fn read_copy(&self, at: Position, path: &FilePath) -> Result<(), LogError> {
        Ok(copies::read(self, self.copy_path(at), path).await?)
    }

    async fn remove_copy(&self, at: Position) -> Result<(), LogError> {
        Ok(self.bucket.remove(&self.copy_path(at)).await?)
    }

    async fn keep_reserve(&self) -> Result<(), LogError> {
        let path = self.bucket.location.reserve();
        if self.bucket.facts(&path).await?.is_none() {
            // Not of zeros, which some stores keep in no room.
            let bytes: Vec<u8> = (0..RESERVE_BYTES).map(|_| rand::random()).collect();
            write_group(&self.bucket, &path, bytes.into()).await?;
        }
        Ok(())
    }

    async fn make_room(&self) -> Result<bool, LogError> {
        let path = self.bucket.location.reserve();
        if self.bucket.facts(&path).await?.is_some() {
            self.bucket.remove(&path).await?;
            return Ok(true);
        }
        match self.copies().await?[..] {
            [oldest, _, ..] => self.remove_copy(oldest.at).await.map(|()| true),
            _ => Ok(false),
        }
    }
}

impl BucketStore {
    /// Replaces the stamp `seen`. Returns `false` if there is another one. No two calls may have the same text `by`.
    async fn replace(&self, seen: Option<&str>, by: &str) -> Result<bool, StoreError> {
        let (bucket, path) = (&self.bucket, self.bucket.location.stamp());
        let (mut attempts, mut was_tried) = (Attempts::begin(), false);
        loop {
            let stamp = self.backend.stamp(bucket, &path).await?;
            let text = stamp.as_ref().map(|stamp| stamp.text.as_str());
            if was_tried && text == Some(by) {
                return Ok(true);
            }
            if text != seen {
                return Ok(false);
            }
            was_tried = true;
            match bucket.once("write", &path, PATIENCE, self.backend.swap_stamp(&path, stamp, by)).await {
                Ok(()) => return Ok(true),
                // Another server was first, or the answer got lost: the next reading says it.
                Err(failure)
                    if (failure.is_conflict() || failure.is_temporary()) && attempts.another().await => {}
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    fn group_path(&self, at: Position) -> Path {
        self.bucket.location.log().join(at.to_string())
    }

    fn copy_path(&self, at: Position) -> Path {
        self.bucket.location.copies().join(format!("{at}{COPY}"))
    }
}

/// The place in the name of an object; `None` if another program has written it.
fn place(path: &Path, ending: &str) -> Option<Position> {
    path.filename()?.strip_suffix(ending)?.parse().ok()
}

/// Writes an object, as often as it is asked to: its bytes are always the same.
async fn write_group(bucket: &Bucket, path: &Path, group: Bytes) -> Result<(), StoreError> {
    let patience = to_move(group.len() as u64);
    let put = || bucket.api.rewrite(path, group.clone());
    match bucket.repeated("write", path, patience, put).await {
        Err(failure) if failure.is_conflict() && read(bucket, path).await?.as_ref() == Some(&group) => Ok(()),
        done => Ok(done?),
    }
}

/// A small object; `None` if there is none.
async fn read(bucket: &Bucket, path: &Path) -> Result<Option<Bytes>, StoreError> {
    let get = || async { bucket.api.get(path, None, None).await?.pieces.try_collect::<BytesMut>().await };
    let found = bucket.repeated("read", path, PATIENCE, get).await;
    Ok(bucket.or_absent(found).await?.map(BytesMut::freeze))
}
