//! The stamp of a store on a disk: a file beside the bundles, so that it goes where they go.

use std::io::{Read as _, Write as _};
use std::path::Path;

use rustix::fs::OFlags;

use super::DiskError;
use super::root::Root;
use cloakroom_storage::stamp::Stamp;

const STAMP: &str = "bundles/stamp";
const NEW_STAMP: &str = "bundles/stamp.new";

/// No stamp is longer than this, in bytes.
const LONGEST: u64 = 200;

const ACTION: &str = "read the id of the store in";

/// The stamp in the file; `None` if there is no file.
pub(super) fn read(root: &Root) -> Result<Option<Stamp>, DiskError> {
    let name = Path::new(STAMP);
    if root.look_at(name)?.is_none() {
        return Ok(None);
    }
    let failed = |error| DiskError::io(ACTION, root.shown(name), error);
    let file = root.open(name, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK, ACTION)?;
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).map_err(failed)?;
    text.parse().map(Some).map_err(|error| failed(std::io::Error::other(error)))
}

/// Replaces the stamp `seen`. Returns `false` if there is another one. Only one call may run at a time.
pub(super) fn replace(root: &Root, seen: Option<Stamp>, by: Stamp) -> Result<bool, DiskError> {
    if read(root)? != seen {
        return Ok(false);
    }
    let (name, new) = (Path::new(STAMP), Path::new(NEW_STAMP));
    // A crash may have left one.
    root.unlink(new, "remove")?;
    let mut file = root.open(new, OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY, "create")?;
    let written = writeln!(file, "{by}").and_then(|()| file.sync_all());
    written.map_err(|error| DiskError::io("write", root.shown(new), error))?;
    root.rename(new, name)?;
    root.sync_folder_of(name)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use cloakroom_storage::stamp::Installation;

    use super::*;

    #[test]
    fn a_file_without_a_stamp_is_an_error_and_no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("bundles")).unwrap();
        let root = Root::new(File::open(folder.path()).unwrap(), folder.path());
        let path = folder.path().join(STAMP);
        let random = &mut rand::rng();
        let stamp = Stamp::new(Installation::generate(random), 1, random);
        assert!(replace(&root, None, stamp).unwrap());
        assert_eq!(read(&root).unwrap(), Some(stamp));
        let long = vec![b'0'; 100_000];
        for text in [&b""[..], b"no stamp\n", b"\xff\n", &long] {
            fs::write(&path, text).unwrap();
            assert!(read(&root).is_err() && replace(&root, None, stamp).is_err());
            assert_eq!(fs::read(&path).unwrap(), text, "nothing was changed");
        }
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", &path).unwrap();
        assert!(read(&root).is_err());
    }

    #[test]
    fn a_file_that_a_crash_left_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("bundles")).unwrap();
        let root = Root::new(File::open(folder.path()).unwrap(), folder.path());
        fs::write(folder.path().join(NEW_STAMP), "half").unwrap();
        let random = &mut rand::rng();
        let stamp = Stamp::new(Installation::generate(random), 1, random);
        assert!(replace(&root, None, stamp).unwrap());
        assert_eq!(read(&root).unwrap(), Some(stamp));
    }
}
