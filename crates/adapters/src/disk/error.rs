//! The errors of a disk, and their kinds.

use std::path::PathBuf;

use crate::inodes;
use cloakroom_storage::Replaced;
use cloakroom_storage::store::StoreError;

/// The disk could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The disk, or this user's share of it, is full.
    #[error("the disk of {} is full", path.display())]
    Full { path: PathBuf },
    /// The file system can hold no further file, whatever its free room is.
    #[error("the file system of {} has no inode left for another file", path.display())]
    OutOfInodes { path: PathBuf },
    /// No more files can be open: the limit of this process, of the system, or of open bundles is reached.
    #[error("too many files are open to open {}", path.display())]
    OutOfDescriptors { path: PathBuf },
    /// The file system is read-only.
    #[error("cannot {action} {}: its file system is read-only", path.display())]
    ReadOnly { action: &'static str, path: PathBuf },
    /// Another failure of the file system.
    #[error("cannot {action} {}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        /// The error of the file system.
        #[source]
        source: std::io::Error,
    },
    /// There is no such bundle.
    #[error("there is no {}", path.display())]
    NoBundle { path: PathBuf },
    /// A bundle has another size than its row says.
    #[error("{} has {size_bytes} bytes, and not {expected}", path.display())]
    OtherSize { path: PathBuf, size_bytes: u64, expected: u64 },
    /// This process may not use its data directory.
    #[error(transparent)]
    NotPermitted(Box<NotPermitted>),
    /// Another process holds the data directory.
    #[error(
        "the data directory {} is in use by another process: one server for one directory; stop the other one, \
         or give this one a --data-dir of its own",
        path.display()
    )]
    Locked { path: PathBuf },
    /// The data directory is on a file system on which the ledger could be damaged.
    #[error(
        "the data directory {} is on {kind}, a network file system: the ledger's write-ahead log needs shared \
         memory, which it does not have; use a local or block volume",
        path.display()
    )]
    NetworkFileSystem { path: PathBuf, kind: &'static str },
    /// The data directory is not at its path any more.
    #[error(transparent)]
    Replaced(#[from] Replaced),
    /// So many calls to the disk do not return that no further one is made.
    #[error("the server's disk does not answer: many calls have waited for it for more than 10 seconds")]
    Stuck,
    /// The process is ending, so the work was interrupted.
    #[error("the server is stopping")]
    Stopping,
}

/// The user of this process, the owner of the folder, and what would help.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot {action} {}: this process runs as user {user} and group {group}, and {} belongs to user {owner} and group \
     {owning_group} with mode {mode:04o}; {}",
    path.display(), found.display(), self.advice()
)]
pub struct NotPermitted {
    /// What was tried, as in "cannot create".
    pub action: &'static str,
    /// The file or folder.
    pub path: PathBuf,
    /// The user that this process runs as.
    pub user: u32,
    /// The group that this process runs as.
    pub group: u32,
    /// The path, or the nearest folder above it that exists.
    pub found: PathBuf,
    /// The user that owns it.
    pub owner: u32,
    pub owning_group: u32,
    /// The permission bits of the folder that was found.
    pub mode: u32,
    /// The data directory, which the server needs for itself.
    pub data_dir: PathBuf,
    /// Whether this process runs in a pod; the caller sets it.
    pub in_a_pod: bool,
    /// The error of the file system.
    #[source]
    pub source: std::io::Error,
}

impl NotPermitted {
    fn advice(&self) -> String {
        let Self { user, group, .. } = self;
        let data = self.data_dir.display();
        let command = format!("`chown -R {user}:{group} {data}`");
        if self.in_a_pod {
            format!(
                "give {data} to this user by `fsGroup: {group}` in the pod's securityContext, or on volumes that do not support \
                 that by an init-container that runs {command}"
            )
        } else {
            format!("give {data} to this user by {command}, or name another folder by --data-dir")
        }
    }
}

impl DiskError {
    /// The same error for a process in a pod, where other advice helps.
    pub fn in_a_pod(mut self) -> Self {
        if let Self::NotPermitted(found) = &mut self {
            found.in_a_pod = true;
        }
        self
    }

    /// Makes an error of what was tried on which path, and tells a full disk, a read-only one and too many open files
    /// apart.
    pub(super) fn io(action: &'static str, path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        let path = path.into();
        if is_out_of_descriptors(&source) {
            return Self::OutOfDescriptors { path };
        }
        match source.kind() {
            StorageFull if inodes::are_used_up(&path) => Self::OutOfInodes { path },
            StorageFull | QuotaExceeded | FileTooLarge => Self::Full { path },
            ReadOnlyFilesystem => Self::ReadOnly { action, path },
            _ => Self::Io { action, path, source },
        }
    }
}

impl From<DiskError> for StoreError {
    fn from(error: DiskError) -> Self {
        match error {
            DiskError::Full { .. } => Self::Full { what: "the disk is full", source: error.into() },
            DiskError::OutOfInodes { .. } => Self::Full {
                what: "the disk's file system has no inode left for another file",
                source: error.into(),
            },
            DiskError::OutOfDescriptors { .. } => Self::Throttled(error.into()),
            // Other changes would fail as well.
            DiskError::ReadOnly { .. } | DiskError::Stuck => Self::Unavailable(error.into()),
            DiskError::Io { ref source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
                Self::Denied(error.into())
            }
            DiskError::NoBundle { .. } | DiskError::OtherSize { .. } => Self::Missing(error.into()),
            DiskError::Replaced(replaced) => Self::Replaced(replaced),
            DiskError::Stopping => Self::Stopping,
            DiskError::Io { .. }
            | DiskError::NotPermitted(_)
            | DiskError::Locked { .. }
            | DiskError::NetworkFileSystem { .. } => Self::Fault(error.into()),
        }
    }
}

/// `EMFILE` and `ENFILE`. The standard library has no error kind for them.
fn is_out_of_descriptors(error: &std::io::Error) -> bool {
    let errno = rustix::io::Errno::from_io_error(error);
    errno.is_some_and(|errno| matches!(errno, rustix::io::Errno::MFILE | rustix::io::Errno::NFILE))
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn failures_of_the_disk_have_the_kinds_of_a_store() {
        let of = |errno: Errno| StoreError::from(DiskError::io("remove", "bundle", errno.into()));
        assert!(matches!(of(Errno::PERM), StoreError::Denied(_)));
        assert!(matches!(of(Errno::ACCESS), StoreError::Denied(_)));
        assert!(matches!(of(Errno::ROFS), StoreError::Unavailable(_)));
        assert!(matches!(of(Errno::MFILE), StoreError::Throttled(_)));
        assert!(matches!(of(Errno::DQUOT), StoreError::Full { .. }));
        assert!(matches!(of(Errno::IO), StoreError::Fault(_)));
    }
}
