//! The stamp of a store in HDFS. A file cannot be replaced under a condition there, but it can be renamed. So the stamp is the
//! name of the only file in a folder: of several that rename it, one finds it.

use bytes::Bytes;
use cloakroom_storage::store::StoreError;
use object_store::path::Path;
use object_store::{Result, UpdateVersion};

use super::super::backend::Stamp;
use super::super::calls::{Bucket, PATIENCE};
use super::{Hdfs, upload};

/// The stamp in the folder `path`; `None` if there is none.
pub(super) async fn read(bucket: &Bucket, hdfs: &Hdfs, path: &Path) -> Result<Option<Stamp>, StoreError> {
    let list = || async { Ok(hdfs.entries(path, "").await?.0) };
    let found = match bucket.repeated("list", path, PATIENCE, list).await {
        Err(failure) if failure.is_absent_object() => return Ok(None),
        found => found?,
    };
    let names: Vec<_> = found.iter().map(|entry| entry.path_suffix.as_str()).collect();
    match names[..] {
        [] => Ok(None),
        [name] => {
            let version = UpdateVersion { e_tag: None, version: None };
            Ok(Some(Stamp { text: name.replace(SEPARATOR, " "), version }))
        }
        _ => {
            let why = format!("{} has other files than cloakroom writes there", bucket.location.shown(path));
            Err(StoreError::Fault(why.into()))
        }
    }
}

/// Makes `by` the stamp in the folder `path` if `seen` is the one there.
pub(super) async fn swap(hdfs: &Hdfs, path: &Path, seen: Option<Stamp>, by: &str) -> Result<()> {
    let to = name(by);
    if let Some(seen) = seen {
        return hdfs.rename(&path.clone().join(name(&seen.text)), &path.clone().join(to)).await;
    }
    // A folder replaces an empty one, and no other.
    let folder: Path = format!("{path}-{to}").into();
    hdfs.make_folder(&folder).await?;
    hdfs.write(&folder.clone().join(to), upload::whole(Bytes::new())).await?;
    let renamed = hdfs.rename_with("OVERWRITE", &folder, path).await;
    if renamed.is_err() {
        // The error says what is wrong; this one would say the same.
        let _ = hdfs.remove(&folder).await;
    }
    renamed
}

/// Stands in the name for the spaces of the stamp, which has none.
const SEPARATOR: &str = ".";

fn name(stamp: &str) -> String {
    stamp.replace(' ', SEPARATOR)
}
