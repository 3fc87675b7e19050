//! Events of a fetch, and the report about each source.

use std::fmt;
use std::time::Duration;

use cloakroom_core::size::format_size;
use cloakroom_core::time::format_elapsed;

/// Receives the events of a fetch.
pub trait FetchObserver: Send + Sync + 'static {
    /// An attempt at `what` failed because of `why`, and another one follows. Called once for each new reason.
    fn retrying(&self, what: &str, why: &str);
    /// The bytes of `what` that came so far cannot be used because of `why`. The download starts from the beginning.
    fn starting_over(&self, what: &str, why: &str);
    /// So many bytes of `what` came so far, of `all`. Called for each piece.
    fn progressed(&self, _what: &str, _came: u64, _all: Option<u64>) {}
}

/// The report about one source that is in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceReport {
    /// The source, in words for the user.
    pub what: String,
    pub files: usize,
    /// The number of downloaded bytes; 0 if an earlier run fetched the source.
    pub downloaded_bytes: u64,
    /// How long the download took, extracting included.
    pub elapsed: Duration,
    /// Whether an earlier run had put the source into place.
    pub was_there: bool,
}

/// `the staged jars (resource 4c1a…): 12 files, 240 MiB in 1.2s`.
impl fmt::Display for SourceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = if self.files == 1 { "1 file".to_owned() } else { format!("{} files", self.files) };
        if self.was_there {
            return write!(f, "{}: {files}, in place since an earlier run", self.what);
        }
        let (bytes, elapsed) = (format_size(self.downloaded_bytes), format_elapsed(self.elapsed));
        write!(f, "{}: {files}, {bytes} in {elapsed}", self.what)
    }
}
