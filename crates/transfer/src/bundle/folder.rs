//! Folders that are reached through open handles.
//!
//! Other processes can write to the folders that `fetch` fills, and can put a link in the place of a folder between two
//! steps. So no step goes by a path: each begins at a handle, and none follows a link.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::modes;

const FOLDER_MODE: u32 = 0o755;
/// The mode of new files, before the umask.
const NEW_FILE: Mode = Mode::from_raw_mode(0o666);
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// An open folder. Its methods take names in it, of one part, and follow no link.
#[derive(Debug)]
pub struct Folder {
    handle: File,
    /// Where it was opened; only for messages.
    path: PathBuf,
}

impl Folder {
    /// Opens the folder at `path`, and makes it if it is missing. Links in `path` are followed: the user chose them.
    /// Its own path has none, so that two spellings of one folder have one path.
    pub fn at(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path).map_err(|error| in_the_way(path).unwrap_or(error))?;
        let path = path.canonicalize()?;
        Self::open(&path).map_err(|error| failed(CWD, &path, &path, error))
    }

    /// The same for a folder that is there.
    pub(crate) fn open(path: &Path) -> Result<Self, Errno> {
        let handle = rustix::fs::open(path, FOLDER, Mode::empty())?;
        Ok(Self { handle: handle.into(), path: path.to_owned() })
    }

    /// Opens the folder at a name.
    fn enter(&self, name: &Path) -> io::Result<Self> {
        let handle = rustix::fs::openat(&self.handle, name, FOLDER | OFlags::NOFOLLOW, Mode::empty());
        let handle = handle.map_err(|error| self.failed(name, error))?;
        Ok(Self { handle: handle.into(), path: self.path.join(name) })
    }

    fn failed(&self, name: &Path, error: Errno) -> io::Error {
        failed(&self.handle, name, &self.path.join(name), error)
    }

    /// Where the folder was opened.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What is at a name; `None` if nothing is.
    pub(crate) fn look(&self, name: impl AsRef<Path>) -> io::Result<Option<Stat>> {
        match rustix::fs::statat(&self.handle, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(None),
            found => Ok(Some(found?)),
        }
    }

    /// Removes what is at a name, with all that is in it.
    pub(crate) fn remove(&self, name: impl AsRef<Path>) -> io::Result<()> {
        let name = name.as_ref();
        let flags = match self.look(name)?.map(|found| file_type(&found)) {
            None => return Ok(()),
            Some(FileType::Directory) => {
                let folder = self.enter(name)?;
                folder.names()?.iter().try_for_each(|name| folder.remove(name))?;
                AtFlags::REMOVEDIR
            }
            Some(_) => AtFlags::empty(),
        };
        rustix::fs::unlinkat(&self.handle, name, flags).map_err(|error| self.failed(name, error))
    }

    fn names(&self) -> io::Result<Vec<PathBuf>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.handle)? {
            let name = PathBuf::from(OsStr::from_bytes(entry?.file_name().to_bytes()));
            if name != Path::new(".") && name != Path::new("..") {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Makes an empty folder for this user only. Removes first what is at its name.
    pub(crate) fn make_empty(&self, name: impl AsRef<Path>) -> io::Result<Self> {
        self.remove(&name)?;
        self.make(name.as_ref())
    }

    /// Makes a folder that all users can read, whatever the umask: a process of another user reads the files.
    fn make_folder(&self, name: &str) -> io::Result<()> {
        modes::set(&self.make(name.as_ref())?.handle, FOLDER_MODE)
    }

    fn make(&self, name: &Path) -> io::Result<Self> {
        rustix::fs::mkdirat(&self.handle, name, Mode::RWXU).map_err(|error| self.failed(name, error))?;
        self.enter(name)
    }

    /// Makes a file. Anything that already has its name, including a link, is an error.
    pub(crate) fn create_file(&self, name: impl AsRef<Path>) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.handle, name.as_ref(), flags, NEW_FILE)?.into())
    }

    /// Opens a regular file, as [`open_regular`] does.
    pub(crate) fn open_file(&self, name: impl AsRef<Path>, flags: OFlags) -> io::Result<File> {
        open_regular(&self.handle, name.as_ref(), flags)
    }

    /// Reads a regular file. It is an error if the file has more than `max_bytes`.
    pub(crate) fn read(&self, name: impl AsRef<Path>, max_bytes: u64) -> io::Result<Vec<u8>> {
        let file = self.open_file(name, OFlags::RDONLY)?;
        let mut bytes = Vec::new();
        file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > max_bytes { Err(ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
    }

    /// Writes a file whole or not at all: first to a new file `draft`, which is then renamed.
    pub(crate) fn write_whole(
        &self,
        draft: impl AsRef<Path>,
        name: impl AsRef<Path>,
        bytes: &[u8],
    ) -> io::Result<()> {
        let draft = draft.as_ref();
        self.remove(draft)?;
        self.create_file(draft)?.write_all(bytes)?;
        let renamed = rustix::fs::renameat(&self.handle, draft, &self.handle, name.as_ref());
        renamed.map_err(|error| self.failed(draft, error))
    }
}

/// Reaches paths below a folder, part by part. Keeps the folder of the last one open, because the next is often in it.
pub(crate) struct Walk<'a> {
    root: &'a Folder,
    last: Option<(String, Folder)>,
}

impl<'a> Walk<'a> {
    pub(crate) fn from(root: &'a Folder) -> Self {
        Self { root, last: None }
    }

    pub(crate) fn root(&self) -> &Folder {
        self.root
    }

    /// A path as messages show it.
    pub(crate) fn shown(&self, path: &str) -> PathBuf {
        self.root.path.join(path)
    }

    /// What is at a path; `None` if nothing is.
    pub(crate) fn look(&mut self, path: &str) -> io::Result<Option<Stat>> {
        match self.parent(path) {
            Ok((folder, name)) => folder.look(name),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes a folder that all users can read.
    pub(crate) fn make_folder(&mut self, path: &str) -> io::Result<()> {
        let (folder, name) = self.parent(path)?;
        folder.make_folder(name)
    }

    /// Makes a file. Anything that already has its name, including a link, is an error.
    pub(crate) fn create_file(&mut self, path: &str) -> io::Result<File> {
        let (folder, name) = self.parent(path)?;
        folder.create_file(name)
    }

    /// Opens a regular file for reading.
    pub(crate) fn open_file(&mut self, path: &str) -> io::Result<File> {
        let (folder, name) = self.parent(path)?;
        folder.open_file(name, OFlags::RDONLY)
    }

    /// Moves what is at a path to the same path below another folder.
    pub(crate) fn rename(&mut self, path: &str, to: &mut Walk<'_>) -> io::Result<()> {
        let ((from, name), (to, _)) = (self.parent(path)?, to.parent(path)?);
        let renamed = rustix::fs::renameat(&from.handle, name, &to.handle, name);
        renamed.map_err(|error| from.failed(name.as_ref(), error))
    }

    /// The open folder of a path, and the path's last part.
    fn parent<'n>(&mut self, path: &'n str) -> io::Result<(&Folder, &'n str)> {
        if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(io::Error::new(ErrorKind::InvalidInput, "its name leads out of its folder"));
        }
        let Some((folder, name)) = path.rsplit_once('/') else { return Ok((self.root, path)) };
        let is_last = self.last.as_ref().is_some_and(|(last, _)| last == folder);
        if !is_last {
            self.last = Some((folder.to_owned(), self.open(folder)?));
        }
        Ok((self.last.as_ref().map_or(self.root, |(_, folder)| folder), name))
    }

    /// Opens a folder, from the last one if it is below that.
    fn open(&self, path: &str) -> io::Result<Folder> {
        let below = |(last, _): &(String, Folder)| path.strip_prefix(last.as_str())?.strip_prefix('/');
        let (start, rest) = match self.last.as_ref().and_then(|last| Some((&last.1, below(last)?))) {
            Some(known) => known,
            None => (self.root, path),
        };
        let start = Folder { handle: start.handle.try_clone()?, path: start.path.clone() };
        rest.split('/').try_fold(start, |folder, part| folder.enter(part.as_ref()))
    }
}

/// The error of a step on `name` in the folder `at`. Names what another process has put into its place.
fn failed(at: impl AsFd, name: &Path, path: &Path, error: Errno) -> io::Error {
    const CHECK: &str = "check what else writes there, or choose another folder";
    let found = rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW).map(|found| file_type(&found));
    let how = match (error, found) {
        // Handles are opened for reading, because folders in them may have to be emptied.
        (Errno::ACCESS, Ok(FileType::Directory)) => {
            "cannot be listed by this user; give it read permission too (chmod +r), or choose another folder"
                .to_owned()
        }
        (Errno::NOTDIR | Errno::LOOP | Errno::EXIST, Ok(found)) if !found.is_dir() => {
            format!("is {}, not a folder; {CHECK}", what(found))
        }
        (Errno::NOENT, Err(Errno::NOENT)) => format!("is gone; {CHECK}"),
        (Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::EXIST | Errno::NOTEMPTY, _) => {
            format!("changes while it is in use; {CHECK}")
        }
        _ => return error.into(),
    };
    io::Error::new(io::Error::from(error).kind(), format!("{} {how}", path.display()))
}

/// Names what is in the way of a new folder: a file, or a link that leads to none, at its path or above.
fn in_the_way(path: &Path) -> Option<io::Error> {
    let (path, found) = path.ancestors().find_map(|path| Some((path, rustix::fs::lstat(path).ok()?)))?;
    let what = match file_type(&found) {
        _ if path.is_dir() => return None,
        FileType::Symlink => "a symbolic link that leads to no folder",
        found => what(found),
    };
    let why = format!("{} is {what}; remove it, or choose another folder", path.display());
    Some(io::Error::new(ErrorKind::NotADirectory, why))
}

/// Opens the regular file at `path`, which begins at the folder `at`. Does not follow a link at its end, and does not
/// wait for a pipe. Everything else is an error.
pub(crate) fn open_regular(at: impl AsFd, path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(at, path, flags, NEW_FILE)?);
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

/// The type of what was found.
pub(crate) fn file_type(found: &Stat) -> FileType {
    FileType::from_raw_mode(found.st_mode)
}

/// Whether a regular file of this size was found.
pub(crate) fn is_file_of(found: &Stat, size_bytes: u64) -> bool {
    file_type(found).is_file() && u64::try_from(found.st_size) == Ok(size_bytes)
}

/// Names a type, with its article: “a folder”.
pub(crate) fn what(found: FileType) -> &'static str {
    match found {
        FileType::Directory => "a folder",
        FileType::Symlink => "a symbolic link",
        FileType::RegularFile => "a file",
        _ => "a device, a pipe or a socket",
    }
}

#[cfg(test)]
mod tests;
