//! Why an archive is refused, in words for the person who made it.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::bundle::policy::NameFault;

/// Why an archive was not unpacked. Names of entries are shortened and made harmless for logs.
#[derive(Debug, Error)]
pub enum UnpackError {
    /// The source of the bytes failed, not the bytes.
    #[error("cannot read the bundle")]
    Read(#[source] io::Error),
    /// Neither gzip nor tar.
    #[error(
        "this is not a bundle: it looks like {looks_like}; expected a .tar.gz or a .tar, as tar czf makes"
    )]
    NotABundle {
        /// What its first bytes say.
        looks_like: &'static str,
    },
    /// Gzip around something else.
    #[error(
        "this is not a bundle: it is compressed with gzip, but inside it looks like {looks_like}; expected a tar archive, as tar czf makes"
    )]
    NotATar {
        /// What its first bytes say.
        looks_like: &'static str,
    },
    /// The bytes end too early.
    #[error("the bundle is cut short: it ends in the middle; get it again from where it came")]
    Truncated,
    /// Gzip's own checks failed.
    #[error("the bundle is damaged: its compressed data is wrong; get it again from where it came")]
    Corrupt(#[source] io::Error),
    /// A header that is none.
    #[error("the bundle is damaged: the header after entry {after} is wrong: {why}")]
    BadHeader {
        /// How many entries were read before.
        after: u64,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Something follows the last gzip member.
    #[error(
        "the bundle goes on after its end with bytes that belong to nothing; make it anew, as tar czf does"
    )]
    TrailingData,
    /// Something follows the end of the archive, or more zeros than any tar writes.
    #[error("the archive goes on after its end mark, as joined archives do; make one archive of all files")]
    DataAfterEnd,
    /// Too many things in it.
    #[error(
        "the bundle has more than {limit} entries; pack fewer files, or put them into a zip or jar first"
    )]
    TooManyEntries {
        /// [`super::UnpackLimits::max_entries`].
        limit: u64,
    },
    /// Too much in it.
    #[error("the bundle unpacks to more than {limit} bytes; stage less, or raise the limit")]
    TooManyBytes {
        /// [`super::UnpackLimits::max_bytes`].
        limit: u64,
    },
    /// Next to nothing that unpacks to very much.
    #[error(
        "the bundle unpacks to more than {ratio} times its size, as only a decompression bomb does; compress such a file by itself (gzip) before it is staged"
    )]
    Bomb {
        /// The largest ratio that is accepted.
        ratio: u64,
    },
    /// The names alone take too much memory.
    #[error("the names in the bundle take more than {limit} bytes; use shorter names or fewer files")]
    TooManyNames {
        /// In bytes.
        limit: usize,
    },
    /// A name that leads elsewhere.
    #[error("entry {name} is refused")]
    Name {
        /// Made harmless.
        name: String,
        /// What is wrong with it.
        source: NameFault,
    },
    /// Links, devices and other things that are not files.
    #[error("entry {name} is {what}; a bundle may hold files and folders only{}", hint(.what))]
    Unsupported {
        /// Made harmless.
        name: String,
        /// With its article.
        what: &'static str,
    },
    /// The same name twice.
    #[error("the name {name} is in the bundle twice; give each file a name of its own")]
    Duplicate {
        /// Made harmless.
        name: String,
    },
    /// A file where a folder is needed, or the other way round.
    #[error("{name} is both a file and a folder in the bundle; rename one of them")]
    FileAndFolder {
        /// Made harmless.
        name: String,
    },
    /// A record that describes the next entry is too long to be honest.
    #[error("an extension record of {size_bytes} bytes is refused; at most {limit} are needed for a name")]
    LongRecord {
        /// As claimed.
        size_bytes: u64,
        /// What is accepted.
        limit: u64,
    },
    /// The disk, or its permissions.
    #[error("cannot {action} {}", .path.display())]
    Disk {
        /// A verb.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What to do about links, the one refusal that honest people meet.
fn hint(what: &str) -> &'static str {
    if what.ends_with("link") { ": pack with tar --dereference --hard-dereference" } else { "" }
}

impl UnpackError {
    /// Brings an error of this room through an interface that only knows [`io::Error`].
    pub(super) fn into_io(self) -> io::Error {
        io::Error::other(self)
    }

    /// Takes it out again on the other side; anything else is the source's failure.
    pub(super) fn from_io(error: io::Error) -> UnpackError {
        error.downcast::<UnpackError>().unwrap_or_else(UnpackError::Read)
    }
}
