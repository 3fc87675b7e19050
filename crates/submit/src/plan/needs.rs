//! What a request needs to know before it can be planned: first where its files stand, then what they hold.

use std::collections::BTreeSet;
use std::path::PathBuf;

use cloakroom_spark::RemoteUri;

/// What has to be collected, and nothing else. `Debug` leaves out what may be a secret in an address.
#[derive(Debug, Clone, Default)]
pub struct Needs {
    /// Paths of which it has to be known what stands there.
    pub places: BTreeSet<PathBuf>,
    /// Patterns, where nothing stands at the path that they would be; the files that match are places too.
    pub patterns: BTreeSet<PathBuf>,
    /// Folders whose regular files have to be known.
    pub folders: BTreeSet<PathBuf>,
    /// Files that are read whole.
    pub contents: BTreeSet<PathBuf>,
    /// Addresses of small files.
    pub web: BTreeSet<RemoteUri>,
    /// Jars whose main class counts.
    pub manifests: BTreeSet<PathBuf>,
}

/// Whether a text has a character in it that makes a pattern.
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}
