//! Local files on their way to `spark.kubernetes.file.upload.path`, a folder that pods see as well.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// What may be read by everybody: images run as other users.
const FILE_MODE: u32 = 0o644;

/// A file to copy once everything else was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    /// On the submitting machine.
    pub from: PathBuf,
    /// In a folder of its own.
    pub to: PathBuf,
}

/// A file that could not be copied.
#[derive(Debug, Error)]
#[error("cannot copy {} to {}", from.display(), to.display())]
pub struct UploadError {
    from: PathBuf,
    to: PathBuf,
    #[source]
    source: io::Error,
}

impl Upload {
    /// Copies it; its folder is made.
    pub fn run(&self) -> Result<(), UploadError> {
        let failed = |source| UploadError { from: self.from.clone(), to: self.to.clone(), source };
        fs::create_dir_all(self.to.parent().unwrap_or(Path::new("/"))).map_err(failed)?;
        fs::copy(&self.from, &self.to).map_err(failed)?;
        fs::set_permissions(&self.to, Permissions::from_mode(FILE_MODE)).map_err(failed)
    }

    /// Takes the copy away, and the folder that was made for it. What cannot be taken away stays.
    pub fn undo(&self) {
        let _ = fs::remove_file(&self.to);
        if let Some(folder) = self.to.parent() {
            let _ = fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_a_folder_of_its_own_and_leaves_nothing_behind_when_it_is_undone() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("a.jar");
        fs::write(&from, "bytes").unwrap();
        fs::set_permissions(&from, Permissions::from_mode(0o600)).unwrap();
        let upload = Upload { from, to: folder.path().join("shared/spark-upload-1/a.jar") };
        upload.run().unwrap();
        assert_eq!(fs::read(&upload.to).unwrap(), b"bytes");
        assert_eq!(fs::metadata(&upload.to).unwrap().permissions().mode() & 0o777, 0o644);
        upload.undo();
        assert!(
            !folder.path().join("shared/spark-upload-1").exists() && folder.path().join("shared").exists()
        );
    }

    #[test]
    fn a_failure_names_both_files() {
        let upload =
            Upload { from: "/nowhere/a".into(), to: std::env::temp_dir().join("cloakroom-nothing/a") };
        assert!(upload.run().unwrap_err().to_string().starts_with("cannot copy /nowhere/a to "));
        upload.undo();
    }
}
