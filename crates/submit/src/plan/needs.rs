//! What a request needs to know before it can be planned.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use cloakroom_spark::RemoteUri;

/// What has to be collected, and nothing else. `Debug` leaves out what may be a secret in an address.
#[derive(Debug, Clone, Default)]
pub struct Needs {
    /// Files that are read whole.
    pub contents: BTreeSet<PathBuf>,
    /// Paths of which it has to be known what stands there.
    pub places: BTreeSet<PathBuf>,
    /// Patterns, where nothing stands at the path that they would be; the files that match are places too.
    pub patterns: BTreeSet<PathBuf>,
    /// The content of places counts as well, as long as they are no larger.
    pub small_bytes: Option<u64>,
    /// Folders whose files go into objects.
    pub folders: BTreeMap<PathBuf, FolderNeed>,
    /// Addresses of small files.
    pub web: BTreeSet<RemoteUri>,
    /// Jars whose main class counts.
    pub manifests: BTreeSet<PathBuf>,
}

/// Which files of a folder are read.
#[derive(Debug, Clone)]
pub struct FolderNeed {
    /// The size of the largest.
    pub most_bytes: u64,
    /// By their names.
    pub is_wanted: fn(&str) -> bool,
}

/// Whether a text has a character in it that makes a pattern.
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}
