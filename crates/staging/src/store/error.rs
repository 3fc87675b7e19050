//! Why a store could not do something.

use std::path::PathBuf;

/// The store could not do it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk, or this user's share of it, is full.
    #[error("the disk of {} is full", path.display())]
    Full {
        /// Which file was being written.
        path: PathBuf,
    },
    /// No further file can be open: this process's limit, the system's, or its share for bundles is reached.
    #[error("too many files are open to open {}", path.display())]
    OutOfDescriptors {
        /// Which file was to be opened.
        path: PathBuf,
    },
    /// The file system takes no changes.
    #[error("cannot {action} {}: its file system is read-only", path.display())]
    ReadOnly {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
    },
    /// Another failure of the file system.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// This process may not use its data directory.
    #[error(transparent)]
    NotPermitted(Box<NotPermitted>),
    /// Another process has the data directory.
    #[error(
        "the data directory {} is in use by another process: one server for one directory; stop the other one, \
         or give this one a --data-dir of its own",
        path.display()
    )]
    Locked {
        /// The data directory.
        path: PathBuf,
    },
    /// A file system on which the ledger could be damaged.
    #[error(
        "the data directory {} is on {kind}, a network file system: the ledger's write-ahead log needs shared \
         memory, which it does not have; use a local or block volume",
        path.display()
    )]
    NetworkFileSystem {
        /// The data directory.
        path: PathBuf,
        /// The file system's name.
        kind: &'static str,
    },
    /// The work was interrupted by the end of the process.
    #[error("the server is stopping")]
    Stopping,
}

/// Who this process is, whose the folder is, and what would help.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot {action} {}: this process runs as user {user} and group {group}, and {} belongs to user {owner} and group \
     {owning_group} with mode {mode:04o}; {}",
    path.display(), found.display(), self.advice()
)]
pub struct NotPermitted {
    /// What was tried.
    pub action: &'static str,
    /// On what.
    pub path: PathBuf,
    /// The user that this process runs as.
    pub user: u32,
    /// Its group.
    pub group: u32,
    /// The path, or what is nearest above it and exists.
    pub found: PathBuf,
    /// Whose that is.
    pub owner: u32,
    /// Of which group.
    pub owning_group: u32,
    /// Its permission bits.
    pub mode: u32,
    /// What the server needs for itself.
    pub data_dir: PathBuf,
    /// Whether this process runs in a pod, as far as the caller knows.
    pub in_a_pod: bool,
    /// What the file system said.
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

impl StoreError {
    /// The same for a process in a pod, which has other means.
    #[must_use]
    pub fn in_a_pod(mut self) -> Self {
        if let Self::NotPermitted(found) = &mut self {
            found.in_a_pod = true;
        }
        self
    }

    /// Says what was tried on what, and tells a full disk from all else.
    pub(super) fn io(action: &'static str, path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        let path = path.into();
        if is_out_of_descriptors(&source) {
            return Self::OutOfDescriptors { path };
        }
        match source.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => Self::Full { path },
            ReadOnlyFilesystem => Self::ReadOnly { action, path },
            _ => Self::Io { action, path, source },
        }
    }
}

/// `EMFILE` and `ENFILE`, for which std has no kind.
fn is_out_of_descriptors(error: &std::io::Error) -> bool {
    let errno = rustix::io::Errno::from_io_error(error);
    errno.is_some_and(|errno| matches!(errno, rustix::io::Errno::MFILE | rustix::io::Errno::NFILE))
}
