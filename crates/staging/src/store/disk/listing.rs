//! Lists the keys that have bytes, in pages.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::StoreError;
use cloakroom_core::resource::BlobKey;

/// Up to `limit` keys after `after`, in order: keys of uploads in flight, and keys of stored bundles. It reads only as
/// many of the bundles' folders as the page needs.
pub(super) fn page(
    incoming: &Path,
    bundles: &Path,
    after: Option<BlobKey>,
    limit: usize,
) -> Result<Vec<BlobKey>, StoreError> {
    let is_next = |key: &BlobKey| after.is_none_or(|after| *key > after);
    let mut keys: BTreeSet<BlobKey> = keys_in(incoming)?.into_iter().filter(is_next).collect();
    let first = after.map(|after| after.resource().shard()).unwrap_or_default();
    let mut stored = 0;
    for shard in shards(bundles)?.range(first..) {
        // All keys of the folders that follow are larger.
        if stored >= limit {
            break;
        }
        // A file in a folder that does not belong to its key was not written by this server.
        let is_own = |key: &BlobKey| key.resource().shard() == *shard;
        let here = keys_in(&bundles.join(shard))?.into_iter().filter(|key| is_own(key) && is_next(key));
        let before = keys.len();
        keys.extend(here);
        stored += keys.len() - before;
    }
    Ok(keys.into_iter().take(limit).collect())
}

fn shards(bundles: &Path) -> Result<BTreeSet<String>, StoreError> {
    let folders = list(bundles)?.into_iter().filter(|entry| entry.path().is_dir());
    Ok(folders.filter_map(|folder| folder.file_name().into_string().ok()).collect())
}

fn keys_in(folder: &Path) -> Result<Vec<BlobKey>, StoreError> {
    let entries = list(folder)?.into_iter();
    // If the type of an entry cannot be read, the entry is listed. Only a folder is certainly not a blob.
    let files = entries.filter(|entry| entry.file_type().map_or(true, |kind| !kind.is_dir()));
    Ok(files.filter_map(|file| BlobKey::parse(file.file_name().to_str()?).ok()).collect())
}

fn list(folder: &Path) -> Result<Vec<fs::DirEntry>, StoreError> {
    let failed = |error| StoreError::io("list", folder, error);
    fs::read_dir(folder).map_err(failed)?.map(|entry| entry.map_err(failed)).collect()
}
