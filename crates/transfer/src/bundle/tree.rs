//! Walks a folder whose files are to be packed: what the rules leave out is counted, links are followed inside of the
//! folder, and what no bundle may have is refused with its path.

mod rules;
mod secrets;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::io::{self, ErrorKind};
use std::iter;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::io::Errno;

use super::plan::{PackError, PlannedFile, inspect, shown};
use super::policy::{NameFault, check_path};
use super::unpack::MAX_NAME_BYTES;
use rules::{FolderRules, GitGlob};
pub use rules::{LeftOut, PackRules, check_exclude};
pub(super) use secrets::SecretFiles;

/// Never packed: the history of a repository, often with credentials.
const GIT: &str = ".git";

/// What folders and files have for a bundle.
#[derive(Default)]
pub(super) struct WalkedFiles {
    pub files: Vec<PlannedFile>,
    /// The folders without entries, by their paths in the bundle.
    pub empty_folders: BTreeMap<String, PathBuf>,
    pub left_out: LeftOut,
    pub secrets: SecretFiles,
    name_bytes: usize,
}

/// A folder that is being walked.
struct FolderWalk<'a> {
    rules: &'a PackRules,
    exclude: &'a [GitGlob],
    /// The folder as it was given.
    folder: &'a Path,
    /// The same without links: none may lead out of it.
    real: PathBuf,
}

/// A folder on the way to an entry.
struct Level {
    /// As it is shown.
    path: PathBuf,
    /// The same without links, of which a system follows only some in one path.
    real: PathBuf,
    /// Its path in the bundle.
    name: String,
    ignore: Option<FolderRules>,
    above: Option<Rc<Level>>,
}

impl Level {
    /// This folder and those above it.
    fn chain(&self) -> impl Iterator<Item = &Level> {
        iter::successors(Some(self), |level| level.above.as_deref())
    }

    fn path_of(&self, name: &str) -> String {
        if self.name.is_empty() { name.to_owned() } else { format!("{}/{name}", self.name) }
    }
}

/// Adds what is in `folder`.
pub(super) fn walk(
    folder: &Path,
    rules: &PackRules,
    exclude: &[GitGlob],
    walked: &mut WalkedFiles,
) -> Result<(), PackError> {
    let real = fs::canonicalize(folder).map_err(|source| unreadable(folder, source))?;
    let walk = FolderWalk { rules, exclude, folder, real };
    let root = walk.enter(folder.to_owned(), walk.real.clone(), rules.top().to_owned(), None)?;
    let mut open = vec![Rc::new(root)];
    while let Some(level) = open.pop() {
        let mut is_empty = true;
        for entry in fs::read_dir(&level.real).map_err(|source| unreadable(&level.path, source))? {
            let entry = entry.map_err(|source| unreadable(&level.path, source))?;
            is_empty &= !walk.entry(&level, &entry, &mut open, walked)?;
        }
        if is_empty && !level.name.is_empty() {
            walked.empty_folders.insert(level.name.clone(), level.path.clone());
        }
    }
    Ok(())
}

impl FolderWalk<'_> {
    fn enter(
        &self,
        path: PathBuf,
        real: PathBuf,
        name: String,
        above: Option<Rc<Level>>,
    ) -> Result<Level, PackError> {
        let ignore = if self.rules.no_ignore { None } else { FolderRules::of(&path, &real)? };
        Ok(Level { path, real, name, ignore, above })
    }

    /// Adds an entry of a folder, which is also opened if it is a folder itself. Returns whether it goes into the bundle.
    fn entry(
        &self,
        level: &Rc<Level>,
        entry: &DirEntry,
        open: &mut Vec<Rc<Level>>,
        walked: &mut WalkedFiles,
    ) -> Result<bool, PackError> {
        let (found, name) = (entry.path(), entry.file_name());
        let path = level.path.join(&name);
        let is_link = entry.file_type().map_err(|source| unreadable(&path, source))?.is_symlink();
        // For the rules, a link is what is sent for it.
        let is_folder = found.is_dir();
        if let Some(by) = self.left_out_by(level, &name, is_folder) {
            walked.left_out.add(&by, is_folder);
            return Ok(false);
        }
        let fault = |source| PackError::Name { path: path.clone(), source };
        let name = level.path_of(name.to_str().ok_or_else(|| fault(NameFault::NotUtf8))?);
        check_path(&name).map_err(fault)?;
        walked.count_name(&name, self.folder)?;
        let real = if is_link { self.target(&path, &found)? } else { found };
        if real.strip_prefix(&self.real).is_ok_and(has_git) {
            walked.left_out.add(rules::BY_GIT, is_folder);
            return Ok(false);
        }
        if is_folder {
            if is_link && level.chain().any(|above| above.real == real) {
                return Err(PackError::Link { path, why: "leads to a folder that it is in".to_owned() });
            }
            open.push(Rc::new(self.enter(path, real, name, Some(Rc::clone(level)))?));
            return Ok(true);
        }
        let file = inspect(&path, &real, name)?;
        walked.secrets.look(self.rules, &file, &real)?;
        walked.files.push(PlannedFile { real: Some(real), ..file });
        Ok(true)
    }

    /// The rule by which an entry is left out. The deepest ignore file with a rule for it decides, as with git.
    fn left_out_by(&self, level: &Level, name: &OsStr, is_folder: bool) -> Option<String> {
        if name == GIT {
            return Some(rules::BY_GIT.to_owned());
        }
        let path = Path::new(&level.name).join(name);
        let below = path.strip_prefix(self.rules.top()).unwrap_or(&path);
        if self.exclude.iter().any(|glob| glob.fits(below.as_os_str().as_bytes(), is_folder)) {
            return Some(rules::BY_EXCLUDE.to_owned());
        }
        let (glob, by) = level.chain().find_map(|level| {
            level.ignore.as_ref()?.last_for(path.strip_prefix(&level.name).ok()?, is_folder)
        })?;
        (!glob.takes_back).then(|| by.to_string())
    }

    /// What the link at `found`, which is shown as `path`, leads to, without further links.
    fn target(&self, path: &Path, found: &Path) -> Result<PathBuf, PackError> {
        let refused = |why: String| PackError::Link { path: path.to_owned(), why };
        match fs::canonicalize(found) {
            Ok(real) if real.starts_with(&self.real) => Ok(real),
            Ok(_) => Err(refused(format!("leads out of {}", shown(self.folder)))),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(refused("leads to nothing".to_owned())),
            Err(error) if Errno::from_io_error(&error) == Some(Errno::LOOP) => {
                Err(refused("leads in a circle or through too many links".to_owned()))
            }
            Err(error) => Err(unreadable(path, error)),
        }
    }
}

impl WalkedFiles {
    /// Links to folders can make a tree many times as large as it is, and unpacking has the same bound.
    fn count_name(&mut self, name: &str, folder: &Path) -> Result<(), PackError> {
        self.name_bytes += name.len();
        if self.name_bytes > MAX_NAME_BYTES {
            return Err(PackError::TooManyNames { folder: folder.to_owned(), limit: MAX_NAME_BYTES });
        }
        Ok(())
    }
}

fn has_git(path: &Path) -> bool {
    path.iter().any(|part| part == GIT)
}

fn unreadable(path: &Path, source: io::Error) -> PackError {
    PackError::Read { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests;
