//! The folders over which bundles are spread.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::DiskError;
use super::root::Root;
use cloakroom_core::lock::lock;

/// Remembers which folders are certain to survive power loss.
#[derive(Debug, Default)]
pub(super) struct ShardFolders {
    durable: Mutex<HashSet<PathBuf>>,
}

impl ShardFolders {
    /// Creates the folder if it is missing, and returns once its name is durable. It is not enough that the folder
    /// exists: another upload may have made it a moment ago, and may not have synced it yet.
    pub(super) fn ensure(&self, root: &Root, shard: &Path) -> Result<(), DiskError> {
        let mut durable = lock(&self.durable);
        if durable.contains(shard) && root.is_folder(shard) {
            return Ok(());
        }
        if let Some(parent) = shard.parent() {
            root.make_folder(parent)?;
            // It may have been removed, and is then made again.
            root.sync_folder_of(parent)?;
        }
        root.make_folder(shard)?;
        root.sync_folder_of(shard)?;
        durable.insert(shard.to_owned());
        Ok(())
    }
}
