//! A lock for one source and one folder. Only one process fetches the source into the folder; another process waits,
//! and then finds the files of the first one.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::own_file::open_regular;
use super::source::remove;

/// The lock, held until it is dropped or the process ends. Dropping it removes its file. If a killed run left the file,
/// the next run can take it.
#[derive(Debug)]
pub(super) struct SourceLock {
    path: PathBuf,
    _file: File,
}

impl SourceLock {
    /// Takes the lock at `path`; `None` while another process has it.
    pub(super) fn try_take(path: &Path) -> io::Result<Option<Self>> {
        if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
            remove(path)?;
        }
        let file = open_regular(path, OpenOptions::new().create(true).truncate(false).write(true))?;
        match file.try_lock() {
            Ok(()) if !is_at(&file, path) => return Ok(None),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            // If the file system has no locks, the fetch goes on without one, because two fetches at once are rare.
            Err(TryLockError::Error(error)) => {
                tracing::debug!(%error, path = %path.display(), "fetching without a lock");
            }
        }
        Ok(Some(Self { path: path.to_owned(), _file: file }))
    }
}

/// Whether the path still leads to the locked file. The last holder of the lock removes the file.
fn is_at(file: &File, path: &Path) -> bool {
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    let (held, named) = (file.metadata().map(identity), fs::symlink_metadata(path).map(identity));
    held.is_ok_and(|held| named.is_ok_and(|named| held == named))
}

impl Drop for SourceLock {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::debug!(%error, path = %self.path.display(), "the file of a lock is left behind");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_one_holders_at_a_time_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let held = SourceLock::try_take(&path).unwrap().unwrap();
        assert!(SourceLock::try_take(&path).unwrap().is_none());
        drop(held);
        assert!(!path.exists());
        drop(SourceLock::try_take(&path).unwrap().unwrap());
    }

    #[test]
    fn the_file_of_a_killed_run_is_taken_over_and_a_file_that_was_removed_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        fs::write(&path, "").unwrap();
        let opened_before = File::open(&path).unwrap();
        drop(SourceLock::try_take(&path).unwrap().unwrap());
        assert!(!is_at(&opened_before, &path));
        fs::write(&path, "").unwrap();
        assert!(!is_at(&opened_before, &path));
    }
}
