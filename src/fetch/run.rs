//! All sources side by side under one deadline; then all of them into place, or none.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::error::FetchError;
use super::observer::{FetchObserver, SourceReport};
use super::plan::FetchPlan;
use super::settle::{Prepared, clean, prepare, settle};
use super::source::{Fetched, Tools, fetch};
use crate::bundle::UnpackLimits;
use crate::client::{Backoff, HttpClient};

/// So many downloads at once; a long list of files on the web waits its turn.
const SIDE_BY_SIDE: usize = 16;

/// How long extracting threads get to notice that nothing comes any more.
const WIND_DOWN: Duration = Duration::from_secs(5);

/// The bounds of a fetch.
#[derive(Debug, Clone, Copy)]
pub struct FetchOptions {
    /// Bound on everything together.
    pub timeout: Duration,
    /// What one bundle or file may bring.
    pub limits: UnpackLimits,
    /// The waits between attempts.
    pub backoff: Backoff,
}

impl Default for FetchOptions {
    fn default() -> Self {
        Self { timeout: Duration::from_mins(5), limits: UnpackLimits::default(), backoff: Backoff::default() }
    }
}

/// Fetches all of `plan`. When one source fails, or `stop` is cancelled, the others are given up and nothing stays
/// behind. A report for each source, in the plan's order.
pub async fn run(
    plan: FetchPlan,
    http: &HttpClient,
    options: &FetchOptions,
    stop: &CancellationToken,
    observer: Arc<dyn FetchObserver>,
) -> Result<Vec<SourceReport>, FetchError> {
    let deadline = Instant::now() + options.timeout;
    let sources = Arc::new(in_thread(move || prepare(plan)).await?);
    let threads = TaskTracker::new();
    let tools = Tools { http, options, observer, threads: threads.clone(), deadline };
    let outcome = tokio::select! {
        biased;
        () = stop.cancelled() => Err(FetchError::Stopped),
        fetched = fetch_missing(&sources, &tools) => fetched,
    };
    // The futures are gone, and with them the bridges; the threads behind them must be gone before the folders are.
    threads.close();
    let _ = tokio::time::timeout(WIND_DOWN, threads.wait()).await;
    in_thread(move || {
        let settled = outcome.and_then(|fetched| settle(&sources, fetched));
        clean(&sources);
        settled
    })
    .await
}

async fn fetch_missing(
    sources: &[Prepared],
    tools: &Tools<'_>,
) -> Result<BTreeMap<usize, Fetched>, FetchError> {
    let missing = sources.iter().enumerate().filter(|(_, prepared)| !prepared.is_there);
    let fetches = missing.map(|(index, prepared)| async move {
        let fetched = fetch(&prepared.source, prepared.hidden(), tools).await;
        fetched
            .map(|fetched| (index, fetched))
            .map_err(|cause| FetchError::of_source(&prepared.source, &cause))
    });
    stream::iter(fetches).buffer_unordered(SIDE_BY_SIDE).try_collect().await
}

/// File system work on a thread that may wait.
async fn in_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FetchError> + Send + 'static,
) -> Result<T, FetchError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        Err(FetchError::of_folder(std::path::Path::new("."), io::Error::other(error)))
    })
}
