//! The last words of a container, which `kubectl describe pod` shows.

use std::path::Path;

/// Where Kubernetes reads them.
pub const TERMINATION_LOG: &str = "/dev/termination-log";

/// Kubernetes keeps no more (`terminationMessagePath` in the API reference).
const MAX_BYTES: usize = 4096;

/// Writes `message` into the file at `path`, if there is one: outside a container there is none, and that the
/// last words were lost must not hide them from the log.
pub fn write_termination_log(path: &Path, message: &str) {
    if path.exists()
        && let Err(error) = std::fs::write(path, shortened(message))
    {
        tracing::debug!(%error, path = %path.display(), "the termination log cannot be written");
    }
}

fn shortened(message: &str) -> &str {
    &message[..message.floor_char_boundary(MAX_BYTES)]
}

#[cfg(test)]
mod tests {
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
}
