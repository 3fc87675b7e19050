//! Where the ticket goes: to stdout, or to a file that only its owner may read.

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tempfile::NamedTempFile;

use crate::commands::{refuse, stdout};

/// A place that can be written to. It is opened before anything is staged.
pub enum TicketOutput {
    Stdout,
    /// It is not asked for.
    Nowhere,
    /// The file gets this name when it has all of its content. Until then an earlier one stays.
    File(NamedTempFile, PathBuf),
}

impl TicketOutput {
    /// The file of `--ticket-to`. Without one it is stdout, unless that gets something else.
    pub fn open(path: Option<&Path>, is_stdout_taken: bool) -> anyhow::Result<Self> {
        if path.is_none() || is_stdout_taken {
            stdout::require()?;
        }
        let Some(path) = path else {
            return Ok(if is_stdout_taken { Self::Nowhere } else { Self::Stdout });
        };
        let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        // A device, a pipe or a link would be replaced by the file.
        let is_other = path.symlink_metadata().is_ok_and(|found| !found.is_file());
        let file = if path.is_dir() {
            Err(ErrorKind::IsADirectory)
        } else if is_other {
            refuse!(
                "--ticket-to names {}, which is no file: name a new file, or leave it out for stdout",
                path.display()
            );
        } else {
            // The whole error has the name that the file has until then, which says nothing to a user.
            NamedTempFile::new_in(folder).map_err(|error| error.kind())
        };
        let cannot = || format!("--ticket-to names {}, which cannot be written", path.display());
        let file = file.map_err(io::Error::from).with_context(cannot)?;
        Ok(Self::File(file, path.to_owned()))
    }

    /// Writes the line of the ticket.
    pub fn write(self, ticket: &str) -> io::Result<()> {
        match self {
            Self::Nowhere => Ok(()),
            Self::Stdout => {
                let mut stdout = io::stdout().lock();
                writeln!(stdout, "{ticket}").and_then(|()| stdout.flush())
            }
            Self::File(mut file, path) => {
                writeln!(file, "{ticket}")?;
                file.persist(path).map(drop).map_err(|error| error.error)
            }
        }
    }
}

/// The end of a message: “the ticket cannot be …”.
impl fmt::Display for TicketOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdout | Self::Nowhere => f.write_str("printed on stdout"),
            Self::File(_, path) => write!(f, "written to {}", path.display()),
        }
    }
}
