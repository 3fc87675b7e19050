//! The sources of the bytes of planned files.

use std::fmt::Debug;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, open, openat2};
use rustix::io::Errno;

/// Opens planned files by their paths.
pub trait Sources: Debug + Send + Sync {
    /// Opens the file at a planned path.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Source>>;

    /// Opens the file at a path on which there was no link. It is an error if there is one now.
    fn open_without_links(&self, path: &Path) -> io::Result<Box<dyn Source>> {
        self.open(path)
    }
}

/// An open file.
pub trait Source: Read {
    /// The current size and modification time, by which packing notices that the file was changed.
    fn stamp(&self) -> io::Result<FileStamp>;
}

/// The metadata that a change of the content changes too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    pub size_bytes: u64,
    /// When the file was last written; `None` if the source does not keep it.
    pub modified: Option<SystemTime>,
}

/// The files of this machine's file systems.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl Sources for Disk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Source>> {
        Ok(Box::new(open_file(path)?))
    }

    fn open_without_links(&self, path: &Path) -> io::Result<Box<dyn Source>> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            Ok(file) => Ok(Box::new(regular(file.into())?)),
            Err(Errno::LOOP) => {
                Err(io::Error::other("a link has taken its place, or that of a folder above it"))
            }
            // Before Linux 5.6, or in a container that does not let it through.
            Err(Errno::NOSYS | Errno::PERM) if std::fs::canonicalize(path)? == path => self.open(path),
            Err(error) => Err(error.into()),
        }
    }
}

/// Opens a regular file. A pipe that has taken its place is not waited for.
pub(super) fn open_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    regular(open(path, flags, Mode::empty())?.into())
}

fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is no regular file any more"))
    }
}

impl Source for File {
    fn stamp(&self) -> io::Result<FileStamp> {
        let metadata = self.metadata()?;
        Ok(FileStamp { size_bytes: metadata.len(), modified: metadata.modified().ok() })
    }
}
