//! The digest of what is in a bundle, in whatever way it is packed.

use std::io::{ErrorKind, Read as _};

use cloakroom_core::protocol::digest;
use sha2::{Digest as _, Sha256};

use super::pack::{opened, unreadable};
use super::plan::{PackError, PackPlan};
use super::sources::Sources;

const PIECE_BYTES: usize = 256 * 1024;

impl PackPlan {
    /// SHA-256, in hexadecimal digits, of all paths, executable bits and contents. Times do not count, so that it is the same for
    /// each copy of a folder. Reads all files.
    pub fn content_digest(&self, sources: &dyn Sources) -> Result<String, PackError> {
        let (mut all, mut piece) = (Sha256::new(), vec![0; PIECE_BYTES]);
        for file in self.files() {
            let (mut content, mut source) = (Sha256::new(), opened(file, sources)?);
            loop {
                match source.read(&mut piece) {
                    Ok(0) => break,
                    Ok(read) => content.update(&piece[..read]),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(unreadable(&file.path, error)),
                }
            }
            // A path has no zero byte.
            all.update(&file.name);
            all.update([0, u8::from(file.executable)]);
            all.update(content.finalize());
        }
        for folder in self.empty_folders() {
            all.update(folder);
            all.update([0, b'/']);
        }
        Ok(digest::to_hex(&all.finalize().into()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::SystemTime;

    use super::*;
    use crate::bundle::{Disk, PackRules};

    #[test]
    fn the_digest_is_of_paths_bits_and_contents_and_not_of_times() {
        let outer = tempfile::tempdir().unwrap();
        let path = |name: &str| outer.path().join(name);
        let of = || {
            let plan = PackPlan::of(&[outer.path().to_owned()], &PackRules::default()).unwrap();
            plan.content_digest(&Disk).unwrap()
        };
        fs::create_dir(path("d")).unwrap();
        for name in ["a", "d/b"] {
            fs::write(path(name), name).unwrap();
        }
        let first = of();
        fs::File::open(path("a")).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(of(), first);
        let mut all = BTreeSet::from([first]);
        fs::set_permissions(path("a"), Permissions::from_mode(0o755)).unwrap();
        all.insert(of());
        fs::rename(path("a"), path("c")).unwrap();
        all.insert(of());
        fs::write(path("c"), "x").unwrap();
        all.insert(of());
        fs::create_dir(path("e")).unwrap();
        all.insert(of());
        assert_eq!(all.len(), 5);
    }
}
