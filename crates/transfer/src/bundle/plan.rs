//! The plan of a bundle: checks and names every file before the first byte is written.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use thiserror::Error;

use cloakroom_core::text::escaped;

use super::names::unique_names;
use super::policy::{NameFault, check_file_name};
use super::sources::open_file;
use super::tree::{LeftOut, PackRules, SecretFiles, WalkedFiles, walk};

/// Why files cannot be packed.
#[derive(Debug, Error)]
pub enum PackError {
    /// The list of files is empty.
    #[error("there is nothing to pack: name at least one file")]
    NoFiles,
    /// The folders have no file that is packed.
    #[error("there is no file to pack in the folders{}", because(.left_out))]
    NothingLeft { left_out: LeftOut },
    /// There is no file at this path.
    #[error("cannot pack {}: no such file; check its path", shown(.path))]
    Missing { path: PathBuf },
    /// The path is a device, a pipe or a socket.
    #[error("cannot pack {}: it is a device, a pipe or a socket; name a regular file, or leave it out", shown(.path))]
    Special { path: PathBuf },
    /// A link in a folder is not sent as what it leads to.
    #[error(
        "cannot pack {}: it is a link that {why}; leave it out (--exclude), or put what it means in its place",
        shown(.path)
    )]
    Link { path: PathBuf, why: String },
    /// Files look like private keys or credentials.
    #[error(
        "not packed, because they look like private keys or credentials: {found}; leave them out (--exclude, or \
         .cloakroomignore), or send them with --include-secrets"
    )]
    Secrets { found: SecretFiles },
    /// Two files, or a file and a folder, would have the same path.
    #[error(
        "cannot pack {} and {} together: both become {name} in the bundle; rename one, or stage them one by one",
        shown(.first),
        shown(.second),
        name = escaped(.name)
    )]
    SamePath { first: PathBuf, second: PathBuf, name: String },
    /// A folder has more than a bundle can have.
    #[error(
        "cannot pack {}: the names of its files have more than {limit} bytes together, and fetch would refuse that; leave \
         files out, or stage an archive of it",
        shown(.folder)
    )]
    TooManyNames { folder: PathBuf, limit: usize },
    /// A glob is none.
    #[error("--exclude {} is not usable: {why}", escaped(.glob))]
    Exclude { glob: String, why: String },
    /// An ignore file whose rules would not count.
    #[error("cannot use the rules of {}: {why}, or give --no-ignore", shown(.path))]
    IgnoreFile { path: PathBuf, why: String },
    /// Unpacking would refuse the file's name.
    #[error("cannot pack {}: rename it", shown(.path))]
    Name { path: PathBuf, source: NameFault },
    /// The operating system refused to read the file.
    #[error("cannot read {}", shown(.path))]
    Read { path: PathBuf, source: io::Error },
    /// The file's size or modification time differs from the plan's.
    #[error("{} changed while it was being packed; try again when nothing writes to it", shown(.path))]
    Changed { path: PathBuf },
    /// The output of the bundle failed.
    #[error("cannot write the bundle")]
    Write(#[source] io::Error),
}

/// The files that go into one bundle, each under a name of its own: flat, or with paths if there are folders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackPlan {
    files: Vec<PlannedFile>,
    empty_folders: Vec<String>,
    renamed: Vec<Renamed>,
    left_out: Option<LeftOut>,
}

/// One file of a [`PackPlan`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedFile {
    /// The path as the caller gave it, or below a folder that the caller gave.
    pub path: PathBuf,
    /// The same without links, for a file of a folder: nothing outside of the folder may take its place. `None` for a file that the
    /// caller named.
    pub real: Option<PathBuf>,
    /// The path in the bundle.
    pub name: String,
    /// The file's size when the plan was made.
    pub size_bytes: u64,
    /// The file's modification time when the plan was made; `None` if the file system does not keep it.
    pub modified: Option<SystemTime>,
    pub executable: bool,
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
    /// The same as [`PackPlan::of`] without special rules.
    pub fn new(paths: &[PathBuf]) -> Result<PackPlan, PackError> {
        Self::of(paths, &PackRules::default())
    }

    /// Checks and names all files and all that the folders have, in the given order, or sorted if there is a folder.
    /// Symbolic links are followed. What is given again under the same name is packed once, as for `stage a.jar ./a.jar`.
    pub fn of(paths: &[PathBuf], rules: &PackRules) -> Result<PackPlan, PackError> {
        let (mut named, mut walked) = (Vec::new(), WalkedFiles::default());
        let (mut seen, mut has_folder) = (BTreeSet::new(), false);
        let exclude = rules.excluded()?;
        for path in paths {
            let is_folder = fs::metadata(path).map_err(|source| not_there(path, source))?.is_dir();
            let real = fs::canonicalize(path).map_err(|source| not_there(path, source))?;
            if !seen.insert((real.clone(), path.file_name().filter(|_| !is_folder))) {
                continue;
            }
            has_folder |= is_folder;
            if is_folder {
                walk(path, rules, &exclude, &mut walked)?;
            } else {
                let file = inspect(path, path, file_name(path)?)?;
                walked.secrets.look(rules, &file, &real)?;
                named.push(file);
            }
        }
        let WalkedFiles { files, empty_folders, left_out, secrets, .. } = walked;
        if !secrets.is_empty() {
            return Err(PackError::Secrets { found: secrets });
        }
        let mut plan = Self::flat(named)?;
        if let Some(top) = &rules.top {
            plan.files.iter_mut().for_each(|file| file.name = format!("{top}/{}", file.name));
        }
        if has_folder {
            plan.files.extend(files);
            plan = Self { left_out: Some(left_out), ..plan }.sorted(empty_folders)?;
        }
        plan.or_nothing()
    }

    /// Makes a plan of files that were inspected before, with the names that they are to have.
    pub fn from_files(files: Vec<PlannedFile>) -> Result<PackPlan, PackError> {
        files.iter().try_for_each(|file| check_name(&file.path, &file.name))?;
        Self::flat(files)?.or_nothing()
    }

    /// Gives a number to the second file of a name.
    fn flat(mut files: Vec<PlannedFile>) -> Result<PackPlan, PackError> {
        let names: Vec<String> = files.iter().map(|file| file.name.clone()).collect();
        let mut renamed = Vec::new();
        for (file, name) in files.iter_mut().zip(unique_names(&names)) {
            if file.name != name {
                check_name(&file.path, &name)?;
                renamed.push(Renamed { path: file.path.clone(), name: name.clone() });
                file.name = name;
            }
        }
        Ok(PackPlan { files, renamed, ..PackPlan::default() })
    }

    /// Sorts by path, so that the same tree gives the same bundle. No path may be two things.
    fn sorted(mut self, empty_folders: BTreeMap<String, PathBuf>) -> Result<PackPlan, PackError> {
        self.files.sort_by(|left, right| left.name.cmp(&right.name));
        let is_same = |left: &PlannedFile, right: &PlannedFile| {
            left.name == right.name && fs::canonicalize(&left.path).ok() == fs::canonicalize(&right.path).ok()
        };
        self.files.dedup_by(|next, kept| is_same(next, kept));
        let mut files = HashMap::new();
        for file in &self.files {
            if let Some(first) = files.insert(&*file.name, &*file.path) {
                return Err(same_path(first, &file.path, &file.name));
            }
        }
        for file in &self.files {
            if let Some((name, first)) = folders_of(&file.name).find_map(|name| files.get_key_value(name)) {
                return Err(same_path(first, &file.path, name));
            }
        }
        for (folder, path) in &empty_folders {
            let above = folders_of(folder).chain([&**folder]);
            if let Some((name, first)) = above.into_iter().find_map(|name| files.get_key_value(name)) {
                return Err(same_path(first, path, name));
            }
        }
        Ok(Self { empty_folders: empty_folders.into_keys().collect(), ..self })
    }

    fn or_nothing(self) -> Result<PackPlan, PackError> {
        match (self.files.is_empty(), self.left_out) {
            (false, left_out) => Ok(Self { left_out, ..self }),
            (true, Some(left_out)) => Err(PackError::NothingLeft { left_out }),
            (true, None) => Err(PackError::NoFiles),
        }
    }

    /// The files, in their order in the bundle.
    pub fn files(&self) -> &[PlannedFile] {
        &self.files
    }

    /// The paths in the bundle of folders that have nothing in them, sorted.
    pub fn empty_folders(&self) -> &[String] {
        &self.empty_folders
    }

    /// The files whose names got a number, in the order of the files.
    pub fn renamed(&self) -> &[Renamed] {
        &self.renamed
    }

    /// What of the folders is not packed; `None` if there is no folder.
    pub fn left_out(&self) -> Option<&LeftOut> {
        self.left_out.as_ref()
    }

    /// The bytes of all files. The bundle may be smaller.
    pub fn total_bytes(&self) -> u64 {
        self.files.iter().fold(0, |total, file| total.saturating_add(file.size_bytes))
    }

    /// How many folders the bundle has, those in paths included.
    pub(super) fn folders(&self) -> usize {
        let in_paths = self.files.iter().flat_map(|file| folders_of(&file.name));
        let empty = self.empty_folders.iter().flat_map(|name| folders_of(name).chain([&**name]));
        in_paths.chain(empty).collect::<HashSet<_>>().len()
    }
}

/// The folders in a path, outermost first.
fn folders_of(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(slash, _)| &path[..slash])
}

fn same_path(first: &Path, second: &Path, name: &str) -> PackError {
    PackError::SamePath { first: first.to_owned(), second: second.to_owned(), name: name.to_owned() }
}

/// A path as people see it: none breaks a line, or hides what it is.
pub(super) fn shown(path: &Path) -> String {
    escaped(&path.to_string_lossy())
}

fn because(left_out: &LeftOut) -> String {
    if left_out.is_empty() {
        return String::new();
    }
    format!(": {left_out} left out; change the rules, or give --no-ignore")
}

/// Inspects the file at `found`, which is shown as `path`. Checks the file type before it opens the file, because opening
/// a pipe would wait for its writer.
pub(super) fn inspect(path: &Path, found: &Path, name: String) -> Result<PlannedFile, PackError> {
    let metadata = fs::metadata(found).map_err(|source| not_there(path, source))?;
    if !metadata.is_file() {
        return Err(PackError::Special { path: path.to_owned() });
    }
    open_file(found).map_err(|source| not_there(path, source))?;
    Ok(PlannedFile {
        path: path.to_owned(),
        real: None,
        name,
        size_bytes: metadata.len(),
        modified: metadata.modified().ok(),
        executable: metadata.permissions().mode() & 0o100 != 0,
    })
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
