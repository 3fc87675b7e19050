//! A log that is only in memory.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;
use bytes::Bytes;
use cloakroom_core::lock::lock;
use cloakroom_storage::log::{KeptCopy, LogError, LogStore, Object, Position, WriterStamp};
use cloakroom_storage::store::StoreError;
use cloakroom_testing::wait::BOUND;
use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::time::timeout;

/// What is in the bucket.
pub struct Objects {
    /// The stamp.
    pub stamp: Option<WriterStamp>,
    /// The groups of the log, by their places.
    pub groups: BTreeMap<Position, Bytes>,
    /// The copies of the ledger.
    pub copies: BTreeMap<Position, Vec<u8>>,
    /// Whether it takes groups.
    pub takes_groups: bool,
}

impl Default for Objects {
    fn default() -> Self {
        Self { stamp: None, groups: BTreeMap::new(), copies: BTreeMap::new(), takes_groups: true }
    }
}

/// A bucket in memory, for the log of a ledger.
#[derive(Default)]
pub struct MemoryLog {
    objects: Mutex<Objects>,
    refused: Notify,
}

impl MemoryLog {
    /// What is in it.
    pub fn objects(&self) -> MutexGuard<'_, Objects> {
        lock(&self.objects)
    }

    /// Waits until a group was refused.
    pub async fn refused_a_group(&self) {
        timeout(BOUND, self.refused.notified()).await.unwrap();
    }
}

#[async_trait]
impl LogStore for MemoryLog {
    async fn stamp(&self) -> Result<Option<WriterStamp>, LogError> {
        Ok(self.objects().stamp)
    }

    async fn replace_stamp(&self, seen: Option<WriterStamp>, by: WriterStamp) -> Result<bool, LogError> {
        let mut objects = self.objects();
        let is_same = objects.stamp == seen;
        if is_same {
            objects.stamp = Some(by);
        }
        Ok(is_same)
    }

    fn shown(&self, object: Object) -> String {
        match object {
            Object::Stamp => "stamp".to_owned(),
            Object::Group(at) => format!("log/{at}"),
            Object::Copy(at) => format!("ledger/{at}.db"),
        }
    }

    async fn write_group(&self, at: Position, group: Bytes) -> Result<(), LogError> {
        let mut objects = self.objects();
        if objects.takes_groups {
            objects.groups.insert(at, group);
            return Ok(());
        }
        self.refused.notify_one();
        Err(StoreError::Unavailable("it takes no groups".into()).into())
    }

    async fn group(&self, at: Position) -> Result<Option<Bytes>, LogError> {
        Ok(self.objects().groups.get(&at).cloned())
    }

    async fn groups(&self) -> Result<Vec<Position>, LogError> {
        Ok(self.objects().groups.keys().copied().collect())
    }

    async fn remove_groups(&self, last: Position) -> Result<(), LogError> {
        self.objects().groups.retain(|at, _| *at > last);
        Ok(())
    }

    async fn copies(&self) -> Result<Vec<KeptCopy>, LogError> {
        let copy = |at: &Position| KeptCopy { at: *at, written_at: Timestamp::UNIX_EPOCH };
        Ok(self.objects().copies.keys().map(copy).collect())
    }

    async fn write_copy(&self, at: Position, path: &Path) -> Result<(), LogError> {
        self.objects().copies.insert(at, std::fs::read(path).unwrap());
        Ok(())
    }

    async fn read_copy(&self, at: Position, path: &Path) -> Result<(), LogError> {
        std::fs::write(path, &self.objects().copies[&at]).unwrap();
        Ok(())
    }

    async fn keep_reserve(&self) -> Result<(), LogError> {
        Ok(())
    }

    async fn make_room(&self) -> Result<bool, LogError> {
        Ok(false)
    }

    async fn remove_copy(&self, at: Position) -> Result<(), LogError> {
        self.objects().copies.remove(&at);
        Ok(())
    }
}
