//! Lists the keys that have bytes.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::DiskError;
use super::directory::{self, BUNDLES, INCOMING};
use super::root::Root;
use cloakroom_core::resource::BlobKey;
use cloakroom_storage::store::BlobFacts;

/// The names of the folders of stored bundles.
pub(super) fn shards(root: &Root) -> Result<Vec<String>, DiskError> {
    let bundles = Path::new(BUNDLES);
    let names = root.entries(bundles)?.into_iter().filter_map(|entry| entry.name.into_string().ok());
    Ok(names.filter(|name| root.is_folder(&bundles.join(name))).collect())
}

/// The stored bundles of one folder.
pub(super) fn blobs(root: &Root, shard: &str) -> Result<Vec<(BlobKey, BlobFacts)>, DiskError> {
    let folder: PathBuf = [BUNDLES, shard].iter().collect();
    // A file in a folder that does not belong to its key was not written by this server.
    let is_own = |key: &BlobKey| key.resource().shard() == *shard;
    let keys = keys_in(root, &folder)?.filter(is_own);
    let with_facts = keys.filter_map(|key| Some(facts(root, key).transpose()?.map(|facts| (key, facts))));
    with_facts.collect()
}

/// Size and time of change of a stored bundle; `None` if it is not there.
pub(super) fn facts(root: &Root, key: BlobKey) -> Result<Option<BlobFacts>, DiskError> {
    let found = root.look_at(&directory::bundle(key))?;
    Ok(found.map(|found| BlobFacts {
        size_bytes: u64::try_from(found.st_size).unwrap_or(0),
        changed_at: Timestamp::from_second(found.st_mtime).unwrap_or(Timestamp::MAX),
    }))
}

/// The keys of uploads in flight, and of what is left of others.
pub(super) fn arriving(root: &Root) -> Result<Vec<BlobKey>, DiskError> {
    Ok(keys_in(root, Path::new(INCOMING))?.collect())
}

fn keys_in(root: &Root, folder: &Path) -> Result<impl Iterator<Item = BlobKey> + use<>, DiskError> {
    // If the type of an entry is not known, the entry is listed. Only a folder is certainly not a blob.
    let files = root.entries(folder)?.into_iter().filter(|entry| entry.is_folder != Some(true));
    Ok(files.filter_map(|file| BlobKey::parse(file.name.to_str()?).ok()))
}
