//! Moves unpacked files to their target folder, after it has checked that nothing is in their way.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, FileType};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::policy::{NameFault, clean_path, printable};
use super::unpack::UnpackedFile;
use crate::modes;

const FOLDER_MODE: u32 = 0o755;
const COMPARE_BUFFER_BYTES: usize = 128 * 1024;

/// Why files were not put into place.
#[derive(Debug, Error)]
pub enum PlaceError {
    /// The name is not one that unpacking gives.
    #[error("cannot place {name}")]
    Name {
        /// The refused name, with its control characters escaped.
        name: String,
        /// What is wrong with it.
        source: NameFault,
    },
    /// A file with other content has the same name in the target.
    #[error("{name} already exists in {} with other content; choose an empty folder", .to.display())]
    OtherContent {
        /// Relative to the target.
        name: String,
        /// The target folder.
        to: PathBuf,
    },
    /// The target has something other than a file under this name.
    #[error("cannot put a file at {}: {what} is there; choose an empty folder", .path.display())]
    NotAFile {
        /// Where the file would go.
        path: PathBuf,
        /// What is there, with its article.
        what: &'static str,
    },
    /// A name needs a folder where the target has something else.
    #[error("cannot put files into {}: it is {what}, not a folder; choose an empty folder", .path.display())]
    NotAFolder {
        /// Where the folder would be.
        path: PathBuf,
        /// What is there, with its article.
        what: &'static str,
    },
    /// The files were unpacked on another file system than the target's. A rename works only inside one file system.
    #[error("cannot move {} to {}: they are on different file systems", .from.display(), .path.display())]
    OtherFileSystem {
        /// Where it was unpacked.
        from: PathBuf,
        /// Where it would go.
        path: PathBuf,
    },
    /// The operating system refused an operation.
    #[error("cannot {action} {}", .path.display())]
    Disk {
        /// The refused operation, as a verb: the message is “cannot {action} {path}”.
        action: &'static str,
        /// The file or folder of the operation.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
}

/// Moves each of `files` from the folder `from` to the folder `to`, which must be on the same file system. Checks
/// everything before it changes anything. If the target already has a file with the same bytes, that file stays, so
/// that a second run of the same work succeeds. The caller removes what is left in `from`.
pub fn place(from: &Path, files: &[UnpackedFile], to: &Path) -> Result<(), PlaceError> {
    let Work { missing_folders, moves } = plan(from, files, to)?;
    make_target(to)?;
    missing_folders.iter().try_for_each(|folder| make_folder(&to.join(folder)))?;
    moves.iter().try_for_each(|name| rename(&from.join(name), &to.join(name)))
}

/// Checks whether [`place`] would find something in its way, and changes nothing.
pub fn check_place(from: &Path, files: &[UnpackedFile], to: &Path) -> Result<(), PlaceError> {
    plan(from, files, to).map(drop)
}

/// What [`place`] does after the checks, with names relative to the target.
struct Work<'a> {
    missing_folders: Vec<&'a str>,
    moves: Vec<&'a str>,
}

fn plan<'a>(from: &Path, files: &'a [UnpackedFile], to: &Path) -> Result<Work<'a>, PlaceError> {
    let mut work = Work { missing_folders: Vec::new(), moves: Vec::new() };
    let mut known = HashSet::new();
    check_target(to)?;
    for file in files {
        check_name(&file.name)?;
        work.missing_folders.extend(check_parents(&file.name, to, &mut known)?);
        if !is_there(from, file, to)? {
            work.moves.push(file.name.as_str());
        }
    }
    Ok(work)
}

fn check_name(name: &str) -> Result<(), PlaceError> {
    let fault = match clean_path(name.as_bytes()) {
        Ok(clean) if clean == name => return Ok(()),
        Ok(_) => NameFault::Empty,
        Err(fault) => fault,
    };
    Err(PlaceError::Name { name: printable(name.as_bytes()), source: fault })
}

/// The target itself may be a link, because volumes are mounted in many ways. Folders below it may not be links.
fn check_target(to: &Path) -> Result<(), PlaceError> {
    match fs::metadata(to) {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(metadata) => Err(PlaceError::NotAFolder { path: to.to_owned(), what: kind(metadata.file_type()) }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(source) => Err(disk("look at", to, source)),
    }
}

/// The parent folders of a file that do not exist yet, outermost first. Each folder is returned for its first file
/// only.
fn check_parents<'a>(
    name: &'a str,
    to: &Path,
    known: &mut HashSet<&'a str>,
) -> Result<Vec<&'a str>, PlaceError> {
    let mut missing = Vec::new();
    for (slash, _) in name.match_indices('/') {
        let folder = &name[..slash];
        if !known.insert(folder) {
            continue;
        }
        let path = to.join(folder);
        match look(&path)? {
            None => missing.push(folder),
            Some(found) if found.is_dir() => {}
            Some(found) => return Err(PlaceError::NotAFolder { path, what: kind(found.file_type()) }),
        }
    }
    Ok(missing)
}

/// Checks whether the target already has this file with the same bytes.
fn is_there(from: &Path, file: &UnpackedFile, to: &Path) -> Result<bool, PlaceError> {
    let path = to.join(&file.name);
    match look(&path)? {
        None => Ok(false),
        Some(found) if !found.is_file() => Err(PlaceError::NotAFile { path, what: kind(found.file_type()) }),
        Some(found) if found.len() == file.size_bytes && same_bytes(&from.join(&file.name), &path)? => {
            Ok(true)
        }
        Some(_) => Err(PlaceError::OtherContent { name: file.name.clone(), to: to.to_owned() }),
    }
}

fn look(path: &Path) -> Result<Option<fs::Metadata>, PlaceError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(disk("look at", path, source)),
    }
}

fn kind(found: FileType) -> &'static str {
    match () {
        () if found.is_dir() => "a folder",
        () if found.is_symlink() => "a symbolic link",
        () if found.is_file() => "a file",
        () => "a device, a pipe or a socket",
    }
}

fn same_bytes(left: &Path, right: &Path) -> Result<bool, PlaceError> {
    let open = |path: &Path| File::open(path).map_err(|source| disk("read", path, source));
    let (mut left_file, mut right_file) = (open(left)?, open(right)?);
    let (mut left_bytes, mut right_bytes) = (Vec::new(), Vec::new());
    loop {
        next_piece(left, &mut left_file, &mut left_bytes)?;
        next_piece(right, &mut right_file, &mut right_bytes)?;
        if left_bytes != right_bytes {
            return Ok(false);
        }
        if left_bytes.is_empty() {
            return Ok(true);
        }
    }
}

fn next_piece(path: &Path, file: &mut File, piece: &mut Vec<u8>) -> Result<(), PlaceError> {
    piece.clear();
    let read = file.take(COMPARE_BUFFER_BYTES as u64).read_to_end(piece);
    read.map(|_| ()).map_err(|source| disk("read", path, source))
}

fn make_target(to: &Path) -> Result<(), PlaceError> {
    if look(to)?.is_some() {
        return Ok(());
    }
    fs::create_dir_all(to)
        .and_then(|()| modes::of_folder(to, FOLDER_MODE))
        .map_err(|source| disk("create the folder", to, source))
}

/// Makes a folder that all users can read, whatever the umask: a process of another user reads the files.
fn make_folder(path: &Path) -> Result<(), PlaceError> {
    DirBuilder::new()
        .create(path)
        .and_then(|()| modes::of_folder(path, FOLDER_MODE))
        .map_err(|source| disk("create the folder", path, source))
}

fn rename(from: &Path, path: &Path) -> Result<(), PlaceError> {
    fs::rename(from, path).map_err(|source| match source.kind() {
        ErrorKind::CrossesDevices => {
            PlaceError::OtherFileSystem { from: from.to_owned(), path: path.to_owned() }
        }
        _ => disk("move a file to", path, source),
    })
}

fn disk(action: &'static str, path: &Path, source: io::Error) -> PlaceError {
    PlaceError::Disk { action, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests;
