//! Extracts untrusted archives. Streams them, and refuses everything that a tree of plain files does not need.
//!
//! This room parses the tar headers itself. A library would read long names and pax records into memory before their
//! size can be checked.

mod archive;
mod catalog;
mod error;
mod extract;
mod file_type;
mod header;
mod pax;
mod stream;

use std::collections::BTreeSet;
use std::io::Read;

use archive::{Archive, Content, Entry};
use catalog::Catalog;
pub(super) use catalog::MAX_NAME_BYTES;
pub use error::UnpackError;
pub(super) use stream::{BOMB_FLOOR_BYTES, MAX_RATIO};

use super::folder::{Folder, Walk};

/// How much an archive may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnpackLimits {
    /// Entries of every type. Extension records count, and so do folders that only appear in the paths of files.
    pub max_entries: u64,
    /// Bytes of all entries: both the sizes in the headers and the bytes that are really unpacked.
    pub max_bytes: u64,
}

impl Default for UnpackLimits {
    fn default() -> UnpackLimits {
        UnpackLimits { max_entries: 200_000, max_bytes: 64 << 30 }
    }
}

/// One file that was extracted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpackedFile {
    /// The path relative to the target folder, with `/` between folders. Never empty, never with `.` or `..`.
    pub name: String,
    pub size_bytes: u64,
}

/// What was extracted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnpackedTree {
    pub files: Vec<UnpackedFile>,
    /// The paths of the folders that have nothing in them, of the same form.
    pub empty_folders: BTreeSet<String>,
}

/// Extracts a `.tar.gz` or `.tar` into the folder `into`, and reads `input` to its end. `into` should be empty. Each entry is checked before any of its bytes reach the
/// disk. After an error the caller removes the folder.
pub fn unpack<R: Read>(input: R, into: &Folder, limits: &UnpackLimits) -> Result<UnpackedTree, UnpackError> {
    let mut archive = Archive::open(input, limits)?;
    let mut into = Walk::from(into);
    let mut catalog = Catalog::default();
    let mut tree = UnpackedTree::default();
    while let Some(entry) = archive.next_entry()? {
        match entry.content {
            Content::Folder => {
                let new = catalog.add_folder(&entry.name)?;
                tree.is_filled(new.first());
                tree.empty_folders.extend(new.last().cloned());
                make_folders(&mut archive, &mut into, new)?;
            }
            Content::File { .. } => {
                let new = catalog.add_file(&entry.name)?;
                tree.is_filled(new.first().or(Some(&entry.name)));
                make_folders(&mut archive, &mut into, new)?;
                tree.files.push(extract_file(&mut archive, &mut into, entry)?);
            }
        }
    }
    Ok(tree)
}

impl UnpackedTree {
    /// The folder that gets this new entry has something in it now.
    fn is_filled(&mut self, new: Option<&String>) {
        if let Some((folder, _)) = new.and_then(|new| new.rsplit_once('/')) {
            self.empty_folders.remove(folder);
        }
    }
}

/// Folders that only appear in the paths of files count as entries, because one path can have two thousand folders.
fn make_folders<R: Read>(
    archive: &mut Archive<R>,
    into: &mut Walk<'_>,
    names: Vec<String>,
) -> Result<(), UnpackError> {
    for name in names {
        archive.count_entry()?;
        extract::make_folder(into, &name)?;
    }
    Ok(())
}

fn extract_file<R: Read>(
    archive: &mut Archive<R>,
    into: &mut Walk<'_>,
    entry: Entry,
) -> Result<UnpackedFile, UnpackError> {
    let mut file = extract::create(into, &entry)?;
    archive.read_content(entry.size_bytes, &mut |bytes| file.write(bytes))?;
    file.finish()?;
    Ok(UnpackedFile { name: entry.name, size_bytes: entry.size_bytes })
}

#[cfg(test)]
mod tests;
