//! The folders that bundles are spread over.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::{StoreError, sync_folder};

/// Remembers which folders are known to survive power loss.
#[derive(Debug, Default)]
pub(super) struct ShardFolders {
    durable: Mutex<HashSet<PathBuf>>,
}

impl ShardFolders {
    /// Creates the folder where it is missing, and returns once its name is durable. A folder that is merely
    /// there may have been made a moment ago by another upload that has not synced it yet, so that is not
    /// taken for granted.
    pub(super) fn ensure(&self, shard: &Path) -> Result<(), StoreError> {
        let mut durable = self.durable.lock().unwrap_or_else(PoisonError::into_inner);
        if durable.contains(shard) && shard.is_dir() {
            return Ok(());
        }
        fs::create_dir_all(shard).map_err(|error| StoreError::io("create", shard, error))?;
        shard.parent().map_or(Ok(()), sync_folder)?;
        durable.insert(shard.to_owned());
        Ok(())
    }
}
