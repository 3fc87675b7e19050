//! The termination message of a container, which `kubectl describe pod` shows.

use std::io::{self, Write as _};
use std::path::Path;

use rustix::fs::{CWD, OFlags};

use crate::bundle::folder::open_regular;
use cloakroom_core::text::harmless_lines;

/// The file from which Kubernetes reads the termination message.
pub const TERMINATION_LOG: &str = "/dev/termination-log";

/// Kubernetes keeps at most this many bytes (`terminationMessagePath` in the API reference).
const MAX_BYTES: usize = 4096;

/// Writes `message` into the regular file at `path`. Outside a container there is no such file, and nothing is written.
/// A failure only goes to the debug log, because the caller still has to log `message`.
pub fn write_termination_log(path: &Path, message: &str) {
    if let Err(error) = write(path, shortened(&harmless_lines(message))) {
        tracing::debug!(%error, path = %path.display(), "the termination log cannot be written");
    }
}

fn write(path: &Path, message: &str) -> io::Result<()> {
    let mut file = open_regular(CWD, path, OFlags::WRONLY)?;
    file.set_len(0)?;
    file.write_all(message.as_bytes())
}

fn shortened(message: &str) -> &str {
    &message[..message.floor_char_boundary(MAX_BYTES)]
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::os::unix::fs::OpenOptionsExt as _;
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_message_is_cut_between_characters() {
        assert_eq!(shortened("short"), "short");
        let long = format!("a{}", "é".repeat(4096));
        assert_eq!(shortened(&long).len(), 4095);
    }

    #[test]
    fn a_file_that_is_not_there_is_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("termination-log");
        write_termination_log(&path, "x");
        assert!(!path.exists());
        std::fs::write(&path, "").unwrap();
        write_termination_log(&path, "last words");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "last words");
    }

    #[test]
    fn a_link_is_not_followed_and_a_pipe_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let [theirs, link, pipe] = ["theirs", "link", "pipe"].map(|name| folder.path().join(name));
        std::fs::write(&theirs, "precious").unwrap();
        std::os::unix::fs::symlink(&theirs, &link).unwrap();
        write_termination_log(&link, "x");
        assert_eq!(std::fs::read_to_string(&theirs).unwrap(), "precious");

        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let (done, written) = std::sync::mpsc::channel();
        let reader =
            OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(&pipe);
        for reader in [None, Some(reader.unwrap())] {
            let (done, pipe) = (done.clone(), pipe.clone());
            std::thread::spawn(move || {
                write_termination_log(&pipe, "x");
                done.send(()).unwrap();
            });
            written.recv_timeout(Duration::from_secs(20)).unwrap();
            if let Some(mut reader) = reader {
                assert_eq!(
                    std::io::Read::read(&mut reader, &mut [0]).unwrap(),
                    0,
                    "nothing is written into a pipe"
                );
            }
        }
    }
}
