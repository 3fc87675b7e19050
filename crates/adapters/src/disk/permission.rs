//! Explains why this process may not use its data directory, and how to give it the right.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::directory::or_here;
use super::{DiskError, NotPermitted};

/// Adds the user of this process and the owner of the folder to an error of missing permission. Other errors stay as
/// they are.
pub(super) fn explained(error: DiskError, data_dir: &Path) -> DiskError {
    match error {
        DiskError::Io { action, path, source } if source.kind() == io::ErrorKind::PermissionDenied => {
            match nearest(&path) {
                Some((found, metadata)) => DiskError::NotPermitted(Box::new(NotPermitted {
                    action,
                    path,
                    user: rustix::process::geteuid().as_raw(),
                    group: rustix::process::getegid().as_raw(),
                    found,
                    owner: metadata.uid(),
                    owning_group: metadata.gid(),
                    mode: metadata.mode() & 0o7777,
                    data_dir: data_dir.to_owned(),
                    in_a_pod: false,
                    source,
                })),
                None => DiskError::Io { action, path, source },
            }
        }
        other => other,
    }
}

/// The path, or the nearest folder above it whose metadata can be read.
fn nearest(path: &Path) -> Option<(PathBuf, fs::Metadata)> {
    path.ancestors().map(or_here).find_map(|path| Some((path.to_owned(), fs::metadata(path).ok()?)))
}
