//! Folders of files that were not whole when their upload ended. An upload removes its own; one is left if the server, or the way to the
//! cluster, ended first. No list of blobs has them.

use cloakroom_core::text::chain;
use cloakroom_storage::store::StoreError;
use jiff::{SignedDuration, Timestamp};

use super::super::calls::{Bucket, PATIENCE};
use super::Hdfs;

/// No upload takes that long.
const AGE: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Removes the folders that are old enough. A folder that cannot be removed stays until the next list.
pub(in super::super) async fn remove(bucket: &Bucket, hdfs: &Hdfs) {
    if let Err(error) = remove_old(bucket, hdfs).await {
        tracing::warn!(error = %chain(&error), "files of uploads that ended could not be removed");
    }
}

async fn remove_old(bucket: &Bucket, hdfs: &Hdfs) -> Result<(), StoreError> {
    let folder = bucket.location.incoming_folder();
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
