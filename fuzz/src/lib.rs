//! What several fuzz targets share.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A folder to unpack into, with a neighbour that must stay as it is. It goes when it is dropped; `TMPDIR` says in which
/// file system it is.
pub struct Target(TempDir);

impl Target {
    /// A new one; the folder itself is not there yet.
    #[expect(clippy::new_without_default, reason = "it makes a folder")]
    pub fn new() -> Self {
        let outer = tempfile::tempdir().expect("a temporary folder");
        fs::write(outer.path().join("neighbour"), b"untouched").expect("a file");
        Self(outer)
    }

    /// Where to unpack.
    pub fn inside(&self) -> PathBuf {
        self.0.path().join("target")
    }

    /// Fails where anything beside the folder has changed, or anything else than files and folders is in it.
    /// The files with their lengths, in order.
    pub fn checked_files(&self) -> Vec<(String, u64)> {
        let mut beside: Vec<_> = fs::read_dir(self.0.path())
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        beside.retain(|name| name != "target");
        assert_eq!(beside, ["neighbour"], "something was written beside the target");
        assert_eq!(fs::read(self.0.path().join("neighbour")).expect("a file"), b"untouched");
        let mut files = Vec::new();
        walk(&self.inside(), "", &mut files);
        files.sort();
        files
    }
}

fn walk(folder: &Path, prefix: &str, files: &mut Vec<(String, u64)>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let entry = entry.expect("an entry");
        let name = format!("{prefix}{}", entry.file_name().to_str().expect("a name in UTF-8"));
        let found = entry.path().symlink_metadata().expect("what is there");
        if found.is_dir() {
            walk(&entry.path(), &format!("{name}/"), files);
        } else {
            assert!(found.is_file(), "{name} is neither a file nor a folder");
            files.push((name, found.len()));
        }
    }
}

/// The parts of an input that are on both sides of its first NUL.
pub fn two(text: &str) -> (&str, &str) {
    text.split_once('\0').unwrap_or((text, ""))
}

/// Fails where an error is not fit to be shown: too long for a line, or with control characters in it.
pub fn assert_readable(message: &str) {
    assert!(!message.is_empty() && !message.ends_with('.'), "{message:?}");
    assert!(!message.chars().any(char::is_control), "{message:?}");
}
