//! The files and addresses to read before a request can be planned, and the keys that name them. A first round finds them, a
//! second round reads their contents.

use std::collections::BTreeSet;
use std::path::PathBuf;

use cloakroom_spark::{RemoteUri, SparkConf};

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

/// How the plan reads the file that a key names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// The value is a path of the submitting machine. The content is read.
    Path,
    /// The value is a path or a `file:` URI. The content is read. A `local:` URI is in the image and is not read.
    Uri,
    /// The value is a path, a URI or an `http(s)` address. The content is read.
    Source,
    /// The value is a list of files and patterns. The plan looks at each of them, and reads the content of small files
    /// if there is no server.
    List,
    /// The plan does not read it. The text says which part does.
    Elsewhere(&'static str),
}

/// A key that names files of the submitting machine.
#[derive(Clone, Copy)]
pub struct FileKey {
    pub name: &'static str,
    pub how: How,
    /// Whether the file of a value is read. One without a path is not: an empty path would be the working folder.
    pub(super) is_read: fn(&SparkConf, &str) -> bool,
}

impl FileKey {
    pub(super) const fn new(name: &'static str, how: How) -> Self {
        Self { name, how, is_read: |_, _| true }
    }

    /// The same with a condition.
    pub(super) const fn only_if(self, is_read: fn(&SparkConf, &str) -> bool) -> Self {
        Self { is_read, ..self }
    }
}
