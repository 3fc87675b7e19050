//! A file that only keeps disk space in reserve. On a full disk it is removed, so that deletions can be stored.

use std::io::Write as _;
use std::path::Path;

use rustix::fs::{FileType, OFlags};

use super::DiskError;
use super::directory::RESERVE;
use super::root::Root;

/// Enough space for the ledger's log to store some hundred deletions.
const RESERVE_BYTES: usize = 4 << 20;

const ACTION: &str = "write the reserve";

/// Writes the reserve. If it is there already, only checks that it can be written. The file has real bytes, because not
/// every file system can allocate space without them.
pub(super) fn keep(root: &Root) -> Result<(), DiskError> {
    let name = Path::new(RESERVE);
    // A link would make this overwrite another file of the server's user, and a pipe would not open.
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let is_whole = root.look_at(name)?.is_some_and(|found| {
        FileType::from_raw_mode(found.st_mode).is_file()
            && u64::try_from(found.st_size).is_ok_and(|size| size == RESERVE_BYTES as u64)
    });
    if is_whole {
        return root.open(name, flags, ACTION).map(drop);
    }
    let written = root.open(name, flags | OFlags::CREATE | OFlags::TRUNC, ACTION).and_then(|mut file| {
        let written = file.write_all(&vec![0xc0; RESERVE_BYTES]).and_then(|()| file.sync_data());
        written.map_err(|error| DiskError::io(ACTION, root.shown(name), error))
    });
    if written.is_err() {
        // A partial file would look like a reserve without having its space.
        let _ = release(root);
    }
    written
}

/// Removes the file.
pub(super) fn release(root: &Root) -> Result<(), DiskError> {
    root.unlink(Path::new(RESERVE), "remove the reserve").map(drop)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    #[test]
    fn a_link_in_place_of_the_reserve_is_not_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(File::open(folder.path()).unwrap(), folder.path());
        let (path, other) = (folder.path().join("reserve"), folder.path().join("other"));
        // The second file has the size of a whole reserve.
        for content in [b"precious".to_vec(), vec![1; RESERVE_BYTES]] {
            fs::write(&other, &content).unwrap();
            std::os::unix::fs::symlink(&other, &path).unwrap();
            assert!(keep(&root).is_err(), "a link was taken");
            assert!(fs::read(&other).unwrap() == content, "the other file was changed");
            // The failed attempt has removed the link, and the next sweep writes a reserve.
            keep(&root).unwrap();
            assert!(fs::symlink_metadata(&path).unwrap().is_file());
            release(&root).unwrap();
        }
    }
}
