//! Local files on their way to `spark.kubernetes.file.upload.path`, a folder that pods see as well.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::left::Left;
use cloakroom_transfer::bundle::Sources;

/// What may be read by everybody: images run as other users.
const FILE_MODE: u32 = 0o644;
/// Between two of them is asked whether it is to stop.
const PIECE_BYTES: u64 = 16 << 20;
/// A shared folder is slow with small pieces.
const BUFFER_BYTES: usize = 1 << 20;

/// A file to copy once everything else was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileCopy {
    /// On the submitting machine.
    pub from: PathBuf,
    /// In a folder of its own.
    pub to: PathBuf,
}

/// A file that was not copied.
#[derive(Debug, Error)]
pub enum FileCopyError {
    /// It cannot be.
    #[error("cannot copy {} to {}", from.display(), to.display())]
    Failed {
        /// On the submitting machine.
        from: PathBuf,
        /// Where it should go.
        to: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Somebody asked for it.
    #[error("stopped before the application was submitted (nothing was created)")]
    Stopped,
}

impl FileCopyError {
    /// Whether it is so because somebody asked for it.
    pub fn is_stopped(&self) -> bool {
        matches!(self, Self::Stopped)
    }
}

impl FileCopy {
    /// Copies it; its folder is made. A part of it may be there after a failure.
    pub fn run(&self, sources: &dyn Sources, stop: &CancellationToken) -> Result<(), FileCopyError> {
        let failed = |source| FileCopyError::Failed { from: self.from.clone(), to: self.to.clone(), source };
        fs::create_dir_all(self.to.parent().unwrap_or(Path::new("/"))).map_err(failed)?;
        let mut from = sources.open(&self.from).map_err(failed)?;
        let to = File::create_new(&self.to).map_err(failed)?;
        let mut to = BufWriter::with_capacity(BUFFER_BYTES, to);
        loop {
            if stop.is_cancelled() {
                return Err(FileCopyError::Stopped);
            }
            if io::copy(&mut from.by_ref().take(PIECE_BYTES), &mut to).map_err(failed)? == 0 {
                break;
            }
        }
        // Some file systems tell of a full disk only now.
        let to = to.into_inner().map_err(|error| failed(error.into_error()))?;
        to.sync_all().map_err(failed)?;
        fs::set_permissions(&self.to, Permissions::from_mode(FILE_MODE)).map_err(failed)
    }

    /// Takes the copy away, and the folder that was made for it. What stays is said.
    pub fn undo(&self) -> Option<Left> {
        let folder = self.to.parent().unwrap_or(Path::new("/"));
        let removed =
            absent_is_fine(fs::remove_file(&self.to)).and_then(|()| absent_is_fine(fs::remove_dir(folder)));
        removed.err().map(|error| Left::Copy { path: self.to.display().to_string(), why: error.to_string() })
    }
}

fn absent_is_fine(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloakroom_transfer::bundle::Disk;

    #[test]
    fn a_copy_has_a_folder_of_its_own_and_leaves_nothing_behind_when_it_is_undone() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("a.jar");
        fs::write(&from, "bytes").unwrap();
        fs::set_permissions(&from, Permissions::from_mode(0o600)).unwrap();
        let upload = FileCopy { from, to: folder.path().join("shared/spark-upload-1/a.jar") };
        let never = CancellationToken::new();
        upload.run(&Disk, &never).unwrap();
        assert_eq!(fs::read(&upload.to).unwrap(), b"bytes");
        assert_eq!(fs::metadata(&upload.to).unwrap().permissions().mode() & 0o777, 0o644);
        assert_eq!(upload.undo(), None);
        assert!(
            !folder.path().join("shared/spark-upload-1").exists() && folder.path().join("shared").exists()
        );
    }

    #[test]
    fn a_copy_that_is_stopped_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("a.jar");
        fs::write(&from, "bytes").unwrap();
        let upload = FileCopy { from, to: folder.path().join("x/a.jar") };
        let stop = CancellationToken::new();
        stop.cancel();
        assert!(upload.run(&Disk, &stop).unwrap_err().is_stopped());
        assert_eq!(upload.undo(), None);
        assert!(!folder.path().join("x").exists());
    }

    #[test]
    fn a_copy_that_cannot_be_taken_away_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("x/a.jar");
        fs::create_dir_all(&to).unwrap();
        let upload = FileCopy { from: folder.path().join("a.jar"), to: to.clone() };
        let left = upload.undo().unwrap().to_string();
        assert!(left.starts_with(&format!("{} could not be removed: ", to.display())), "{left}");
    }

    #[test]
    fn a_failure_names_both_files() {
        let upload =
            FileCopy { from: "/nowhere/a".into(), to: std::env::temp_dir().join("cloakroom-nothing/a") };
        let error = upload.run(&Disk, &CancellationToken::new()).unwrap_err();
        assert!(error.to_string().starts_with("cannot copy /nowhere/a to ") && !error.is_stopped());
        assert_eq!(upload.undo(), None);
    }
}
