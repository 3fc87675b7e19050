//! What the plan knows about files. A failed read is a fact as well: its message appears when the plan reaches that
//! file.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use thiserror::Error;

use cloakroom_spark::RemoteUri;

/// Why something cannot be read. It is shared, because `io::Error` cannot be cloned.
pub type Unread = Arc<io::Error>;

/// The files and downloads that were collected for one request. Some of them are secret, so there is no `Debug`.
#[derive(Clone, Default)]
pub struct Facts {
    /// The bytes of files, by their whole paths.
    pub contents: BTreeMap<PathBuf, Result<Vec<u8>, Unread>>,
    pub places: BTreeMap<PathBuf, PathFacts>,
    /// The files that match a pattern, sorted.
    pub matches: BTreeMap<PathBuf, Result<Vec<PathBuf>, Unread>>,
    /// The regular files of each folder, with their sizes in bytes. A missing folder has no files.
    pub folders: BTreeMap<PathBuf, Result<Vec<(PathBuf, u64)>, Unread>>,
    /// The bytes at each address, or why they cannot be read.
    pub web: BTreeMap<RemoteUri, Result<Vec<u8>, String>>,
    /// The main class in each jar's manifest. A jar without one is not in the map.
    pub main_classes: BTreeMap<PathBuf, String>,
}

/// Nothing was collected, because the collecting task itself failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the files that the application names were not looked at: {problem}")]
pub struct Uncollected {
    /// The cause, such as a panic of that task.
    pub problem: String,
}

/// What is at a path.
#[derive(Debug, Clone)]
pub struct PathFacts {
    /// Whether nothing is there, not even a link that leads nowhere.
    pub is_missing: bool,
    /// What the path leads to; links are followed.
    pub kind: Result<Kind, Unread>,
}

/// What a path leads to.
#[derive(Debug, Clone)]
pub enum Kind {
    /// A regular file.
    File {
        /// Its size when it was collected.
        size_bytes: u64,
        /// Its time of modification, if the file system has one.
        modified: Option<SystemTime>,
        /// Whether this process may read it, and then whether it is a zip file. A jar is one.
        is_zip: Result<bool, Unread>,
    },
    Folder,
    /// A pipe, a socket or a device.
    Special,
}

impl Facts {
    /// Adds the facts of a later round.
    pub fn append(&mut self, mut more: Self) {
        self.contents.append(&mut more.contents);
        self.places.append(&mut more.places);
        self.matches.append(&mut more.matches);
        self.folders.append(&mut more.folders);
        self.web.append(&mut more.web);
        self.main_classes.append(&mut more.main_classes);
    }

    /// The bytes of a file.
    pub(super) fn read(&self, path: &Path) -> Result<&[u8], Unread> {
        known(self.contents.get(path)).map(Vec::as_slice)
    }

    /// The kind of the file that a path leads to.
    pub(super) fn kind(&self, path: &Path) -> Result<&Kind, Unread> {
        known(self.places.get(path).map(|place| &place.kind))
    }

    /// Whether nothing is at a path. It is false for a path that was not collected.
    pub(super) fn is_missing(&self, path: &Path) -> bool {
        self.places.get(path).is_some_and(|place| place.is_missing)
    }

    /// Whether a path leads to a regular file.
    pub(super) fn has_file(&self, path: &Path) -> bool {
        matches!(self.kind(path), Ok(Kind::File { .. }))
    }

    /// The regular files of a folder.
    pub(super) fn folder(&self, path: &Path) -> Result<&[(PathBuf, u64)], Unread> {
        known(self.folders.get(path)).map(Vec::as_slice)
    }

    /// The files that match a pattern.
    pub(super) fn matches(&self, pattern: &Path) -> Result<Vec<PathBuf>, Unread> {
        known(self.matches.get(pattern)).cloned()
    }
}

/// A fact that no need asked for is a mistake of this program. It is an error, and never counts as “there is none”.
fn known<T>(found: Option<&Result<T, Unread>>) -> Result<&T, Unread> {
    match found {
        Some(found) => found.as_ref().map_err(Arc::clone),
        None => Err(Arc::new(io::Error::other("it was not collected"))),
    }
}
