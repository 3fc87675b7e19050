//! Fetches one source from its address into its hidden folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::error::Cause;
use super::observer::FetchObserver;
use super::plan::{Origin, Source};
use super::remote;
use super::resume::{Ended, download};
use super::run::FetchOptions;
use super::source_retries::SourceRetries;
use super::stream::{PieceReader, bridge};
use crate::bundle::{UnpackLimits, UnpackedFile, unpack};
use crate::client::{Download, HttpClient};

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
    pub files: Vec<UnpackedFile>,
    pub sha256: [u8; 32],
    pub downloaded_bytes: u64,
    pub elapsed: Duration,
}

/// Fetches `source` into the folder `hidden` before the deadline.
pub(super) async fn fetch(source: &Source, hidden: PathBuf, tools: &Tools<'_>) -> Result<Fetched, Cause> {
    let retries = SourceRetries::new(source.what(), tools.options.backoff, Arc::clone(&tools.observer));
    match tokio::time::timeout_at(tools.deadline, attempts(source, &hidden, tools, &retries)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(retries.time_up(tools.options.timeout)),
    }
}

/// Tries until one attempt succeeds. Each attempt extracts one representation from its beginning to its end.
async fn attempts(
    source: &Source,
    hidden: &Path,
    tools: &Tools<'_>,
    retries: &SourceRetries,
) -> Result<Fetched, Cause> {
    let started = Instant::now();
    let mut first: Option<Box<Download>> = None;
    loop {
        let (sink, reader) = bridge();
        let extracting = extract(source, hidden.to_owned(), reader, tools);
        let ended = download(source, tools.http, retries, first.take(), &sink).await;
        drop(sink);
        let extracted = extracting.await.unwrap_or(Err(Cause::Lost));
        match ended? {
            Ended::Complete { sha256, size_bytes } => {
                let elapsed = started.elapsed();
                return Ok(Fetched { files: extracted?, sha256, downloaded_bytes: size_bytes, elapsed });
            }
            Ended::ReaderStopped => return Err(extracted.err().unwrap_or(Cause::Lost)),
            Ended::StartOver { why, next } => {
                retries.start_over(why);
                first = next;
            }
        }
    }
}

fn extract(
    source: &Source,
    hidden: PathBuf,
    mut reader: PieceReader,
    tools: &Tools<'_>,
) -> JoinHandle<Result<Vec<UnpackedFile>, Cause>> {
    let limits = tools.options.limits;
    let remote_name = match &source.origin {
        Origin::Staged { .. } => None,
        Origin::Remote(file) => Some(file.name.clone()),
    };
    tools.threads.spawn_blocking(move || {
        make_empty(&hidden).map_err(|source| Cause::Disk { path: hidden.clone(), source })?;
        match remote_name {
            None => extract_bundle(&mut reader, &hidden, &limits),
            Some(name) => Ok(vec![remote::save(&mut reader, &hidden, &name, limits.max_bytes)?]),
        }
    })
}

fn extract_bundle(
    reader: &mut PieceReader,
    hidden: &Path,
    limits: &UnpackLimits,
) -> Result<Vec<UnpackedFile>, Cause> {
    let files = unpack(&mut *reader, hidden, limits).map_err(Cause::Unpack)?;
    // The digest also covers the bytes after the archive.
    reader.drain().map_err(|source| Cause::Disk { path: hidden.to_owned(), source })?;
    Ok(files)
}

/// Makes an empty folder at `path`, and removes first what an interrupted run left there.
fn make_empty(path: &Path) -> io::Result<()> {
    remove(path)?;
    fs::create_dir(path)
}

/// Removes the folder or file at `path`, if there is one.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let is_folder = match fs::symlink_metadata(path) {
        Ok(found) => found.is_dir(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}
