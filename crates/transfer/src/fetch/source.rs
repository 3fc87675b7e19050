//! Fetches one source from its address into its hidden folder.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::error::SourceCause;
use super::observer::FetchObserver;
use super::plan::{Origin, Source};
use super::resume::{Ended, download};
use super::source_retries::SourceRetries;
use super::stream::{PieceReader, bridge};
use crate::bundle::{Folder, UnpackLimits, UnpackedFile, UnpackedTree, unpack};
use crate::client::{DownloadAnswer, HttpClient, RetryPolicy};
use crate::modes;
use cloakroom_core::retry::Backoff;
use cloakroom_core::size::format_size;

/// All users may read the file of a remote source, because Spark's images run as user 185.
const FILE_MODE: u32 = 0o644;

/// The longest `Retry-After` that a pod obeys for one attempt.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(30);

/// The limits of a fetch.
#[derive(Debug, Clone, Copy)]
pub struct FetchOptions {
    /// The time for all sources together.
    pub timeout: Duration,
    /// The limits of each bundle or file.
    pub limits: UnpackLimits,
    /// The waits between attempts.
    pub backoff: Backoff,
}

impl Default for FetchOptions {
    fn default() -> Self {
        let backoff = Backoff { longest_asked: LONGEST_RETRY_AFTER, ..RetryPolicy::default().backoff };
        Self { timeout: Duration::from_mins(5), limits: UnpackLimits::default(), backoff }
    }
}

/// What all sources of a fetch share.
pub(super) struct Tools<'a> {
    pub http: &'a HttpClient,
    pub options: &'a FetchOptions,
    pub observer: Arc<dyn FetchObserver>,
    /// Tracks the extracting threads, which outlive the futures that started them.
    pub threads: TaskTracker,
    pub deadline: Instant,
}

/// A source whose files are all in its hidden folder.
#[derive(Debug)]
pub(super) struct Fetched {
    pub folder: Folder,
    pub tree: UnpackedTree,
    pub sha256: [u8; 32],
    pub downloaded_bytes: u64,
    pub elapsed: Duration,
}

/// Fetches `source` into its hidden folder in `target` before the deadline.
pub(super) async fn fetch(
    source: &Source,
    target: &Arc<Folder>,
    tools: &Tools<'_>,
) -> Result<Fetched, SourceCause> {
    let retries = SourceRetries::new(source.what(), tools.options.backoff, Arc::clone(&tools.observer));
    match tokio::time::timeout_at(tools.deadline, attempts(source, target, tools, &retries)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(retries.time_up(tools.options.timeout)),
    }
}

/// Tries until one attempt succeeds. Each attempt extracts one representation from its beginning to its end.
async fn attempts(
    source: &Source,
    target: &Arc<Folder>,
    tools: &Tools<'_>,
    retries: &SourceRetries,
) -> Result<Fetched, SourceCause> {
    let started = Instant::now();
    let mut first: Option<Box<DownloadAnswer>> = None;
    loop {
        let (sink, reader) = bridge();
        let extracting = extract(source, Arc::clone(target), reader, tools);
        let ended = download(source, tools.http, retries, first.take(), &sink).await;
        drop(sink);
        let extracted = extracting.await.unwrap_or(Err(SourceCause::Lost));
        match ended? {
            Ended::Complete { sha256, size_bytes } => {
                let (elapsed, (folder, tree)) = (started.elapsed(), extracted?);
                return Ok(Fetched { folder, tree, sha256, downloaded_bytes: size_bytes, elapsed });
            }
            Ended::ReaderStopped => return Err(extracted.err().unwrap_or(SourceCause::Lost)),
            Ended::StartOver { why, next } => {
                retries.start_over(why);
                first = next;
            }
        }
    }
}

fn extract(
    source: &Source,
    target: Arc<Folder>,
    mut reader: PieceReader,
    tools: &Tools<'_>,
) -> JoinHandle<Result<(Folder, UnpackedTree), SourceCause>> {
    let limits = tools.options.limits;
    let hidden = source.hidden();
    let remote_name = match &source.origin {
        Origin::Staged { .. } => None,
        Origin::Remote(file) => Some(file.name.clone()),
    };
    tools.threads.spawn_blocking(move || {
        // What an interrupted run left there is removed first.
        let disk = |source| SourceCause::Disk { path: target.path().join(&hidden), source };
        let folder = target.make_empty(&hidden).map_err(disk)?;
        let tree = match remote_name {
            None => extract_bundle(&mut reader, &folder, &limits)?,
            Some(name) => {
                let file = save(&mut reader, &folder, &name, limits.max_bytes)?;
                UnpackedTree { files: vec![file], ..UnpackedTree::default() }
            }
        };
        Ok((folder, tree))
    })
}

fn extract_bundle(
    reader: &mut PieceReader,
    folder: &Folder,
    limits: &UnpackLimits,
) -> Result<UnpackedTree, SourceCause> {
    let tree = unpack(&mut *reader, folder, limits).map_err(SourceCause::Unpack)?;
    // The digest also covers the bytes after the archive.
    reader.drain().map_err(|source| SourceCause::Disk { path: folder.path().to_owned(), source })?;
    Ok(tree)
}

/// Writes the bytes of `input` to `folder`/`name`. Refuses more than `max_bytes`.
fn save(
    input: &mut impl Read,
    folder: &Folder,
    name: &str,
    max_bytes: u64,
) -> Result<UnpackedFile, SourceCause> {
    let path = folder.path().join(name);
    let disk = |source: io::Error| SourceCause::Disk { path: path.clone(), source };
    let mut file = folder.create_file(name).map_err(disk)?;
    let size_bytes = io::copy(&mut input.take(max_bytes.saturating_add(1)), &mut file).map_err(disk)?;
    if size_bytes > max_bytes {
        return Err(SourceCause::TooLarge { limit: format_size(max_bytes) });
    }
    modes::set(&file, FILE_MODE).map_err(disk)?;
    Ok(UnpackedFile { name: name.to_owned(), size_bytes })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_is_readable_for_all_and_bounded() {
        let outer = tempfile::tempdir().unwrap();
        let folder = Folder::at(outer.path()).unwrap();
        let file = save(&mut &b"12345"[..], &folder, "a", 5).unwrap();
        assert_eq!(file.size_bytes, 5);
        let mode = std::fs::metadata(outer.path().join("a")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644);
        assert!(matches!(save(&mut &b"12345"[..], &folder, "b", 4), Err(SourceCause::TooLarge { .. })));
    }
}
