//! Fetches all sources in parallel under one deadline, and then puts all of them into place, or none.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::error::FetchError;
use super::install::{Prepared, clean, install, prepare};
use super::lock::SourceLock;
use super::observer::{FetchObserver, SourceReport};
use super::plan::FetchPlan;
use super::source::{FetchOptions, Fetched, Tools, fetch};
use crate::client::HttpClient;

/// How many downloads run at once. The others of a long list wait.
const SIDE_BY_SIDE: usize = 16;

/// How long the extracting threads get to notice that no more bytes come.
const WIND_DOWN: Duration = Duration::from_secs(5);

/// The interval between attempts to take the lock of another fetch.
const LOCK_INTERVAL: Duration = Duration::from_millis(50);

/// Fetches all sources of `plan`. If one source fails, or `stop` is cancelled, the others are stopped and nothing stays
/// behind. Returns one report for each source, in the plan's order.
pub async fn run(
    plan: FetchPlan,
    http: &HttpClient,
    options: &FetchOptions,
    stop: &CancellationToken,
    observer: Arc<dyn FetchObserver>,
) -> Result<Vec<SourceReport>, FetchError> {
    let deadline = Instant::now() + options.timeout;
    let mut sources = in_thread(move || prepare(plan)).await?;
    let locks = tokio::select! {
        biased;
        () = stop.cancelled() => return Err(FetchError::Stopped),
        locks = lock_missing(&mut sources, options, deadline, observer.as_ref()) => locks?,
    };
    let sources = Arc::new(sources);
    let threads = TaskTracker::new();
    let tools = Tools { http, options, observer, threads: threads.clone(), deadline };
    let outcome = tokio::select! {
        biased;
        () = stop.cancelled() => Err(FetchError::Stopped),
        fetched = fetch_missing(&sources, &tools) => fetched,
    };
    // The futures have ended, and the bridges with them. The threads must end before their folders are removed.
    threads.close();
    let _ = tokio::time::timeout(WIND_DOWN, threads.wait()).await;
    in_thread(move || {
        let installed = outcome.and_then(|fetched| install(&sources, fetched));
        clean(&sources);
        drop(locks);
        installed
    })
    .await
}

/// Locks the missing sources, always in the same order, so that no two runs wait for each other. Then looks again,
/// because another run may have fetched a source in the meantime.
async fn lock_missing(
    sources: &mut [Prepared],
    options: &FetchOptions,
    deadline: Instant,
    observer: &dyn FetchObserver,
) -> Result<Vec<SourceLock>, FetchError> {
    let mut missing: Vec<&mut Prepared> = sources.iter_mut().filter(|prepared| !prepared.is_there).collect();
    missing.sort_by_key(|prepared| prepared.folder.path().join(prepared.lock()));
    let mut locks = Vec::new();
    for prepared in missing {
        locks.push(lock(prepared, options, deadline, observer).await?);
        prepared.look();
    }
    Ok(locks)
}

async fn lock(
    prepared: &Prepared,
    options: &FetchOptions,
    deadline: Instant,
    observer: &dyn FetchObserver,
) -> Result<SourceLock, FetchError> {
    let (what, mut was_told) = (prepared.source.what(), false);
    loop {
        let (folder, name) = (Arc::clone(&prepared.folder), prepared.lock());
        let target = prepared.source.target.clone();
        let taken = in_thread(move || {
            SourceLock::try_take(&folder, &name).map_err(|source| FetchError::of_folder(&target, source))
        });
        if let Some(lock) = taken.await? {
            return Ok(lock);
        }
        if Instant::now() >= deadline {
            let folder = prepared.source.target.clone();
            return Err(FetchError::Busy { what, folder, limit: options.timeout });
        }
        if !was_told {
            observer.retrying(&what, "another fetch of it into the same folder is at work");
        }
        was_told = true;
        tokio::time::sleep(LOCK_INTERVAL).await;
    }
}

async fn fetch_missing(
    sources: &[Prepared],
    tools: &Tools<'_>,
) -> Result<BTreeMap<usize, Fetched>, FetchError> {
    let missing = sources.iter().enumerate().filter(|(_, prepared)| !prepared.is_there);
    let fetches = missing.map(|(index, prepared)| async move {
        let fetched = fetch(&prepared.source, &prepared.folder, tools).await;
        fetched
            .map(|fetched| (index, fetched))
            .map_err(|cause| FetchError::of_source(&prepared.source, &cause))
    });
    stream::iter(fetches).buffer_unordered(SIDE_BY_SIDE).try_collect().await
}

/// Runs blocking file system work on a thread of its own.
async fn in_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FetchError> + Send + 'static,
) -> Result<T, FetchError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        Err(FetchError::of_folder(std::path::Path::new("."), io::Error::other(error)))
    })
}
