//! Lists the files and addresses to read before a request can be planned. A first round finds them, a second round
//! reads their contents.

use std::collections::BTreeSet;
use std::path::PathBuf;

use cloakroom_spark::RemoteUri;

/// Everything that has to be collected; nothing else is read. `Debug` leaves out parts of addresses that may be
/// secrets.
#[derive(Debug, Clone, Default)]
pub struct Needs {
    /// Paths to look at: whether something is there, and of which kind.
    pub places: BTreeSet<PathBuf>,
    /// Patterns to expand, if nothing is at the path of the same text. The files that match count as places too.
    pub patterns: BTreeSet<PathBuf>,
    /// Folders whose regular files are listed.
    pub folders: BTreeSet<PathBuf>,
    /// Files that are read whole.
    pub contents: BTreeSet<PathBuf>,
    /// Addresses of small files, such as pod templates, that are downloaded.
    pub web: BTreeSet<RemoteUri>,
    /// Jars whose manifests are read for the main class.
    pub manifests: BTreeSet<PathBuf>,
}

/// Whether a text has a character that makes it a pattern for Hadoop's `globStatus`.
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}
