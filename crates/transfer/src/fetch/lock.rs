//! A lock for one source and one folder. Only one process fetches the source into the folder; another process waits,
//! and then finds the files of the first one.

use std::fs::{File, TryLockError};
use std::io;
use std::sync::Arc;

use rustix::fs::OFlags;

use crate::bundle::Folder;
use crate::bundle::folder::file_type;

/// The lock, held until it is dropped or the process ends. Dropping it removes its file. If a killed run left the file,
/// the next run can take it.
#[derive(Debug)]
pub(super) struct SourceLock {
    folder: Arc<Folder>,
    name: String,
    _file: File,
}

impl SourceLock {
    /// Takes the lock `name` in `folder`; `None` while another process has it.
    pub(super) fn try_take(folder: &Arc<Folder>, name: &str) -> io::Result<Option<Self>> {
        if folder.look(name)?.is_some_and(|found| !file_type(&found).is_file()) {
            folder.remove(name)?;
        }
        let file = folder.open_file(name, OFlags::WRONLY | OFlags::CREATE)?;
        match file.try_lock() {
            Ok(()) if !is_at(&file, folder, name) => return Ok(None),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            // If the file system has no locks, the fetch goes on without one, because two fetches at once are rare.
            Err(TryLockError::Error(error)) => {
                tracing::debug!(%error, path = %folder.path().display(), "fetching without a lock");
            }
        }
        Ok(Some(Self { folder: Arc::clone(folder), name: name.to_owned(), _file: file }))
    }
}

/// Whether the name still is that of the locked file. The last holder of the lock removes the file.
fn is_at(file: &File, folder: &Folder, name: &str) -> bool {
    let (Ok(held), Ok(Some(named))) = (rustix::fs::fstat(file), folder.look(name)) else { return false };
    (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino)
}

impl Drop for SourceLock {
    fn drop(&mut self) {
        if let Err(error) = self.folder.remove(&self.name) {
            tracing::debug!(%error, path = %self.folder.path().display(), "the file of a lock is left behind");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, Arc<Folder>) {
        let outer = tempfile::tempdir().unwrap();
        let folder = Folder::at(outer.path()).unwrap();
        (outer, Arc::new(folder))
    }

    #[test]
    fn a_lock_is_one_holders_at_a_time_and_leaves_nothing() {
        let (outer, folder) = folder();
        let held = SourceLock::try_take(&folder, "lock").unwrap().unwrap();
        assert!(SourceLock::try_take(&folder, "lock").unwrap().is_none());
        drop(held);
        assert!(!outer.path().join("lock").exists());
        drop(SourceLock::try_take(&folder, "lock").unwrap().unwrap());
    }

    #[test]
    fn the_lock_file_of_a_killed_run_is_taken_over_and_a_removed_one_is_not() {
        let (outer, folder) = folder();
        let path = outer.path().join("lock");
        std::fs::write(&path, "").unwrap();
        let opened_before = File::open(&path).unwrap();
        drop(SourceLock::try_take(&folder, "lock").unwrap().unwrap());
        assert!(!is_at(&opened_before, &folder, "lock"));
        std::fs::write(&path, "").unwrap();
        assert!(!is_at(&opened_before, &folder, "lock"));
    }
}
