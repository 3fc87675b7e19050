//! Reads and writes the files that a fetch makes for itself. Other users can write to their folders, so a planted link
//! is never followed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

use super::source::remove;

/// Writes `bytes` to `path` whole or not at all: first to a new file at `draft`, which is then renamed. Neither path is
/// followed if it is a link.
pub(super) fn write_whole(draft: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    remove(draft)?;
    File::create_new(draft)?.write_all(bytes)?;
    fs::rename(draft, path)
}

/// Opens the regular file at `path`. Does not follow a link and does not wait for a pipe; everything else is an error.
pub(super) fn open_regular(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let file = options.custom_flags(flags.cast_signed()).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

/// Reads the regular file at `path`. It is an error if the file has more than `max_bytes`.
pub(super) fn read_regular(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path, OpenOptions::new().read(true))?;
    let mut bytes = Vec::new();
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}
