//! What the plan knows of files and of the staging server. Whatever cannot be read is a fact as well: the plan says so where
//! it comes to it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

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
    /// The regular files of each folder that is there, with their sizes.
    pub folders: BTreeMap<PathBuf, Result<Vec<(PathBuf, u64)>, Unread>>,
    /// What is at an address, or what is wrong with it.
    pub web: BTreeMap<RemoteUri, Result<Vec<u8>, String>>,
    /// The class that a jar's manifest names.
    pub main_classes: BTreeMap<PathBuf, String>,
    /// What the staging server was asked for: the init-container's image, which it may not know.
    pub image: Option<Option<String>>,
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
    /// The bytes of a file.
    pub(super) fn read(&self, path: &Path) -> Result<&[u8], Unread> {
        match self.contents.get(path) {
            Some(Ok(bytes)) => Ok(bytes),
            Some(Err(error)) => Err(Arc::clone(error)),
            None => Err(not_collected()),
        }
    }

    /// What a path leads to.
    pub(super) fn kind(&self, path: &Path) -> Result<&Kind, Unread> {
        match self.places.get(path) {
            Some(place) => place.kind.as_ref().map_err(Arc::clone),
            None => Err(not_collected()),
        }
    }

    /// Whether nothing stands there.
    pub(super) fn is_missing(&self, path: &Path) -> bool {
        self.places.get(path).is_some_and(|place| place.is_missing)
    }

    /// Whether a path leads to a regular file.
    pub(super) fn has_file(&self, path: &Path) -> bool {
        matches!(self.kind(path), Ok(Kind::File { .. }))
    }

    /// The files that match a pattern.
    pub(super) fn matches(&self, pattern: &Path) -> Result<Vec<PathBuf>, Unread> {
        self.matches.get(pattern).cloned().unwrap_or_else(|| Err(not_collected()))
    }
}

/// A need that was not told: a mistake of this program, and never read as “there is none”.
fn not_collected() -> Unread {
    Arc::new(io::Error::other("it was not collected"))
}
