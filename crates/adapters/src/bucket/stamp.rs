//! The stamp of a store in a bucket: an object beside the blobs, replaced under a condition.

use cloakroom_storage::stamp::Stamp;
use cloakroom_storage::store::StoreError;
use object_store::{ObjectMeta, ObjectStore as _, ObjectStoreExt as _, PutMode, UpdateVersion};

use super::calls::{Attempts, Bucket, PATIENCE};

/// No stamp is longer than this, in bytes.
const LONGEST: u64 = 200;

/// The stamp; `None` if the store belongs to no ledger.
pub(super) async fn read(bucket: &Bucket) -> Result<Option<Stamp>, StoreError> {
    Ok(versioned(bucket).await?.map(|(stamp, _)| stamp))
}

/// The stamp, and the version of its object.
async fn versioned(bucket: &Bucket) -> Result<Option<(Stamp, UpdateVersion)>, StoreError> {
    let path = bucket.location.stamp();
    let unreadable =
        |why| StoreError::Fault(format!("cannot read {}: {why}", bucket.location.shown(&path)).into());
    let found = bucket.repeated("read", &path, PATIENCE, || async {
        let found = bucket.api.get(&path).await?;
        let (size, version) = (found.meta.size, version(&found.meta));
        let text = if size > LONGEST { None } else { Some(found.bytes().await?) };
        Ok((text, version))
    });
    match found.await {
        Ok((None, _)) => Err(unreadable("it is too long")),
        Ok((Some(text), version)) => {
            let stamp = std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
            Ok(Some((stamp.ok_or_else(|| unreadable("it is not written as cloakroom writes it"))?, version)))
        }
        Err(failure) if failure.is_absent_object() => Ok(None),
        Err(failure) => Err(failure.into()),
    }
}

/// Replaces the stamp `seen`. Returns `false` if there is another one.
pub(super) async fn replace(bucket: &Bucket, seen: Option<Stamp>, by: Stamp) -> Result<bool, StoreError> {
    let (path, text) = (bucket.location.stamp(), format!("{by}\n"));
    let (mut attempts, mut was_tried) = (Attempts::default(), false);
    loop {
        let (stamp, version) = versioned(bucket).await?.unzip();
        if was_tried && stamp == Some(by) {
            return Ok(true);
        }
        if stamp != seen {
            return Ok(false);
        }
        let mode = version.map_or(PutMode::Create, PutMode::Update);
        let put = bucket.api.put_opts(&path, text.clone().into(), mode.into());
        was_tried = true;
        match bucket.once("write", &path, PATIENCE, put).await {
            Ok(_) => return Ok(true),
            // Another server was first, or the answer got lost: the next reading says it.
            Err(failure) if (failure.is_conflict() || failure.is_temporary()) && attempts.another().await => {
            }
            Err(failure) => return Err(failure.into()),
        }
    }
}

fn version(found: &ObjectMeta) -> UpdateVersion {
    UpdateVersion { e_tag: found.e_tag.clone(), version: found.version.clone() }
}
