//! A file that only keeps disk space in reserve. On a full disk it is removed, so that deletions can be stored.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

use super::StoreError;

/// Enough space for the ledger's log to store some hundred deletions.
const RESERVE_BYTES: usize = 4 << 20;

const NO_LINK: i32 = OFlags::NOFOLLOW.bits().cast_signed();

/// Writes the reserve. If it is there already, only checks that it can be written. The file has real bytes, because not
/// every file system can allocate space without them.
pub(super) fn keep(path: &Path) -> Result<(), StoreError> {
    // A link would make this overwrite another file of the server's user.
    let is_whole = |found: fs::Metadata| found.is_file() && found.len() == RESERVE_BYTES as u64;
    if fs::symlink_metadata(path).is_ok_and(is_whole) {
        let opened = OpenOptions::new().write(true).custom_flags(NO_LINK).open(path);
        return opened.map(drop).map_err(|error| StoreError::io("write the reserve", path, error));
    }
    let written = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .custom_flags(NO_LINK)
        .open(path)
        .and_then(|mut file| file.write_all(&vec![0xc0; RESERVE_BYTES]).and_then(|()| file.sync_data()));
    if written.is_err() {
        // A partial file would look like a reserve without having its space.
        let _ = fs::remove_file(path);
    }
    written.map_err(|error| StoreError::io("write the reserve", path, error))
}

/// Removes the file.
pub(super) fn release(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(StoreError::io("remove the reserve", path, error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_in_place_of_the_reserve_is_not_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("reserve"), folder.path().join("other"));
        // The second file has the size of a whole reserve.
        for content in [b"precious".to_vec(), vec![1; RESERVE_BYTES]] {
            fs::write(&other, &content).unwrap();
            std::os::unix::fs::symlink(&other, &path).unwrap();
            assert!(keep(&path).is_err(), "a link was taken");
            assert!(fs::read(&other).unwrap() == content, "the other file was changed");
            // The failed attempt has removed the link, and the next sweep writes a reserve.
            keep(&path).unwrap();
            assert!(fs::symlink_metadata(&path).unwrap().is_file());
            release(&path).unwrap();
        }
    }
}
