//! Lists the keys that have bytes, in pages.

use std::collections::BTreeSet;
use std::path::Path;

use super::DiskError;
use super::directory::{BUNDLES, INCOMING};
use super::root::Root;
use cloakroom_core::resource::BlobKey;

/// Up to `limit` keys after `after`, in order: keys of uploads in flight, and keys of stored bundles. It reads only as
/// many of the bundles' folders as the page needs.
pub(super) fn page(root: &Root, after: Option<BlobKey>, limit: usize) -> Result<Vec<BlobKey>, DiskError> {
    let is_next = |key: &BlobKey| after.is_none_or(|after| *key > after);
    let mut keys: BTreeSet<BlobKey> =
        keys_in(root, Path::new(INCOMING))?.into_iter().filter(is_next).collect();
    let first = after.map(|after| after.resource().shard()).unwrap_or_default();
    let mut stored = 0;
    for shard in shards(root)?.range(first..) {
        // All keys of the folders that follow are larger.
        if stored >= limit {
            break;
        }
        // A file in a folder that does not belong to its key was not written by this server.
        let is_own = |key: &BlobKey| key.resource().shard() == *shard;
        let here = keys_in(root, &Path::new(BUNDLES).join(shard))?;
        let before = keys.len();
        keys.extend(here.into_iter().filter(|key| is_own(key) && is_next(key)));
        stored += keys.len() - before;
    }
    Ok(keys.into_iter().take(limit).collect())
}

fn shards(root: &Root) -> Result<BTreeSet<String>, DiskError> {
    let bundles = Path::new(BUNDLES);
    let names = root.entries(bundles)?.into_iter().filter_map(|entry| entry.name.into_string().ok());
    Ok(names.filter(|name| root.is_folder(&bundles.join(name))).collect())
}

fn keys_in(root: &Root, folder: &Path) -> Result<Vec<BlobKey>, DiskError> {
    // If the type of an entry is not known, the entry is listed. Only a folder is certainly not a blob.
    let files = root.entries(folder)?.into_iter().filter(|entry| entry.is_folder != Some(true));
    Ok(files.filter_map(|file| BlobKey::parse(file.name.to_str()?).ok()).collect())
}
