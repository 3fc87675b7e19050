//! The plan of a bundle: checks and names every file before the first byte is written.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use thiserror::Error;

use super::names::unique_names;
use super::policy::{NameFault, check_file_name};

/// Why files cannot be packed.
#[derive(Debug, Error)]
pub enum PackError {
    /// The list of files is empty.
    #[error("there is nothing to pack: name at least one file")]
    NoFiles,
    /// There is no file at this path.
    #[error("cannot pack {}: no such file; check its path", .path.display())]
    Missing { path: PathBuf },
    /// The path is a folder. A bundle has no folders.
    #[error(
        "cannot pack {}: it is a folder, and a bundle holds files; {}",
        .path.display(),
        for_folder(path)
    )]
    Folder { path: PathBuf },
    /// The path is a device, a pipe or a socket.
    #[error("cannot pack {}: it is a device, a pipe or a socket; name a regular file", .path.display())]
    Special { path: PathBuf },
    /// Unpacking would refuse the file's name.
    #[error("cannot pack {}: rename it", .path.display())]
    Name { path: PathBuf, source: NameFault },
    /// The operating system refused to read the file.
    #[error("cannot read {}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    /// The file's size or modification time differs from the plan's.
    #[error("{} changed while it was being packed; try again when nothing writes to it", .path.display())]
    Changed { path: PathBuf },
    /// The output of the bundle failed.
    #[error("cannot write the bundle")]
    Write(#[source] io::Error),
}

/// The files that go into one flat bundle, each under a name of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackPlan {
    files: Vec<PlannedFile>,
    renamed: Vec<Renamed>,
}

/// One file of a [`PackPlan`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedFile {
    /// The path as the caller gave it.
    pub path: PathBuf,
    pub name: String,
    /// The file's size when the plan was made.
    pub size_bytes: u64,
    /// The file's modification time when the plan was made; `None` if the file system does not keep it.
    pub modified: Option<SystemTime>,
}

/// A file that has another name in the bundle, because an earlier file of the list has the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renamed {
    /// The path as the caller gave it.
    pub path: PathBuf,
    /// The file's name in the bundle.
    pub name: String,
}

impl PackPlan {
    /// Checks all files and names them, in the given order. Symbolic links are followed. A file that is given again under the
    /// same name is packed once, as for `stage a.jar ./a.jar`.
    pub fn new(paths: &[PathBuf]) -> Result<PackPlan, PackError> {
        let mut seen = BTreeSet::new();
        let is_new = |path: &&PathBuf| {
            let file = fs::canonicalize(path).unwrap_or_else(|_| (*path).clone());
            seen.insert((file, path.file_name().map(OsStr::to_owned)))
        };
        Self::collect(paths.iter().filter(is_new).map(|path| inspect(path)))
    }

    /// Makes a plan of files that were inspected before, with the names that they are to have.
    pub fn from_files(files: Vec<PlannedFile>) -> Result<PackPlan, PackError> {
        Self::collect(files.into_iter().map(|file| check_name(&file.path, &file.name).map(|()| file)))
    }

    fn collect(
        inspected: impl Iterator<Item = Result<PlannedFile, PackError>>,
    ) -> Result<PackPlan, PackError> {
        let mut files = inspected.collect::<Result<Vec<_>, _>>()?;
        if files.is_empty() {
            return Err(PackError::NoFiles);
        }
        let names: Vec<String> = files.iter().map(|file| file.name.clone()).collect();
        let mut renamed = Vec::new();
        for (file, name) in files.iter_mut().zip(unique_names(&names)) {
            if file.name != name {
                check_name(&file.path, &name)?;
                renamed.push(Renamed { path: file.path.clone(), name: name.clone() });
                file.name = name;
            }
        }
        Ok(PackPlan { files, renamed })
    }

    /// The files, in the order in which they were given.
    pub fn files(&self) -> &[PlannedFile] {
        &self.files
    }

    /// The files whose names got a number, in the order of the files.
    pub fn renamed(&self) -> &[Renamed] {
        &self.renamed
    }

    /// The bytes of all files. The bundle may be smaller.
    pub fn total_bytes(&self) -> u64 {
        self.files.iter().fold(0, |total, file| total.saturating_add(file.size_bytes))
    }
}

/// Inspects one file. Checks the file type before it opens the file, because opening a pipe would wait for its writer.
fn inspect(path: &Path) -> Result<PlannedFile, PackError> {
    let metadata = fs::metadata(path).map_err(|source| not_there(path, source))?;
    if metadata.is_dir() {
        return Err(PackError::Folder { path: path.to_owned() });
    }
    if !metadata.is_file() {
        return Err(PackError::Special { path: path.to_owned() });
    }
    let name = file_name(path)?;
    File::open(path).map_err(|source| not_there(path, source))?;
    Ok(PlannedFile {
        path: path.to_owned(),
        name,
        size_bytes: metadata.len(),
        modified: metadata.modified().ok(),
    })
}

/// The ways out for a folder. Patterns of a shell such as `lib/*` name folders as well.
fn for_folder(path: &Path) -> String {
    let name = path.file_name().map_or("folder".into(), OsStr::to_string_lossy);
    format!(
        "leave it out, name the files in it ({}), or make one archive of it (tar -czf {name}.tar.gz {}) and name that: a \
         fetch does not unpack it",
        path.join("*").display(),
        path.display()
    )
}

fn not_there(path: &Path, source: io::Error) -> PackError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::NotFound => PackError::Missing { path },
        _ => PackError::Read { path, source },
    }
}

fn file_name(path: &Path) -> Result<String, PackError> {
    let fault = |source| PackError::Name { path: path.to_owned(), source };
    let name = path.file_name().ok_or_else(|| fault(NameFault::Empty))?;
    let name = name.to_str().ok_or_else(|| fault(NameFault::NotUtf8))?;
    check_name(path, name)?;
    Ok(name.to_owned())
}

fn check_name(path: &Path, name: &str) -> Result<(), PackError> {
    check_file_name(name).map_err(|source| PackError::Name { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests;
