//! Moves unpacked files to their target folder, after it has checked that nothing is in their way.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use rustix::fs::Stat;
use thiserror::Error;

use super::folder::{Folder, Walk, file_type, is_file_of, what};
use super::policy::{NameFault, clean_path, printable};
use super::unpack::{UnpackedFile, UnpackedTree};

const COMPARE_BUFFER_BYTES: usize = 128 * 1024;

/// Why files were not put into place.
#[derive(Debug, Error)]
pub enum PlaceError {
    /// The name is not one that unpacking gives.
    #[error("cannot place {name}")]
    Name {
        /// The refused name, with its control characters escaped.
        name: String,
        source: NameFault,
    },
    /// A file with other content has the same name in the target.
    #[error("{name} already exists in {} with other content; choose an empty folder", .to.display())]
    OtherContent { name: String, to: PathBuf },
    /// The target has something other than a file under this name.
    #[error("cannot put a file at {}: {what} is there; choose an empty folder", .path.display())]
    NotAFile {
        path: PathBuf,
        /// What is there, with its article.
        what: &'static str,
    },
    /// A name needs a folder where the target has something else.
    #[error("cannot put files into {}: it is {what}, not a folder; choose an empty folder", .path.display())]
    NotAFolder {
        path: PathBuf,
        /// What is there, with its article.
        what: &'static str,
    },
    /// The files were unpacked on another file system than the target's. A rename works only inside one file system.
    #[error("cannot move {} to {}: they are on different file systems", .from.display(), .path.display())]
    OtherFileSystem { from: PathBuf, path: PathBuf },
    /// The operating system refused an operation.
    #[error("cannot {action} {}", .path.display())]
    Disk {
        /// The refused operation, as a verb: the message is “cannot {action} {path}”.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

/// Moves each file of `tree` from the folder `from` to the folder `to`, which must be on the same file system. Checks
/// everything before it changes anything. If the target already has a file with the same bytes, that file stays, so
/// that a second run of the same work succeeds. The caller removes what is left in `from`.
pub fn place(from: &Folder, tree: &UnpackedTree, to: &Folder) -> Result<(), PlaceError> {
    carry_out(&plan(from, tree, to)?, from, to)
}

/// Checks whether [`place`] would find something in its way, and changes nothing.
pub fn check_place(from: &Folder, tree: &UnpackedTree, to: &Folder) -> Result<(), PlaceError> {
    plan(from, tree, to).map(drop)
}

/// What [`place`] does after the checks, with names relative to the target.
struct Work<'a> {
    missing_folders: Vec<&'a str>,
    moves: Vec<&'a str>,
}

fn plan<'a>(from: &Folder, tree: &'a UnpackedTree, to: &Folder) -> Result<Work<'a>, PlaceError> {
    let mut work = Work { missing_folders: Vec::new(), moves: Vec::new() };
    let mut known = HashSet::new();
    let (mut from, mut to) = (Walk::from(from), Walk::from(to));
    for folder in &tree.empty_folders {
        check_name(folder)?;
        work.missing_folders.extend(check_folders(folder, folder.len(), &mut to, &mut known)?);
    }
    for file in &tree.files {
        check_name(&file.name)?;
        let parents = file.name.rfind('/').unwrap_or(0);
        work.missing_folders.extend(check_folders(&file.name, parents, &mut to, &mut known)?);
        if !is_there(&mut from, file, &mut to)? {
            work.moves.push(file.name.as_str());
        }
    }
    Ok(work)
}

/// Other processes may have changed the folders since the checks. Then this fails.
fn carry_out(work: &Work<'_>, from: &Folder, to: &Folder) -> Result<(), PlaceError> {
    let (mut from, mut to) = (Walk::from(from), Walk::from(to));
    for folder in &work.missing_folders {
        to.make_folder(folder).map_err(|source| disk("create the folder", to.shown(folder), source))?;
    }
    work.moves.iter().try_for_each(|name| rename(&mut from, name, &mut to))
}

fn check_name(name: &str) -> Result<(), PlaceError> {
    let fault = match clean_path(name.as_bytes()) {
        Ok(clean) if clean == name => return Ok(()),
        Ok(_) => NameFault::Empty,
        Err(fault) => fault,
    };
    Err(PlaceError::Name { name: printable(name.as_bytes()), source: fault })
}

/// The folders in the first `length` bytes of a path that do not exist yet, outermost first. Each folder is returned once.
fn check_folders<'a>(
    name: &'a str,
    length: usize,
    to: &mut Walk<'_>,
    known: &mut HashSet<&'a str>,
) -> Result<Vec<&'a str>, PlaceError> {
    let mut missing = Vec::new();
    let ends = name[..length].match_indices('/').map(|(slash, _)| slash).chain([length]);
    for folder in ends.map(|end| &name[..end]).filter(|folder| !folder.is_empty()) {
        if !known.insert(folder) {
            continue;
        }
        match look(to, folder)? {
            None => missing.push(folder),
            Some(found) if file_type(&found).is_dir() => {}
            Some(found) => {
                return Err(PlaceError::NotAFolder { path: to.shown(folder), what: what(file_type(&found)) });
            }
        }
    }
    Ok(missing)
}

/// Checks whether the target already has this file with the same bytes.
fn is_there(from: &mut Walk<'_>, file: &UnpackedFile, to: &mut Walk<'_>) -> Result<bool, PlaceError> {
    let name = file.name.as_str();
    match look(to, name)? {
        None => Ok(false),
        Some(found) if !file_type(&found).is_file() => {
            Err(PlaceError::NotAFile { path: to.shown(name), what: what(file_type(&found)) })
        }
        Some(found) if is_file_of(&found, file.size_bytes) && same_bytes(from, to, name)? => Ok(true),
        Some(_) => Err(PlaceError::OtherContent { name: name.to_owned(), to: to.root().path().to_owned() }),
    }
}

fn look(folder: &mut Walk<'_>, name: &str) -> Result<Option<Stat>, PlaceError> {
    folder.look(name).map_err(|source| disk("look at", folder.shown(name), source))
}

fn same_bytes(left: &mut Walk<'_>, right: &mut Walk<'_>, name: &str) -> Result<bool, PlaceError> {
    let open = |folder: &mut Walk<'_>| {
        let path = folder.shown(name);
        folder.open_file(name).map(|file| (file, path.clone())).map_err(|source| disk("read", path, source))
    };
    let ((mut left_file, left), (mut right_file, right)) = (open(left)?, open(right)?);
    let (mut left_bytes, mut right_bytes) = (Vec::new(), Vec::new());
    loop {
        next_piece(&left, &mut left_file, &mut left_bytes)?;
        next_piece(&right, &mut right_file, &mut right_bytes)?;
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
    read.map(|_| ()).map_err(|source| disk("read", path.to_owned(), source))
}

fn rename(from: &mut Walk<'_>, name: &str, to: &mut Walk<'_>) -> Result<(), PlaceError> {
    from.rename(name, to).map_err(|source| match source.kind() {
        ErrorKind::CrossesDevices => {
            PlaceError::OtherFileSystem { from: from.shown(name), path: to.shown(name) }
        }
        _ => disk("move a file to", to.shown(name), source),
    })
}

fn disk(action: &'static str, path: PathBuf, source: io::Error) -> PlaceError {
    PlaceError::Disk { action, path, source }
}

#[cfg(test)]
mod tests;
