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

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
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
    pub fn at(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        Self::open(path)
    }

    /// The same for a folder that is there.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let handle = rustix::fs::open(path, FOLDER, Mode::empty())?;
        Ok(Self { handle: handle.into(), path: path.to_owned() })
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
                let folder = open_part(&self.handle, name, &self.path)?;
                let folder = Self { handle: folder, path: self.path.join(name) };
                folder.names()?.iter().try_for_each(|name| folder.remove(name))?;
                AtFlags::REMOVEDIR
            }
            Some(_) => AtFlags::empty(),
        };
        Ok(rustix::fs::unlinkat(&self.handle, name, flags)?)
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
        rustix::fs::mkdirat(&self.handle, name, Mode::RWXU)?;
        Ok(Self { handle: open_part(&self.handle, name, &self.path)?, path: self.path.join(name) })
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
        self.remove(&draft)?;
        self.create_file(&draft)?.write_all(bytes)?;
        Ok(rustix::fs::renameat(&self.handle, draft.as_ref(), &self.handle, name.as_ref())?)
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
        Ok(rustix::fs::renameat(&from.handle, name, &to.handle, name)?)
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
        let mut handle = start.handle.try_clone()?;
        let mut reached = start.path.clone();
        for part in rest.split('/') {
            handle = open_part(&handle, part.as_ref(), &reached)?;
            reached.push(part);
        }
        Ok(Folder { handle, path: reached })
    }
}

/// Opens the folder `name` in the folder `at`, whose path is `path`.
fn open_part(at: &File, name: &Path, path: &Path) -> io::Result<File> {
    match rustix::fs::openat(at, name, FOLDER | OFlags::NOFOLLOW, Mode::empty()) {
        Ok(folder) => Ok(folder.into()),
        Err(Errno::NOTDIR | Errno::LOOP) => Err(not_a_folder(at, name, &path.join(name))),
        Err(error) => Err(error.into()),
    }
}

fn not_a_folder(at: &File, name: &Path, path: &Path) -> io::Error {
    let found = rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW).map(|found| file_type(&found));
    let how = match found {
        Ok(found) if !found.is_dir() => format!("is {}, not a folder", what(found)),
        _ => "changes while it is in use".to_owned(),
    };
    let path = path.display();
    io::Error::new(
        ErrorKind::NotADirectory,
        format!("{path} {how}; check what else writes there, or choose another folder"),
    )
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
