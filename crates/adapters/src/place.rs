//! Whether the files that this process has open are still the ones at their paths.
//!
//! A process can use a removed file for days through its open handle. But the path then leads to another file, or to none.
//! All that the process acknowledges meanwhile is lost when it ends.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use cloakroom_core::lock::lock;

use rustix::fs::{Mode, OFlags};
use tokio_util::sync::CancellationToken;

use cloakroom_storage::Replaced;

/// Files and folders that must stay where they are. Clones are the same place.
#[derive(Debug, Clone, Default)]
pub struct Place(Arc<Parts>);

#[derive(Debug, Default)]
struct Parts {
    watched: Mutex<Vec<Watched>>,
    replaced: OnceLock<Replaced>,
    lost: CancellationToken,
}

#[derive(Debug)]
struct Watched {
    path: PathBuf,
    id: FileId,
    /// Keeps the id from being given to another file.
    _handle: File,
}

/// The device and the number of a file on it.
type FileId = (u64, u64);

impl Place {
    /// Watches `path`, which `handle` was opened at. If another file is there already, the file system does not tell files
    /// apart, or hides which one is open. Then it says so once, and does not watch.
    pub(crate) fn watch(&self, path: &Path, handle: File) -> io::Result<()> {
        let id = id_of(&handle.metadata()?);
        if found_at(path)? != Some(id) {
            tracing::warn!(
                path = %path.display(),
                "the file system gives this path another file number than its open file: if the path is removed or replaced \
                 while the server runs, the server does not notice"
            );
            return Ok(());
        }
        let watched = Watched { path: path.to_owned(), id, _handle: handle };
        lock(&self.0.watched).push(watched);
        Ok(())
    }

    /// Watches a file of the ledger. The handle is one that only names the file: closing any other handle would drop the
    /// locks that SQLite has on it (<https://www.sqlite.org/howtocorrupt.html>, section 2.2).
    pub(crate) fn watch_ledger(&self, path: &Path) -> io::Result<()> {
        let handle = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        self.watch(path, handle.into())
    }

    /// Returns an error if a check has found a path that leads to another file, or to none.
    pub(crate) fn known(&self) -> Result<(), Replaced> {
        self.0.replaced.get().map_or(Ok(()), |replaced| Err(replaced.clone()))
    }

    /// Looks at the paths. Returns an error once one has led to another file, or to none. It may block.
    pub(crate) fn look(&self) -> Result<(), Replaced> {
        self.known()?;
        let watched = lock(&self.0.watched);
        // A path that cannot be looked at, for instance on a failing disk, is not known to be another file.
        let moved =
            watched.iter().find(|file| found_at(&file.path).is_ok_and(|found| found != Some(file.id)));
        let Some(moved) = moved else { return Ok(()) };
        let replaced = self.0.replaced.get_or_init(|| Replaced { path: moved.path.clone() }).clone();
        self.0.lost.cancel();
        Err(replaced)
    }

    /// The same, off the threads that must not block.
    pub(crate) async fn check(&self) -> Result<(), Replaced> {
        let place = self.clone();
        // The task fails only if the process ends.
        tokio::task::spawn_blocking(move || place.look()).await.unwrap_or(Ok(()))
    }

    /// Waits until a check finds that a path has led to another file.
    pub async fn lost(&self) -> Replaced {
        self.0.lost.cancelled().await;
        match self.0.replaced.get() {
            Some(replaced) => replaced.clone(),
            // It is set before the token is cancelled.
            None => std::future::pending().await,
        }
    }
}

/// The file at a path; `None` if there is none.
fn found_at(path: &Path) -> io::Result<Option<FileId>> {
    match fs::metadata(path) {
        Ok(found) => Ok(Some(id_of(&found))),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn id_of(found: &fs::Metadata) -> FileId {
    (found.dev(), found.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(path: &Path) -> Place {
        let place = Place::default();
        place.watch_ledger(path).unwrap();
        place
    }

    #[test]
    fn a_file_that_is_removed_moved_or_replaced_is_told_and_stays_told() {
        type Change = fn(&Path);
        let changes: [Change; 4] = [
            |path| fs::remove_file(path).unwrap(),
            |path| fs::rename(path, path.with_extension("moved")).unwrap(),
            |path| {
                fs::remove_file(path).unwrap();
                fs::write(path, "the same").unwrap();
            },
            |path| {
                let folder = path.parent().unwrap();
                fs::rename(folder, folder.with_extension("moved")).unwrap();
                fs::write(folder, "a file in the place of the folder").unwrap();
            },
        ];
        for change in changes {
            let outer = tempfile::tempdir().unwrap();
            let path = outer.path().join("data").join("ledger.db");
            fs::create_dir(path.parent().unwrap()).unwrap();
            fs::write(&path, "the same").unwrap();
            let place = watched(&path);
            place.look().unwrap();
            change(&path);
            assert_eq!(place.look().unwrap_err().path, path);
            // A handle that names a deleted file is no way back.
            let _ = fs::remove_file(path.parent().unwrap());
            let _ = fs::create_dir(path.parent().unwrap());
            fs::write(&path, "the same").unwrap();
            assert!(place.look().is_err(), "a replaced file was forgotten");
        }
    }

    #[test]
    fn what_is_written_to_a_file_does_not_make_it_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        fs::write(&path, "before").unwrap();
        let place = watched(&path);
        fs::write(&path, "after").unwrap();
        fs::hard_link(&path, folder.path().join("another")).unwrap();
        place.look().unwrap();
    }

    #[test]
    fn a_path_that_leads_to_another_file_from_the_beginning_is_not_watched() {
        let folder = tempfile::tempdir().unwrap();
        let [path, other] = ["ledger.db", "other"].map(|name| folder.path().join(name));
        fs::write(&path, "").unwrap();
        fs::write(&other, "").unwrap();
        let place = Place::default();
        place.watch(&path, File::open(&other).unwrap()).unwrap();
        fs::remove_file(&path).unwrap();
        place.look().unwrap();
    }

    #[tokio::test]
    async fn whoever_waits_is_told_which_path_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        fs::write(&path, "").unwrap();
        let place = watched(&path);
        let waiting = tokio::spawn({
            let place = place.clone();
            async move { place.lost().await }
        });
        fs::remove_file(&path).unwrap();
        place.check().await.unwrap_err();
        assert_eq!(waiting.await.unwrap().path, path);
    }
}
