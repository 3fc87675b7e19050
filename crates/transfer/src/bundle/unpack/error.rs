//! The reasons for refusing an archive, in words for the person who made it.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::bundle::policy::NameFault;

/// The reason why an archive was not unpacked. Names of entries are shortened, and their control characters escaped.
#[derive(Debug, Error)]
pub enum UnpackError {
    /// Reading the input failed. The bundle itself may be good.
    #[error("cannot read the bundle")]
    Read(#[source] io::Error),
    /// The input is neither gzip nor tar.
    #[error(
        "this is not a bundle: it looks like {file_type}; expected a .tar.gz or a .tar, as tar czf makes"
    )]
    NotABundle {
        /// The file type by the first bytes, with its article.
        file_type: &'static str,
    },
    /// The input is gzip, but its content is not tar.
    #[error(
        "this is not a bundle: it is compressed with gzip, but inside it looks like {file_type}; expected a tar archive, as tar czf makes"
    )]
    NotATar {
        /// The file type by the first bytes, with its article.
        file_type: &'static str,
    },
    /// The input ends too early.
    #[error("the bundle is cut short: it ends in the middle; get it again from where it came")]
    Truncated,
    /// Gzip's own checks failed.
    #[error("the bundle is damaged: its compressed data is wrong; get it again from where it came")]
    Corrupt(#[source] io::Error),
    /// A tar header or an extension record is invalid.
    #[error("the bundle is damaged: the header after entry {after} is wrong: {why}")]
    BadHeader { after: u64, why: &'static str },
    /// Other bytes follow the last gzip member.
    #[error("the bundle has other bytes after its end; make it again, as tar czf does")]
    TrailingData,
    /// Data follows the end mark of the archive, or more zeros than tar programs write.
    #[error("the archive goes on after its end mark, as joined archives do; make one archive of all files")]
    DataAfterEnd,
    /// The archive has too many entries.
    #[error(
        "the bundle has more than {limit} entries; pack fewer files, or put them into a zip or jar first"
    )]
    TooManyEntries {
        /// [`super::UnpackLimits::max_entries`].
        limit: u64,
    },
    /// The archive has too many bytes.
    #[error("the bundle unpacks to more than {limit} bytes; stage less, or raise the limit")]
    TooManyBytes {
        /// [`super::UnpackLimits::max_bytes`].
        limit: u64,
    },
    /// A small input unpacks to very many bytes.
    #[error(
        "the bundle unpacks to more than {ratio} times its size, as only a decompression bomb does; compress such a file by itself (gzip) before it is staged"
    )]
    Bomb { ratio: u64 },
    /// The names take too much memory.
    #[error("the names in the bundle take more than {limit} bytes; use shorter names or fewer files")]
    TooManyNames { limit: usize },
    /// A name leads out of the target folder, or breaks another rule for names.
    #[error("entry {name} is refused")]
    Name {
        /// The refused name, with its control characters escaped.
        name: String,
        source: NameFault,
    },
    /// The entry is a link, a device or another type that is neither file nor folder.
    #[error("entry {name} is {what}; a bundle may hold files and folders only{}", hint(.what))]
    Unsupported {
        /// The entry's name, with its control characters escaped.
        name: String,
        /// The entry's type, with its article.
        what: &'static str,
    },
    /// Two entries have the same name.
    #[error("the name {name} is in the bundle twice; give each file a name of its own")]
    Duplicate {
        /// The name, with its control characters escaped.
        name: String,
    },
    /// One name is both a file and a folder.
    #[error("{name} is both a file and a folder in the bundle; rename one of them")]
    FileAndFolder {
        /// The name, with its control characters escaped.
        name: String,
    },
    /// A record that describes the next entry is longer than the limit.
    #[error(
        "an extension record of {size_bytes} bytes is refused; at most {limit} are needed for a name: pack with tar \
         --no-xattrs --no-acls"
    )]
    LongRecord { size_bytes: u64, limit: u64 },
    /// The operating system refused to write.
    #[error("cannot {action} {}", .path.display())]
    Disk {
        /// The refused operation, as a verb: the message is “cannot {action} {path}”.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

/// Advice about types that normal tar programs write.
fn hint(what: &str) -> &'static str {
    if what.ends_with("link") {
        ": pack with tar --dereference --hard-dereference"
    } else if what.starts_with("a sparse") {
        ": pack without --sparse"
    } else {
        ": make it again, as tar czf does"
    }
}

impl UnpackError {
    /// Wraps the error in an [`io::Error`], to pass it through [`io::Read`].
    pub(super) fn into_io(self) -> io::Error {
        io::Error::other(self)
    }

    /// Unwraps an error from [`UnpackError::into_io`]. Any other error is a failure of the input.
    pub(super) fn from_io(error: io::Error) -> UnpackError {
        error.downcast::<UnpackError>().unwrap_or_else(UnpackError::Read)
    }
}
