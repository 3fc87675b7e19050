//! stdout, if what goes there must not be lost.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use anyhow::bail;
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};

/// The device that [`is_stand_in`] looks for.
const NULL: &str = "/dev/null";

/// Fails if stdout was closed when the program began: what is written there would be lost, and no write would fail.
pub fn require() -> anyhow::Result<()> {
    // A stdout that cannot be looked at is a matter for whatever writes to it.
    let is_closed = File::open(NULL).and_then(|null| is_stand_in(io::stdout(), null)).unwrap_or(false);
    if is_closed {
        bail!(
            "stdout is closed, or is a /dev/null that is open for reading as well, which looks the same: what is \
             printed would be lost, so nothing was begun; write it to a file, or discard it with “>/dev/null”"
        );
    }
    Ok(())
}

/// Whether this is what Rust's runtime opens in place of a closed stdout: `/dev/null`, for reading and writing
/// (`library/std/src/sys/pal/unix/mod.rs`). A shell's `>/dev/null` is for writing only.
fn is_stand_in(stdout: impl AsFd, null: impl AsFd) -> io::Result<bool> {
    let (found, null) = (fstat(&stdout)?, fstat(null)?);
    let is_null =
        FileType::from_raw_mode(found.st_mode) == FileType::CharacterDevice && found.st_rdev == null.st_rdev;
    Ok(is_null && fcntl_getfl(stdout)? & OFlags::RWMODE == OFlags::RDWR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_discarded_stdout_is_not_a_closed_one() {
        for (path, is_read, expected) in
            [(NULL, true, true), (NULL, false, false), ("/dev/zero", true, false)]
        {
            let opened = File::options().read(is_read).write(true).open(path).unwrap();
            assert_eq!(is_stand_in(opened, File::open(NULL).unwrap()).unwrap(), expected, "{path} {is_read}");
        }
        let file = tempfile::tempfile().unwrap();
        assert!(!is_stand_in(file, File::open(NULL).unwrap()).unwrap());
    }
}
