//! Writes the folder that an archive is extracted into.
//!
//! This room sets the modes explicitly, because a strict umask would hide the files from the user of another container.
//! Stock Spark runs as uid 185 and reads what an init-container wrote as root.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::archive::{Content, Entry};
use super::error::UnpackError;
use crate::modes;

const FOLDER_MODE: u32 = 0o755;
const FILE_MODE: u32 = 0o644;
const EXECUTABLE_MODE: u32 = 0o755;

/// The target folder.
pub(super) struct Folder<'a>(&'a Path);

/// A file that is being written.
pub(super) struct NewFile {
    file: File,
    path: PathBuf,
    mode: u32,
    modified: Option<SystemTime>,
}

impl Folder<'_> {
    /// Opens the target folder, and makes it if it is missing.
    pub(super) fn open(root: &Path) -> Result<Folder<'_>, UnpackError> {
        fs::create_dir_all(root).map_err(|source| disk("create the folder", root, source))?;
        Ok(Folder(root))
    }

    /// Makes one folder, whose parents must exist.
    pub(super) fn make_folder(&self, name: &str) -> Result<(), UnpackError> {
        let path = self.0.join(name);
        DirBuilder::new().create(&path).map_err(|source| disk("create the folder", &path, source))?;
        modes::of_folder(&path, FOLDER_MODE).map_err(|source| disk("set the permissions of", &path, source))
    }

    /// Makes a new file. Anything that already has its name, including a link, is an error.
    pub(super) fn create(&self, entry: &Entry) -> Result<NewFile, UnpackError> {
        let path = self.0.join(&entry.name);
        let file = File::create_new(&path).map_err(|source| disk("create", &path, source))?;
        let (executable, modified) = match entry.content {
            Content::File { executable, modified } => (executable, modified),
            Content::Folder => (false, None),
        };
        let mode = if executable { EXECUTABLE_MODE } else { FILE_MODE };
        Ok(NewFile { file, path, mode, modified })
    }
}

impl NewFile {
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), UnpackError> {
        self.file.write_all(bytes).map_err(|source| disk("write", &self.path, source))
    }

    /// Sets the file's mode and time. If the file system keeps no times, that is no error: a job does not need them.
    pub(super) fn finish(self) -> Result<(), UnpackError> {
        modes::of_file(&self.file, self.mode)
            .map_err(|source| disk("set the permissions of", &self.path, source))?;
        if let Some(time) = self.modified
            && let Err(error) = self.file.set_modified(time)
        {
            tracing::debug!(path = %self.path.display(), %error, "cannot set the time of an unpacked file");
        }
        Ok(())
    }
}

fn disk(action: &'static str, path: &Path, source: io::Error) -> UnpackError {
    UnpackError::Disk { action, path: path.to_owned(), source }
}
