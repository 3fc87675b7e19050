//! File systems that count their inodes.

use std::path::Path;

/// Whether the file system of a path that may not exist yet has no inode left.
pub(crate) fn are_used_up(path: &Path) -> bool {
    let found = path.ancestors().find_map(|path| rustix::fs::statvfs(path).ok());
    found.is_some_and(|found| found.f_files > 0 && found.f_favail == 0)
}
