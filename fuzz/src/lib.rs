//! What several fuzz targets share.

use std::fs;
use std::path::{Path, PathBuf};

use cloakroom_transfer::bundle::Folder;
use tempfile::TempDir;

/// A folder to unpack into, with a neighbour that must stay unchanged. It is removed when dropped. `TMPDIR` decides its
/// file system.
pub struct Target(TempDir);

impl Target {
    /// A new one. The folder itself does not exist yet.
    #[expect(clippy::new_without_default, reason = "it makes a folder")]
    pub fn new() -> Self {
        let outer = tempfile::tempdir().expect("a temporary folder");
        fs::write(outer.path().join("neighbour"), b"untouched").expect("a file");
        Self(outer)
    }

    /// The folder, which is made if it does not exist yet.
    pub fn folder(&self) -> Folder {
        Folder::at(&self.inside()).expect("a folder")
    }

    /// Where to unpack.
    pub fn inside(&self) -> PathBuf {
        self.0.path().join("target")
    }

    /// The files with their lengths, in order. Panics if anything beside the folder has changed, or if the folder
    /// contains anything but files and folders.
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

/// The parts of an input before and after its first NUL.
pub fn two(text: &str) -> (&str, &str) {
    text.split_once('\0').unwrap_or((text, ""))
}

/// Panics if an error message is not fit for users: empty, with a full stop at its end, or with control characters.
pub fn assert_readable(message: &str) {
    assert!(!message.is_empty() && !message.ends_with('.'), "{message:?}");
    assert!(!message.chars().any(char::is_control), "{message:?}");
}
