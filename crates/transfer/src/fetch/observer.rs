//! What a fetch tells while it runs.

use std::fmt;
use std::time::Duration;

use cloakroom_core::size::format_size;
use cloakroom_core::time::format_duration;

/// Hears how a fetch gets on.
pub trait FetchObserver: Send + Sync + 'static {
    /// An attempt at `what` failed because of `why`; the next one follows. Told once for each new reason.
    fn retrying(&self, what: &str, why: &str);
    /// What came of `what` so far is worth nothing, because of `why`: it is downloaded from the beginning.
    fn starting_over(&self, what: &str, why: &str);
}

/// One source that is in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceReport {
    /// What it is to the user.
    pub what: String,
    /// How many files it brought.
    pub files: usize,
    /// How many bytes were downloaded.
    pub downloaded_bytes: u64,
    /// How long that took.
    pub elapsed: Duration,
    /// An earlier run had put it into place already.
    pub was_there: bool,
}

/// `the staged jars (resource 4c1a…): 12 files, 240 MiB in 1.2s`.
impl fmt::Display for SourceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = if self.files == 1 { "1 file".to_owned() } else { format!("{} files", self.files) };
        if self.was_there {
            return write!(f, "{}: {files}, in place since an earlier run", self.what);
        }
        let elapsed = Duration::from_millis(u64::try_from(self.elapsed.as_millis()).unwrap_or(u64::MAX));
        let (bytes, elapsed) = (format_size(self.downloaded_bytes), format_duration(elapsed));
        write!(f, "{}: {files}, {bytes} in {elapsed}", self.what)
    }
}
