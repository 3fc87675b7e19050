//! Copies local files to `spark.kubernetes.file.upload.path`, a folder that pods see as well.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, ErrorKind, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::left::Left;
use cloakroom_transfer::bundle::Sources;

/// The mode of copies, as Spark's. All users may read them, because images run as other users.
const FILE_MODE: u32 = 0o644;
/// After each piece of this size, a request to stop is heeded.
const PIECE_BYTES: u64 = 16 << 20;
/// How often a folder is tried whose parent goes away: another submission, which made the parent, takes it back.
const FOLDER_ATTEMPTS: u32 = 100;
/// The size of a write. Shared folders are slow with small ones.
const BUFFER_BYTES: usize = 1 << 20;

/// One file to copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileCopy {
    /// The path on the submitting machine.
    pub from: PathBuf,
    /// The path of the copy. Each copy has a folder of its own.
    pub to: PathBuf,
}

/// Why a file was not copied.
#[derive(Debug, Error)]
pub enum FileCopyError {
    /// Reading or writing failed.
    #[error("cannot copy {} to {}", from.display(), to.display())]
    Failed {
        from: PathBuf,
        to: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The user stopped the submission.
    #[error("stopped before the application was submitted (nothing was created)")]
    Stopped,
}

impl FileCopyError {
    /// Whether the user stopped the submission.
    pub fn is_stopped(&self) -> bool {
        matches!(self, Self::Stopped)
    }
}

/// Copies under way, and what was created for them.
#[derive(Debug, Default)]
pub(super) struct Copies {
    files: Vec<PathBuf>,
    /// Each one after the folder that it is in.
    folders: Vec<PathBuf>,
}

impl Copies {
    /// Copies a file, and creates the folders that are missing. After a failure, a part of the copy may be there.
    pub(super) fn add(
        &mut self,
        upload: &FileCopy,
        sources: &dyn Sources,
        stop: &CancellationToken,
    ) -> Result<(), FileCopyError> {
        let FileCopy { from, to } = upload;
        let failed = |source| FileCopyError::Failed { from: from.clone(), to: to.clone(), source };
        self.make_folder(to.parent().unwrap_or(Path::new("/"))).map_err(failed)?;
        let mut source = sources.open(from).map_err(failed)?;
        let copy = File::create_new(to).map_err(failed)?;
        self.files.push(to.clone());
        let mut copy = BufWriter::with_capacity(BUFFER_BYTES, copy);
        loop {
            if stop.is_cancelled() {
                return Err(FileCopyError::Stopped);
            }
            if io::copy(&mut source.by_ref().take(PIECE_BYTES), &mut copy).map_err(failed)? == 0 {
                break;
            }
        }
        // Some file systems report a full disk only at this point.
        let copy = copy.into_inner().map_err(|error| failed(error.into_error()))?;
        copy.sync_all().map_err(failed)?;
        fs::set_permissions(to, Permissions::from_mode(FILE_MODE)).map_err(failed)
    }

    /// As [`fs::create_dir_all`], and remembers which folders it creates.
    fn make_folder(&mut self, folder: &Path) -> io::Result<()> {
        let mut attempts = FOLDER_ATTEMPTS;
        loop {
            match (fs::create_dir(folder), folder.parent()) {
                (Ok(()), _) => {
                    self.folders.push(folder.to_owned());
                    return Ok(());
                }
                (Err(error), Some(parent)) if error.kind() == ErrorKind::NotFound && attempts > 0 => {
                    self.make_folder(parent)?;
                }
                (Err(_), _) if folder.is_dir() => return Ok(()),
                // It was there, and is gone again.
                (Err(error), _)
                    if error.kind() == ErrorKind::AlreadyExists && is_missing(folder) && attempts > 0 => {}
                (Err(error), _) => return Err(error),
            }
            attempts -= 1;
        }
    }

    /// Whether there is nothing to remove.
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.folders.is_empty()
    }

    /// Removes the copies, and those folders that were created for them and hold nothing else. Returns what could not
    /// be removed.
    pub(super) fn undo(&self) -> Vec<Left> {
        let files = self.files.iter().map(|path| (path, fs::remove_file(path)));
        let folders = self.folders.iter().rev().map(|path| (path, fs::remove_dir(path)));
        let failed = files.chain(folders).filter_map(|(path, removed)| Some((path, removed.err()?)));
        let left = failed.filter(|(_, error)| !is_fine(error.kind()));
        left.map(|(path, error)| Left::Copy { path: path.display().to_string(), why: error.to_string() })
            .collect()
    }
}

fn is_missing(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// What is gone need not go, and a folder stays if another program, or a copy that is told as left, is in it.
fn is_fine(failure: ErrorKind) -> bool {
    matches!(failure, ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::DirectoryNotEmpty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloakroom_transfer::bundle::Disk;

    /// A file to copy, to this place beside it.
    fn upload(folder: &Path, to: &str) -> FileCopy {
        let from = folder.join("a.jar");
        fs::write(&from, "bytes").unwrap();
        fs::set_permissions(&from, Permissions::from_mode(0o600)).unwrap();
        FileCopy { from, to: folder.join(to) }
    }

    #[test]
    fn a_copy_is_for_everybody_and_leaves_nothing_behind_when_it_is_undone() {
        let folder = tempfile::tempdir().unwrap();
        let uploads = ["x/../common/deep/spark-upload-1/a.jar", "common/deep/spark-upload-2/a.jar"]
            .map(|to| upload(folder.path(), to));
        let mut copies = Copies::default();
        for upload in &uploads {
            copies.add(upload, &Disk, &CancellationToken::new()).unwrap();
            assert_eq!(fs::read(&upload.to).unwrap(), b"bytes");
            assert_eq!(fs::metadata(&upload.to).unwrap().permissions().mode() & 0o777, 0o644);
        }
        assert_eq!((copies.undo(), copies.is_empty()), (Vec::new(), false));
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            1,
            "the file that was copied is alone again"
        );
    }

    #[test]
    fn folders_that_were_there_or_have_something_else_in_them_stay() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("common")).unwrap();
        let mut copies = Copies::default();
        let upload = upload(folder.path(), "common/deep/spark-upload-1/a.jar");
        copies.add(&upload, &Disk, &CancellationToken::new()).unwrap();
        fs::write(folder.path().join("common/deep/other"), "").unwrap();
        assert!(copies.undo().is_empty());
        assert!(!folder.path().join("common/deep/spark-upload-1").exists());
        assert!(folder.path().join("common/deep/other").exists());
    }

    #[test]
    fn a_folder_that_another_submission_takes_back_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("common/deep");
        for _ in 0..100 {
            let has_ended = CancellationToken::new();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    // A folder that is removed costs one attempt at most.
                    let mut left = FOLDER_ATTEMPTS / 2;
                    while left > 0 && !has_ended.is_cancelled() {
                        let removed =
                            [&*deep, deep.parent().unwrap()].map(|folder| fs::remove_dir(folder).is_ok());
                        left -= u32::from(removed.contains(&true));
                    }
                });
                let _guard = has_ended.clone().drop_guard();
                let mut copies = Copies::default();
                copies.make_folder(&deep.join("spark-upload-1")).unwrap();
                assert!(copies.undo().is_empty());
            });
        }
    }

    #[test]
    fn a_copy_that_is_stopped_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let stop = CancellationToken::new();
        stop.cancel();
        let mut copies = Copies::default();
        let upload = upload(folder.path(), "x/a.jar");
        assert!(copies.add(&upload, &Disk, &stop).unwrap_err().is_stopped());
        assert!(copies.undo().is_empty());
        assert!(!folder.path().join("x").exists());
    }

    #[test]
    fn a_copy_that_cannot_be_removed_is_told_and_one_never_made_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let mut copies = Copies::default();
        let upload = upload(folder.path(), "x/a.jar");
        copies.add(&upload, &Disk, &CancellationToken::new()).unwrap();
        assert!(copies.add(&upload, &Disk, &CancellationToken::new()).is_err(), "it is there already");
        fs::remove_file(&upload.to).unwrap();
        fs::create_dir(&upload.to).unwrap();
        let left: Vec<String> = copies.undo().iter().map(Left::to_string).collect();
        assert_eq!(left.len(), 1, "{left:?}");
        assert!(left[0].starts_with(&format!("{} could not be removed: ", upload.to.display())), "{left:?}");
    }

    #[test]
    fn a_failure_names_both_files_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut copies = Copies::default();
        let upload = FileCopy { from: "/nowhere/a".into(), to: folder.path().join("x/a") };
        let error = copies.add(&upload, &Disk, &CancellationToken::new()).unwrap_err();
        assert!(error.to_string().starts_with("cannot copy /nowhere/a to ") && !error.is_stopped());
        assert!(copies.undo().is_empty());
        assert!(!folder.path().join("x").exists());
    }

    #[test]
    fn a_parent_that_is_a_file_is_no_copy_to_take_away() {
        let folder = tempfile::tempdir().unwrap();
        let mut copies = Copies::default();
        let upload = upload(folder.path(), "a.jar/x/a.jar");
        assert!(copies.add(&upload, &Disk, &CancellationToken::new()).is_err());
        assert!(copies.is_empty() && copies.undo().is_empty());
    }
}
