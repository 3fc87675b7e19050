//! Extracts archives of strangers: streams them, and refuses whatever a flat or nested tree of plain files
//! does not need.
//!
//! The tar headers are read here and not by a library, because a library reads long names and pax records
//! into memory before anybody can object to their size.

mod archive;
mod catalog;
mod error;
mod extract;
mod file_type;
mod header;
mod pax;
mod stream;

use std::io::Read;
use std::path::Path;

use archive::{Archive, Content, Entry};
use catalog::Catalog;
pub use error::UnpackError;
use extract::Folder;
pub(super) use stream::{BOMB_FLOOR_BYTES, MAX_RATIO};

/// How much an archive may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnpackLimits {
    /// Entries of every type, extension records included, and the folders that are only implied by names.
    pub max_entries: u64,
    /// Bytes of all entries, as they are claimed and as they are really unpacked.
    pub max_bytes: u64,
}

impl Default for UnpackLimits {
    fn default() -> UnpackLimits {
        UnpackLimits { max_entries: 100_000, max_bytes: 64 << 30 }
    }
}

/// One file that was extracted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpackedFile {
    /// Relative to where it was extracted, with `/` between folders; never empty, without `.` and `..`.
    pub name: String,
    /// Its length.
    pub size_bytes: u64,
}

/// Extracts a `.tar.gz` or `.tar` into the folder `into`, which is made if it is missing and should be empty
/// and nobody else's. Reads `input` to its end. Each entry is judged before anything of it reaches the disk;
/// after an error the caller removes the folder.
pub fn unpack<R: Read>(
    input: R,
    into: &Path,
    limits: &UnpackLimits,
) -> Result<Vec<UnpackedFile>, UnpackError> {
    let mut archive = Archive::open(input, limits)?;
    let folder = Folder::open(into)?;
    let mut catalog = Catalog::default();
    let mut files = Vec::new();
    while let Some(entry) = archive.next_entry()? {
        match entry.content {
            Content::Folder => make_folders(&mut archive, &folder, catalog.add_folder(&entry.name)?)?,
            Content::File { .. } => {
                make_folders(&mut archive, &folder, catalog.add_file(&entry.name)?)?;
                files.push(extract_file(&mut archive, &folder, entry)?);
            }
        }
    }
    Ok(files)
}

/// Folders that an archive only implies count as entries: a path of two thousand parts is not one folder.
fn make_folders<R: Read>(
    archive: &mut Archive<R>,
    folder: &Folder,
    names: Vec<String>,
) -> Result<(), UnpackError> {
    for name in names {
        archive.count_entry()?;
        folder.make_folder(&name)?;
    }
    Ok(())
}

fn extract_file<R: Read>(
    archive: &mut Archive<R>,
    folder: &Folder,
    entry: Entry,
) -> Result<UnpackedFile, UnpackError> {
    let mut file = folder.create(&entry)?;
    archive.read_content(entry.size_bytes, &mut |bytes| file.write(bytes))?;
    file.finish()?;
    Ok(UnpackedFile { name: entry.name, size_bytes: entry.size_bytes })
}

#[cfg(test)]
mod tests;
