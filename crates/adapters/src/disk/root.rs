//! The folder that the store works in. Everything in it is reached through its open handle. If the folder is moved or
//! removed, and another one stands at its path, that other folder is never touched.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::DiskError;
use cloakroom_storage::store::Space;

/// An open folder. The names that its methods take are relative to it.
#[derive(Debug)]
pub(super) struct Root {
    folder: File,
    /// Where it was opened; only for messages.
    path: PathBuf,
}

/// A name in a folder.
pub(super) struct FolderEntry {
    pub(super) name: OsString,
    /// `None` if the file system does not tell.
    pub(super) is_folder: Option<bool>,
}

impl Root {
    pub(super) fn new(folder: File, path: &Path) -> Self {
        Self { folder, path: path.to_owned() }
    }

    /// The handle of the folder itself.
    pub(super) fn folder(&self) -> &File {
        &self.folder
    }

    /// Where the folder was opened.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A name as messages show it.
    pub(super) fn shown(&self, name: &Path) -> PathBuf {
        self.path.join(name)
    }

    fn failed(&self, action: &'static str, name: &Path) -> impl FnOnce(Errno) -> DiskError {
        let path = self.shown(name);
        move |errno| DiskError::io(action, path, errno.into())
    }

    /// Opens a file. A new one gets the permissions that the user's mask leaves.
    pub(super) fn open(&self, name: &Path, flags: OFlags, action: &'static str) -> Result<File, DiskError> {
        let mode = Mode::from_raw_mode(0o666);
        let opened = rustix::fs::openat(&self.folder, name, flags | OFlags::CLOEXEC, mode);
        opened.map(File::from).map_err(self.failed(action, name))
    }

    /// Makes a folder that only this user may read, because bundles are for those who hold a ticket. A folder that is
    /// there already keeps its permissions.
    pub(super) fn make_folder(&self, name: &Path) -> Result<(), DiskError> {
        match rustix::fs::mkdirat(&self.folder, name, Mode::RWXU) {
            Err(Errno::EXIST) if self.is_folder(name) => Ok(()),
            made => made.map_err(self.failed("create", name)),
        }
    }

    /// Whether a folder of that name is there, or a link to one.
    pub(super) fn is_folder(&self, name: &Path) -> bool {
        let found = rustix::fs::statat(&self.folder, name, AtFlags::empty());
        found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_dir())
    }

    /// What is at a name, without following a link; `None` if nothing is.
    pub(super) fn look_at(&self, name: &Path) -> Result<Option<Stat>, DiskError> {
        match rustix::fs::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(None),
            found => found.map(Some).map_err(self.failed("look at", name)),
        }
    }

    pub(super) fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        rustix::fs::renameat(&self.folder, from, &self.folder, to)
            .map_err(self.failed("move into place", from))
    }

    /// Removes a file. Returns `false` if there is none.
    pub(super) fn unlink(&self, name: &Path, action: &'static str) -> Result<bool, DiskError> {
        match rustix::fs::unlinkat(&self.folder, name, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(false),
            removed => removed.map(|()| true).map_err(self.failed(action, name)),
        }
    }

    /// Removes a file durably. It succeeds if there is no such file.
    pub(super) fn remove(&self, name: &Path) -> Result<(), DiskError> {
        if self.unlink(name, "remove")? { self.sync_folder_of(name) } else { Ok(()) }
    }

    /// Makes the names in the folder of `name` survive power loss.
    pub(super) fn sync_folder_of(&self, name: &Path) -> Result<(), DiskError> {
        let folder = name.parent().filter(|parent| !parent.as_os_str().is_empty());
        self.sync_folder(folder.unwrap_or(Path::new(".")))
    }

    fn sync_folder(&self, name: &Path) -> Result<(), DiskError> {
        let folder = self.open(name, OFlags::RDONLY | OFlags::DIRECTORY, "open")?;
        folder.sync_all().map_err(|error| DiskError::io("sync", self.shown(name), error))
    }

    /// What is in a folder, in any order.
    pub(super) fn entries(&self, name: &Path) -> Result<Vec<FolderEntry>, DiskError> {
        let folder = self.open(name, OFlags::RDONLY | OFlags::DIRECTORY, "list")?;
        let mut entries = Vec::new();
        for entry in Dir::new(folder).map_err(self.failed("list", name))? {
            let entry = entry.map_err(self.failed("list", name))?;
            let is_folder = match entry.file_type() {
                FileType::Unknown => None,
                kind => Some(kind.is_dir()),
            };
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                let name = std::os::unix::ffi::OsStringExt::from_vec(name.to_vec());
                entries.push(FolderEntry { name, is_folder });
            }
        }
        Ok(entries)
    }

    /// Space for an unprivileged user: blocks that are kept for root are neither free nor used.
    pub(super) fn space(&self) -> Result<Space, DiskError> {
        let space = rustix::fs::fstatvfs(&self.folder)
            .map_err(|errno| DiskError::io("ask the free space of", &self.path, errno.into()))?;
        let bytes = |blocks: u64| blocks.saturating_mul(space.f_frsize);
        Ok(Space { free: bytes(space.f_bavail), used: bytes(space.f_blocks.saturating_sub(space.f_bfree)) })
    }
}
