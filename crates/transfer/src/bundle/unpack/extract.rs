//! Writes the files and folders of an archive.
//!
//! This room sets the modes explicitly, because a strict umask would hide the files from the user of another container.
//! Stock Spark runs as uid 185 and reads what an init-container wrote as root.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::archive::{Content, Entry};
use super::error::UnpackError;
use crate::bundle::folder::Walk;
use crate::modes;

const FILE_MODE: u32 = 0o644;
const EXECUTABLE_MODE: u32 = 0o755;

/// A file that is being written.
pub(super) struct NewFile {
    file: File,
    path: PathBuf,
    mode: u32,
    modified: Option<SystemTime>,
}

/// Makes one folder, whose parents must exist.
pub(super) fn make_folder(into: &mut Walk<'_>, name: &str) -> Result<(), UnpackError> {
    into.make_folder(name).map_err(|source| disk("create the folder", &into.shown(name), source))
}

/// Makes a new file. Anything that already has its name, including a link, is an error.
pub(super) fn create(into: &mut Walk<'_>, entry: &Entry) -> Result<NewFile, UnpackError> {
    let path = into.shown(&entry.name);
    let file = into.create_file(&entry.name).map_err(|source| disk("create", &path, source))?;
    let (executable, modified) = match entry.content {
        Content::File { executable, modified } => (executable, modified),
        Content::Folder => (false, None),
    };
    let mode = if executable { EXECUTABLE_MODE } else { FILE_MODE };
    Ok(NewFile { file, path, mode, modified })
}

impl NewFile {
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), UnpackError> {
        self.file.write_all(bytes).map_err(|source| disk("write", &self.path, source))
    }

    /// Sets the file's mode and time. If the file system keeps no times, that is no error: a job does not need them.
    pub(super) fn finish(self) -> Result<(), UnpackError> {
        modes::set(&self.file, self.mode)
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
