//! The receipt of an earlier run. If the init-container runs again, it finds the receipt and does not fetch again.

use std::collections::BTreeSet;
use std::io;
use std::path::{Component, Path};

use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

use crate::bundle::folder::{Walk, file_type, is_file_of, what};
use crate::bundle::{Folder, PlaceError, RESERVED_PREFIX, UnpackedTree};
use cloakroom_core::protocol::digest;

const VERSION: u32 = 1;
/// Several times the size of the names in the largest bundle.
const MAX_BYTES: u64 = 64 << 20;

/// The hidden file in the target folder that lists the files of one source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    version: u32,
    /// The key of the source.
    source: String,
    /// The digest of the downloaded bytes, in hexadecimal.
    sha256: String,
    files: Vec<ReceiptFile>,
    #[serde(default)]
    empty_folders: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReceiptFile {
    name: String,
    size_bytes: u64,
}

impl Receipt {
    pub(super) fn new(source: &str, sha256: &[u8; 32], tree: &UnpackedTree) -> Self {
        let files = tree
            .files
            .iter()
            .map(|file| ReceiptFile { name: file.name.clone(), size_bytes: file.size_bytes })
            .collect();
        let (source, sha256) = (source.to_owned(), digest::to_hex(sha256));
        Self { version: VERSION, source, sha256, files, empty_folders: tree.empty_folders.clone() }
    }

    /// Reads the receipt of the source `key` in `folder`. An unreadable receipt is treated as a missing one.
    pub(super) fn read(folder: &Folder, key: &str) -> Option<Self> {
        Self::parse(&folder.read(name(key, "json"), MAX_BYTES).ok()?, key)
    }

    /// Parses the content of a receipt. `None` if it is invalid, or is the receipt of another source than `key`.
    pub fn parse(json: &[u8], key: &str) -> Option<Self> {
        let receipt: Self = serde_json::from_slice(json).ok()?;
        let names_are_plain =
            receipt.names().chain(receipt.empty_folders.iter().map(|name| &**name)).all(is_plain);
        (receipt.version == VERSION && receipt.source == key && names_are_plain).then_some(receipt)
    }

    /// Checks that no folder is in its place. [`Self::write`] replaces anything else.
    pub(super) fn check(folder: &Folder, key: &str) -> Result<(), PlaceError> {
        let name = name(key, "json");
        match folder.look(&name) {
            Ok(Some(found)) if file_type(&found).is_dir() => {
                let path = folder.path().join(name);
                Err(PlaceError::NotAFile { path, what: what(file_type(&found)) })
            }
            _ => Ok(()),
        }
    }

    /// Writes the receipt whole or not at all. No file of a bundle can have the name of the draft.
    pub(super) fn write(&self, folder: &Folder) -> io::Result<()> {
        let [draft, receipt] = ["draft", "json"].map(|ending| name(&self.source, ending));
        folder.write_whole(draft, receipt, &serde_json::to_vec(self)?)
    }

    /// Whether the receipt is of the bytes with this digest.
    pub(super) fn is_of(&self, sha256: &[u8; 32]) -> bool {
        self.sha256 == digest::to_hex(sha256)
    }

    /// Whether every file is there with its size, and every folder.
    pub(super) fn is_fulfilled(&self, folder: &Folder) -> bool {
        let mut folder = Walk::from(folder);
        let mut is_there = |name: &str, is_right: &dyn Fn(&Stat) -> bool| {
            folder.look(name).is_ok_and(|found| found.as_ref().is_some_and(is_right))
        };
        self.files.iter().all(|file| is_there(&file.name, &|found| is_file_of(found, file.size_bytes)))
            && self.empty_folders.iter().all(|name| is_there(name, &|found| file_type(found).is_dir()))
    }

    pub(super) fn empty_folders(&self) -> &BTreeSet<String> {
        &self.empty_folders
    }

    /// The files of the source. Each path stays inside the target folder.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| file.name.as_str())
    }
}

fn name(key: &str, ending: &str) -> String {
    format!("{RESERVED_PREFIX}{key}.{ending}")
}

/// Whether a path is relative and stays inside its folder.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::bundle::UnpackedFile;

    fn receipt() -> Receipt {
        let files = vec![UnpackedFile { name: "a.jar".to_owned(), size_bytes: 3 }];
        let tree = UnpackedTree { files, empty_folders: ["x/logs".to_owned()].into() };
        Receipt::new("key", &[7; 32], &tree)
    }

    #[test]
    fn a_receipt_holds_as_long_as_everything_is_there() {
        let outer = tempfile::tempdir().unwrap();
        let folder = Folder::at(outer.path()).unwrap();
        receipt().write(&folder).unwrap();
        let found = Receipt::read(&folder, "key").unwrap();
        assert_eq!(found, receipt());
        assert!(!found.is_fulfilled(&folder));
        fs::write(outer.path().join("a.jar"), "abc").unwrap();
        assert!(!found.is_fulfilled(&folder), "a folder is missing");
        fs::create_dir_all(outer.path().join("x/logs")).unwrap();
        assert!(found.is_fulfilled(&folder));
        fs::write(outer.path().join("a.jar"), "ab").unwrap();
        assert!(!found.is_fulfilled(&folder));
    }

    #[test]
    fn a_receipt_of_another_source_or_with_outside_names_is_ignored() {
        let outer = tempfile::tempdir().unwrap();
        let folder = Folder::at(outer.path()).unwrap();
        assert_eq!(Receipt::read(&folder, "key"), None);
        for (name, source) in [("../a", "key"), ("/a", "key"), ("", "key"), ("a", "other")] {
            let mut receipt = receipt();
            (receipt.files[0].name, receipt.source) = (name.to_owned(), source.to_owned());
            fs::write(outer.path().join(super::name("key", "json")), serde_json::to_vec(&receipt).unwrap())
                .unwrap();
            assert_eq!(Receipt::read(&folder, "key"), None, "{name} {source}");
        }
    }
}
