//! The data directory: its layout, its lock, and the file systems that it must not be on.

use std::fs::{DirBuilder, File, TryLockError};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use rustix::fs::{Access, AtFlags};
use rustix::io::Errno;

use super::calls::DiskCalls;
use super::root::Root;
use super::{DiskError, NotPermitted, sync_folder};
use crate::place::Place;
use cloakroom_core::resource::BlobKey;

/// The folder of uploads in flight.
pub(super) const INCOMING: &str = "incoming";

/// The folder of the committed blobs.
pub(super) const BUNDLES: &str = "bundles";

/// The database of the ledger.
const LEDGER: &str = "ledger.db";

/// The database that is made from a bucket at each start.
const CACHE: &str = "ledger-of-the-bucket.db";

/// The file that keeps space in reserve.
pub(super) const RESERVE: &str = "reserve";

/// A data directory that this process holds exclusively until the last clone is dropped or the process ends.
#[derive(Debug, Clone)]
pub struct DataDirectory {
    /// The folder is locked itself, because a file in it can be removed.
    root: Arc<Root>,
    /// Those that the store keeps in it.
    folders: &'static [&'static str],
    place: Place,
    calls: DiskCalls,
}

impl DataDirectory {
    /// Creates the directory if it is missing, refuses network file systems, and takes the lock.
    pub fn open(path: &Path) -> Result<Self, DiskError> {
        Self::take(path, &[INCOMING, BUNDLES]).map_err(|error| explained(error, path))
    }

    /// The same for a directory without bundles.
    pub fn open_for_ledger(path: &Path) -> Result<Self, DiskError> {
        Self::take(path, &[]).map_err(|error| explained(error, path))
    }

    fn take(path: &Path, folders: &'static [&'static str]) -> Result<Self, DiskError> {
        create_durably(path)?;
        refuse_network_file_system(path)?;
        let root = Root::new(lock_folder(path)?, path);
        for folder in folders {
            root.make_folder(Path::new(folder))?;
        }
        root.sync_folder_of(Path::new(LEDGER))?;
        may_write(&root)?;
        let place = Place::default();
        let watched = root.folder().try_clone().and_then(|handle| place.watch(path, handle));
        watched.map_err(|error| DiskError::io("look at", path, error))?;
        Ok(Self { root: Arc::new(root), folders, place, calls: DiskCalls::default() })
    }

    /// Returns the error that [`Self::open`] would return, as far as that can be known without a change to the disk.
    pub fn check(path: &Path) -> Result<(), DiskError> {
        Self::look_at(path).map_err(|error| explained(error, path))
    }

    fn look_at(path: &Path) -> Result<(), DiskError> {
        let Some(present) = path.ancestors().map(or_here).find(|ancestor| ancestor.exists()) else {
            return Ok(());
        };
        if !present.is_dir() {
            let error = std::io::ErrorKind::NotADirectory.into();
            return Err(DiskError::io("make a data directory of", present, error));
        }
        refuse_network_file_system(present)?;
        rustix::fs::access(present, Access::WRITE_OK | Access::EXEC_OK)
            .map_err(|errno| DiskError::io("write to", present, errno.into()))?;
        if !path.exists() {
            return Ok(());
        }
        may_write(&Root::new(lock_folder(path)?, path))
    }

    /// Where the directory was opened.
    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// The path of the ledger's database.
    pub fn ledger(&self) -> PathBuf {
        self.path().join(LEDGER)
    }

    /// The path of the database of a server whose ledger is in a bucket.
    pub fn cache(&self) -> PathBuf {
        self.path().join(CACHE)
    }

    /// Tells whether the directory is still at its path. The ledger adds its files.
    pub fn place(&self) -> &Place {
        &self.place
    }

    pub(super) fn root(&self) -> &Arc<Root> {
        &self.root
    }

    /// The calls to the disk that it is on.
    pub(super) fn calls(&self) -> &DiskCalls {
        &self.calls
    }

    /// Makes the folders of the store again if they were removed.
    pub(super) fn make_again(&self) -> Result<(), DiskError> {
        for folder in self.folders.iter().map(Path::new) {
            if !self.root.is_folder(folder) {
                tracing::warn!(
                    path = %self.root.shown(folder).display(),
                    "a folder of the data directory was removed: it is made again; what was in it is lost"
                );
                self.root.make_folder(folder)?;
                self.root.sync_folder_of(folder)?;
            }
        }
        Ok(())
    }
}

/// Whether this process may write to all that is there: a restored copy, or a run as another user, may have left files
/// that belong to another user.
fn may_write(root: &Root) -> Result<(), DiskError> {
    const OF_FOLDERS: Access = Access::READ_OK.union(Access::WRITE_OK).union(Access::EXEC_OK);
    const OF_FILES: Access = Access::READ_OK.union(Access::WRITE_OK);
    let may = |name: &Path, access| match rustix::fs::accessat(root.folder(), name, access, AtFlags::empty())
    {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(DiskError::io("write to", root.shown(name), errno.into())),
    };
    for name in [LEDGER, CACHE] {
        for end in ["", "-wal", "-shm"] {
            may(Path::new(&format!("{name}{end}")), OF_FILES)?;
        }
    }
    let bundles = Path::new(BUNDLES);
    for folder in [Path::new(INCOMING), bundles] {
        may(folder, OF_FOLDERS)?;
    }
    if root.is_folder(bundles) {
        for shard in root.entries(bundles)?.into_iter().filter(|entry| entry.is_folder == Some(true)) {
            may(&bundles.join(shard.name), OF_FOLDERS)?;
        }
    }
    Ok(())
}

/// Where the bytes of an upload in flight are.
pub(super) fn incoming(key: BlobKey) -> PathBuf {
    Path::new(INCOMING).join(key.to_string())
}

/// Where the bytes of a committed blob are.
pub(super) fn bundle(key: BlobKey) -> PathBuf {
    Path::new(BUNDLES).join(key.resource().shard()).join(key.to_string())
}

/// Creates the folder and its missing parents. When this returns, the names of new folders survive power loss.
fn create_durably(path: &Path) -> Result<(), DiskError> {
    let missing = path.ancestors().take_while(|folder| !or_here(folder).exists()).count();
    // Only the server's user may read bundles, because they are for those who hold a ticket.
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|error| DiskError::io("create the data directory", path, error))?;
    path.ancestors().skip(1).take(missing).try_for_each(|parent| sync_folder(or_here(parent)))
}

/// The parent of a relative name is the empty path, which means the current folder.
pub(super) fn or_here(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

fn lock_folder(path: &Path) -> Result<File, DiskError> {
    let folder = File::open(path).map_err(|error| DiskError::io("open", path, error))?;
    match folder.try_lock() {
        Ok(()) => Ok(folder),
        Err(TryLockError::WouldBlock) => Err(DiskError::Locked { path: path.to_owned() }),
        Err(TryLockError::Error(error)) => Err(DiskError::io("lock", path, error)),
    }
}

/// Refuses network file systems, because the write-ahead log of SQLite does not work over a network
/// (<https://www.sqlite.org/wal.html#overview>). The numbers are from statfs(2).
fn refuse_network_file_system(path: &Path) -> Result<(), DiskError> {
    const NETWORK: [(i64, &str); 6] = [
        (0x6969, "NFS"),
        (0xff53_4d42, "CIFS"),
        (0xfe53_4d42, "SMB2"),
        (0x517b, "SMB"),
        (0x564c, "NCP"),
        (0x0102_1997, "9P"),
    ];
    let found = rustix::fs::statfs(path)
        .map_err(|errno| DiskError::io("ask the file system of", path, errno.into()))?;
    match NETWORK.iter().find(|(number, _)| *number == found.f_type) {
        Some((_, kind)) => Err(DiskError::NetworkFileSystem { path: path.to_owned(), kind }),
        None => Ok(()),
    }
}

/// Adds the user of this process and the owner of the folder to an error of missing permission. Other errors stay as
/// they are.
pub(super) fn explained(error: DiskError, data_dir: &Path) -> DiskError {
    match error {
        DiskError::Io { action, path, source } if source.kind() == io::ErrorKind::PermissionDenied => {
            match nearest(&path) {
                Some((found, metadata)) => DiskError::NotPermitted(Box::new(NotPermitted {
                    action,
                    path,
                    user: rustix::process::geteuid().as_raw(),
                    group: rustix::process::getegid().as_raw(),
                    found,
                    owner: metadata.uid(),
                    owning_group: metadata.gid(),
                    mode: metadata.mode() & 0o7777,
                    data_dir: data_dir.to_owned(),
                    in_a_pod: false,
                    source,
                })),
                None => DiskError::Io { action, path, source },
            }
        }
        other => other,
    }
}

/// The path, or the nearest folder above it whose metadata can be read.
fn nearest(path: &Path) -> Option<(PathBuf, fs::Metadata)> {
    path.ancestors().map(or_here).find_map(|path| Some((path.to_owned(), fs::metadata(path).ok()?)))
}
