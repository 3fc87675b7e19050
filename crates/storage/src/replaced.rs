//! A file that is not at its path any more.

use std::path::PathBuf;

/// A file or folder that this process works with is not at its path any more.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "{} was removed, moved or replaced while this server worked with it, so nothing more is acknowledged or deleted, and \
     the server ends: put the data directory back if it was moved, and start the server again; stop it before you put a \
     copy into that place",
    path.display()
)]
pub struct Replaced {
    /// The path.
    pub path: PathBuf,
}
