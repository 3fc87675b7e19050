//! Where the bytes of planned files come from.

use std::fmt::Debug;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::SystemTime;

/// Opens files by the paths that were planned.
pub trait Sources: Debug + Send + Sync {
    /// The file.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Source>>;
}

/// An open file.
pub trait Source: Read {
    /// How it is now.
    fn stamp(&self) -> io::Result<Stamp>;
}

/// What changes with a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// How many bytes it has.
    pub size_bytes: u64,
    /// When it was written last, where that is kept.
    pub modified: Option<SystemTime>,
}

/// The files of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl Sources for Disk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Source>> {
        Ok(Box::new(File::open(path)?))
    }
}

impl Source for File {
    fn stamp(&self) -> io::Result<Stamp> {
        let metadata = self.metadata()?;
        Ok(Stamp { size_bytes: metadata.len(), modified: metadata.modified().ok() })
    }
}
