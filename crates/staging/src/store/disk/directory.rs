//! The data directory: its layout, its lock, and the file systems that it must not be on.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use super::permission::explained;
use super::{StoreError, sync_folder};
use cloakroom_core::resource::BlobKey;

/// A data directory that this process holds exclusively until the value is dropped or the process ends.
#[derive(Debug)]
pub struct DataDirectory {
    path: PathBuf,
    /// The folder itself, because a file in it can be removed; and the file `lock`, because earlier versions lock only
    /// that file.
    _locks: [File; 2],
}

impl DataDirectory {
    /// Creates the directory if it is missing, refuses network file systems, and takes the lock.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::take(path).map_err(|error| explained(error, path))
    }

    fn take(path: &Path) -> Result<Self, StoreError> {
        create_durably(path)?;
        refuse_network_file_system(path)?;
        let directory =
            Self { path: path.to_owned(), _locks: [lock_folder(path)?, lock(&path.join("lock"))?] };
        for folder in [directory.incoming_folder(), directory.bundles_folder()] {
            create_private(&folder).map_err(|error| StoreError::io("create", &folder, error))?;
        }
        sync_folder(path)?;
        Ok(directory)
    }

    /// Returns the error that [`Self::open`] would return, as far as that can be known without a change to the disk.
    pub fn check(path: &Path) -> Result<(), StoreError> {
        Self::look_at(path).map_err(|error| explained(error, path))
    }

    fn look_at(path: &Path) -> Result<(), StoreError> {
        let Some(present) = path.ancestors().map(or_here).find(|ancestor| ancestor.exists()) else {
            return Ok(());
        };
        if !present.is_dir() {
            let error = std::io::ErrorKind::NotADirectory.into();
            return Err(StoreError::io("make a data directory of", present, error));
        }
        refuse_network_file_system(present)?;
        rustix::fs::access(present, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK)
            .map_err(|errno| StoreError::io("write to", present, errno.into()))?;
        if path.exists() {
            lock_folder(path)?;
        }
        let lock_file = path.join("lock");
        if lock_file.exists() { lock(&lock_file).map(drop) } else { Ok(()) }
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of the ledger's database.
    pub fn ledger(&self) -> PathBuf {
        self.path.join("ledger.db")
    }

    pub(super) fn incoming_folder(&self) -> PathBuf {
        self.path.join("incoming")
    }

    pub(super) fn bundles_folder(&self) -> PathBuf {
        self.path.join("bundles")
    }

    pub(super) fn incoming(&self, key: BlobKey) -> PathBuf {
        self.incoming_folder().join(key.to_string())
    }

    pub(super) fn bundle(&self, key: BlobKey) -> PathBuf {
        self.bundles_folder().join(key.resource().shard()).join(key.to_string())
    }

    pub(super) fn reserve(&self) -> PathBuf {
        self.path.join("reserve")
    }
}

/// Creates the folder and its missing parents. When this returns, the names of new folders survive power loss.
fn create_durably(path: &Path) -> Result<(), StoreError> {
    let missing = path.ancestors().take_while(|folder| !or_here(folder).exists()).count();
    create_private(path).map_err(|error| StoreError::io("create the data directory", path, error))?;
    path.ancestors().skip(1).take(missing).try_for_each(|parent| sync_folder(or_here(parent)))
}

/// Only the server's user may read bundles, because they are for those who hold a ticket. An existing folder keeps its
/// mode.
fn create_private(folder: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// The parent of a relative name is the empty path, which means the current folder.
pub(super) fn or_here(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

fn lock_folder(path: &Path) -> Result<File, StoreError> {
    let folder = File::open(path).map_err(|error| StoreError::io("open", path, error))?;
    take_lock(folder, path, path)
}

fn lock(path: &Path) -> Result<File, StoreError> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(|error| StoreError::io("open", path, error))?;
    take_lock(file, path, path.parent().unwrap_or(path))
}

fn take_lock(file: File, path: &Path, directory: &Path) -> Result<File, StoreError> {
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::Locked { path: directory.to_owned() }),
        Err(TryLockError::Error(error)) => Err(StoreError::io("lock", path, error)),
    }
}

/// Refuses network file systems, because the write-ahead log of SQLite does not work over a network
/// (<https://www.sqlite.org/wal.html#overview>). The numbers are from statfs(2).
fn refuse_network_file_system(path: &Path) -> Result<(), StoreError> {
    const NETWORK: [(i64, &str); 6] = [
        (0x6969, "NFS"),
        (0xff53_4d42, "CIFS"),
        (0xfe53_4d42, "SMB2"),
        (0x517b, "SMB"),
        (0x564c, "NCP"),
        (0x0102_1997, "9P"),
    ];
    let found = rustix::fs::statfs(path)
        .map_err(|errno| StoreError::io("ask the file system of", path, errno.into()))?;
    match NETWORK.iter().find(|(number, _)| *number == found.f_type) {
        Some((_, kind)) => Err(StoreError::NetworkFileSystem { path: path.to_owned(), kind }),
        None => Ok(()),
    }
}
