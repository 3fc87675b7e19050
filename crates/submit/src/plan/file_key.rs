//! A key that names files, and how the plan reads them.

use cloakroom_spark::SparkConf;

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
