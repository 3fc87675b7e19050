//! The sources of the bytes of planned files.

use std::fmt::Debug;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::SystemTime;

/// Opens planned files by their paths.
pub trait Sources: Debug + Send + Sync {
    /// Opens the file at a planned path.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Source>>;
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
        Ok(Box::new(File::open(path)?))
    }
}

impl Source for File {
    fn stamp(&self) -> io::Result<FileStamp> {
        let metadata = self.metadata()?;
        Ok(FileStamp { size_bytes: metadata.len(), modified: metadata.modified().ok() })
    }
}
