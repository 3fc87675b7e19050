//! Copies of the ledger in the bucket: they take the place of the groups of its log, so that a start need not read many of them.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use jiff::Timestamp;
use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;

use cloakroom_adapters::sqlite::SqliteLedger;
use cloakroom_core::metrics::Metrics;
use cloakroom_core::text::chain;
use cloakroom_storage::log::{Heartbeat, LogStore, Position, Progress, keep_copy, remove_earlier_epochs};

/// After how many bytes of the log a copy is made.
const MOST_BYTES: u64 = 16 << 20;

/// After how many groups of the log a copy is made: a start reads them, some at once.
const MOST_GROUPS: u64 = 2000;

/// After how long a copy is made if the ledger has changed.
const LONGEST: Duration = Duration::from_hours(1);

/// How often it is looked whether a copy is due.
const LOOK: Duration = Duration::from_secs(10);

/// How often it is looked whether the reserve is there, if it was there before.
const RESERVE_LOOK: Duration = Duration::from_mins(10);

/// How soon a copy that failed is tried again.
const RETRY: Duration = Duration::from_mins(1);

/// How much of the disk must be free for a copy, in sizes of the ledger. The ledger goes on growing meanwhile.
const ROOM: u64 = 2;

/// What makes the copies of one server.
pub struct Copier {
    pub store: Arc<dyn LogStore>,
    pub heartbeat: Arc<Heartbeat>,
    pub progress: Arc<Progress>,
    pub ledger: Arc<SqliteLedger>,
    /// The file of the ledger.
    pub path: PathBuf,
    pub metrics: Metrics,
}

/// The last copy.
struct Last {
    at: Position,
    /// How long the log was then, in bytes.
    bytes: u64,
    made_at: Instant,
}

impl Copier {
    /// Makes copies until the handle is dropped. The start has made the first one.
    pub fn begin(self) -> AbortOnDropHandle<()> {
        AbortOnDropHandle::new(tokio::spawn(self.keep_making()))
    }

    async fn keep_making(self) {
        let (mut logged, mut last) =
            (self.progress.last(), Last { at: self.progress.last(), bytes: 0, made_at: Instant::now() });
        self.metrics.ledger_logged(Timestamp::now());
        self.metrics.ledger_copied(Timestamp::now());
        self.metrics.ledger_stalled(false);
        self.heartbeat.keep_reserve().await;
        let mut reserve_kept_at = Instant::now();
        if let Err(error) = remove_earlier_epochs(&*self.store, &self.heartbeat).await {
            // The next copy removes them.
            tracing::warn!(error = %chain(&error), "the log of earlier servers could not be removed");
        }
        loop {
            sleep(LOOK).await;
            if self.heartbeat.is_short_of_room() || reserve_kept_at.elapsed() >= RESERVE_LOOK {
                self.heartbeat.keep_reserve().await;
                reserve_kept_at = Instant::now();
            }
            self.metrics.ledger_stalled(self.heartbeat.fails() || self.progress.is_stalled());
            let (at, bytes) = (self.progress.last(), self.progress.bytes());
            if at != logged {
                self.metrics.ledger_logged(Timestamp::now());
                logged = at;
            }
            if at == last.at {
                self.metrics.ledger_copied(Timestamp::now());
                continue;
            }
            let is_long = bytes - last.bytes >= MOST_BYTES || at.number - last.at.number >= MOST_GROUPS;
            if !is_long && last.made_at.elapsed() < LONGEST {
                continue;
            }
            let began = Timestamp::now();
            match self.make(at).await {
                Ok(true) => {
                    tracing::info!(copy = %at, "a copy of the ledger is in the bucket");
                    self.metrics.ledger_copied(began);
                    last = Last { at, bytes, made_at: Instant::now() };
                }
                // The server ends.
                Ok(false) => return,
                Err(error) => {
                    tracing::warn!(
                        error = %chain(&*error),
                        "no copy of the ledger could be made; the next try is in {} s", RETRY.as_secs()
                    );
                    sleep(RETRY).await;
                }
            }
        }
    }

    /// Makes a copy that has all groups up to `at`. It may have more, which does no harm.
    async fn make(&self, at: Position) -> anyhow::Result<bool> {
        let (path, part) = (self.path.clone(), beside(&self.path, "-copy"));
        on_disk({
            let part = part.clone();
            move || remove(&part).and_then(|()| check_room(&path))
        })
        .await?;
        self.ledger.copy_to(&part).await?;
        let kept = keep_copy(&*self.store, &self.heartbeat, at, &part).await;
        on_disk(move || remove(&part)).await?;
        Ok(kept?)
    }
}

/// The path with `ending` behind it.
pub fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}

/// Runs what may wait for the disk.
async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    tokio::task::spawn_blocking(work).await?
}

fn check_room(path: &Path) -> anyhow::Result<()> {
    let size = fs::metadata(path)?.len();
    let disk = rustix::fs::statvfs(path.parent().unwrap_or(Path::new(".")))?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if free < size.saturating_mul(ROOM) {
        bail!(
            "the ledger has {size} bytes, and its disk has {free} bytes free: {ROOM} times as many must be free"
        );
    }
    Ok(())
}

/// Removes what a copy left that was interrupted.
fn remove(path: &Path) -> anyhow::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}
