//! What the plan knows of files. Whatever cannot be read is a fact as well: the plan says so where it comes to it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use thiserror::Error;

use cloakroom_spark::RemoteUri;

/// Why something cannot be read. Shared, because errors cannot be copied.
pub type Unread = Arc<io::Error>;

/// What was collected for one request. There are secrets in it, which is why it is not shown.
#[derive(Clone, Default)]
pub struct Facts {
    /// Files by their whole path.
    pub contents: BTreeMap<PathBuf, Result<Vec<u8>, Unread>>,
    /// What stands at a path.
    pub places: BTreeMap<PathBuf, Place>,
    /// The files that match a pattern, sorted.
    pub matches: BTreeMap<PathBuf, Result<Vec<PathBuf>, Unread>>,
    /// The regular files of each folder, with their sizes. A folder that is not there has none.
    pub folders: BTreeMap<PathBuf, Result<Vec<(PathBuf, u64)>, Unread>>,
    /// What is at an address, or what is wrong with it.
    pub web: BTreeMap<RemoteUri, Result<Vec<u8>, String>>,
    /// The class that a jar's manifest names.
    pub main_classes: BTreeMap<PathBuf, String>,
}

/// Nothing was collected, because the work itself ended.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the files that the application names were not looked at: {problem}")]
pub struct Uncollected {
    /// Why.
    pub problem: String,
}

/// What stands at a path.
#[derive(Debug, Clone)]
pub struct Place {
    /// Nothing does, not even a link that leads nowhere.
    pub is_missing: bool,
    /// What a link leads to.
    pub kind: Result<Kind, Unread>,
}

/// What a path leads to.
#[derive(Debug, Clone)]
pub enum Kind {
    /// A regular file.
    File {
        /// When it was looked at.
        size_bytes: u64,
        /// Likewise, where the file system keeps it.
        modified: Option<SystemTime>,
        /// Whether it may be read.
        opened: Result<(), Unread>,
    },
    /// A folder.
    Folder,
    /// A pipe, a socket or a device.
    Special,
}

impl Facts {
    /// Adds what was collected later.
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

    /// What a path leads to.
    pub(super) fn kind(&self, path: &Path) -> Result<&Kind, Unread> {
        known(self.places.get(path).map(|place| &place.kind))
    }

    /// Whether nothing stands there.
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

/// A need that was not told is a mistake of this program, and never read as “there is none”.
fn known<T>(found: Option<&Result<T, Unread>>) -> Result<&T, Unread> {
    match found {
        Some(found) => found.as_ref().map_err(Arc::clone),
        None => Err(Arc::new(io::Error::other("it was not collected"))),
    }
}
