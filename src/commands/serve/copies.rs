//! Copies of the ledger in the bucket of its bundles: one each day, and one when the server stops. With such a copy a server
//! that has lost its data directory begins again.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, bail};
use jiff::{SignedDuration, Timestamp};
use tokio_util::task::AbortOnDropHandle;

use super::store::Bucket;
use crate::cli::RestoreChoice;
use cloakroom_adapters::bucket::BucketStore;
use cloakroom_adapters::sqlite::SqliteLedger;
use cloakroom_core::lock::lock;
use cloakroom_core::metrics::Metrics;
use cloakroom_core::text::chain;
use cloakroom_server::shutdown::Shutdown;
use cloakroom_storage::Staging;
use cloakroom_storage::copies::{CopyName, superfluous};
use cloakroom_storage::ledger::Ledger as _;

/// How old the newest copy may be.
const INTERVAL: SignedDuration = SignedDuration::from_hours(24);

/// How often the age of the newest copy is looked at, and how soon a copy that failed is tried again.
const LOOK_INTERVAL: Duration = Duration::from_mins(10);

/// How long the last copy may take. The shipped pod has this time after the ledger is closed.
const LAST_COPY_TIME: Duration = Duration::from_secs(7);

/// How much of the disk must be free for a copy, in sizes of the ledger. The ledger goes on growing meanwhile.
const ROOM: u64 = 2;

/// Makes the copies of one server.
struct Maker {
    store: Arc<BucketStore>,
    ledger: Arc<SqliteLedger>,
    /// The file of the ledger.
    path: PathBuf,
    staging: Staging,
    metrics: Metrics,
    state: Mutex<State>,
}

/// What is known of the copies.
#[derive(Default)]
struct State {
    newest: Option<CopyName>,
    /// The last copy that this server has made; `None` if it has made none.
    own: Option<Own>,
}

/// A copy that this server has made.
#[derive(Clone, Copy)]
struct Own {
    at: Timestamp,
    /// How much the ledger had changed.
    changes: u64,
}

/// The copies of a server. The daily ones end when this is dropped.
pub struct Copies {
    maker: Arc<Maker>,
    daily: AbortOnDropHandle<()>,
}

impl Copies {
    /// Makes a copy each day until a stop is requested.
    pub fn begin(
        bucket: &Bucket,
        ledger: Arc<SqliteLedger>,
        path: PathBuf,
        staging: Staging,
        metrics: Metrics,
        shutdown: Shutdown,
    ) -> Self {
        let store = Arc::clone(&bucket.store);
        let maker = Arc::new(Maker { store, ledger, path, staging, metrics, state: Mutex::default() });
        let daily = AbortOnDropHandle::new(tokio::spawn(Arc::clone(&maker).keep_making(shutdown)));
        Self { maker, daily }
    }

    /// Ends the daily copies, so that the ledger can be closed.
    pub fn stop(self) -> Last {
        drop(self.daily);
        Last(self.maker)
    }
}

/// The copy that is still to be made when the ledger is closed.
pub struct Last(Arc<Maker>);

impl Last {
    /// Makes a copy of the closed ledger. It is the only copy that is not behind, because nothing can change after it.
    pub async fn make(self, shutdown: &Shutdown) {
        // A ledger that is behind is none to go back to.
        if self.0.staging.is_behind() {
            return;
        }
        let made = tokio::select! {
            made = tokio::time::timeout(LAST_COPY_TIME, self.0.keep_closed()) => made,
            () = shutdown.hurried() => Ok(Err(anyhow::anyhow!("the server has to stop at once"))),
        };
        match made {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(error = %chain(&*error), "no last copy of the ledger was made"),
            Err(_) => tracing::warn!(
                error = format!("the bucket did not take it within {} s", LAST_COPY_TIME.as_secs()),
                "no last copy of the ledger was made"
            ),
        }
    }
}

impl Maker {
    /// Makes a copy whenever the newest one is a day old.
    async fn keep_making(self: Arc<Self>, shutdown: Shutdown) {
        loop {
            match self.make_if_due().await {
                Ok(()) => self.remove_superfluous().await,
                Err(error) => tracing::warn!(
                    error = %chain(&*error),
                    "no copy of the ledger could be made; the next try is in {} minutes", LOOK_INTERVAL.as_secs() / 60
                ),
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_INTERVAL) => {}
                () = shutdown.requested() => return,
            }
        }
    }

    async fn make_if_due(&self) -> anyhow::Result<()> {
        let (path, part) = (self.path.clone(), part_of(&self.path));
        let has_room = on_disk({
            let part = part.clone();
            move || remove(&part).map(|()| has_room(&path))
        });
        let has_room = has_room.await?;
        if lock(&self.state).newest.is_none() {
            self.note_newest(self.store.copies().await?.pop());
        }
        let (own, changes) = (lock(&self.state).own, self.ledger.changes());
        if own.is_some_and(|own| own.changes == changes) {
            self.metrics.ledger_copied(Timestamp::now());
            return Ok(());
        }
        if self.staging.is_behind() || self.has_recent_copy() {
            return Ok(());
        }
        has_room?;
        self.ledger.copy_to(&part).await?;
        // From here on the copy is behind. The new stamp makes a server notice that when it starts with the copy.
        if !self.staging.outdate_copies().await? {
            return Ok(());
        }
        let kept = self.keep(&part, changes).await;
        on_disk(move || remove(&part)).await?;
        kept
    }

    /// Whether a copy is less than a day old. One that is from the future says nothing.
    fn has_recent_copy(&self) -> bool {
        let state = lock(&self.state);
        let times = [state.newest.map(CopyName::made_at), state.own.map(|own| own.at)];
        let mut ages = times.into_iter().flatten().map(|at| Timestamp::now().duration_since(at));
        ages.any(|age| !age.is_negative() && age < INTERVAL)
    }

    /// Keeps the ledger's file after it was closed.
    async fn keep_closed(&self) -> anyhow::Result<()> {
        let log = beside(&self.path, "-wal");
        let is_whole = on_disk(move || Ok(!log.try_exists()?)).await?;
        if !is_whole {
            bail!("the ledger was closed, and a part of it is still in its log");
        }
        self.keep(&self.path, self.ledger.changes()).await
    }

    /// Puts a file with a whole ledger into the bucket.
    async fn keep(&self, file: &Path, changes: u64) -> anyhow::Result<()> {
        let at = Timestamp::now();
        let name = CopyName::after(lock(&self.state).newest, at);
        self.store.keep_copy(name, file).await?;
        *lock(&self.state) = State { newest: Some(name), own: Some(Own { at, changes }) };
        self.metrics.ledger_copied(at);
        tracing::info!(copy = %name, "a copy of the ledger is in the bucket");
        Ok(())
    }

    async fn remove_superfluous(&self) {
        let removed = async {
            for old in superfluous(&self.store.copies().await?) {
                self.store.remove_copy(old).await?;
            }
            anyhow::Ok(())
        };
        if let Err(error) = removed.await {
            tracing::warn!(error = %chain(&*error), "old copies of the ledger could not be removed");
        }
    }

    /// Notes what the bucket has from earlier servers.
    fn note_newest(&self, newest: Option<CopyName>) {
        lock(&self.state).newest = newest;
        self.metrics.ledger_copied(newest.map_or(Timestamp::UNIX_EPOCH, CopyName::made_at));
    }
}

/// The newest copy of the ledger, as far as the bucket can be asked.
pub async fn newest(bucket: Option<&Bucket>) -> Option<CopyName> {
    bucket?.store.copies().await.ok()?.pop()
}

/// Gets a copy of the ledger from the bucket, and puts it at `path`, where there is none.
pub async fn restore(bucket: &Bucket, which: RestoreChoice, path: &Path) -> anyhow::Result<()> {
    for ending in ["-wal", "-journal"] {
        let log = beside(path, ending);
        if log.try_exists()? {
            bail!(
                "{} is there, of a ledger that is not: SQLite would put it into the copy; move it to another folder",
                log.display()
            );
        }
    }
    let Bucket { store, location, .. } = bucket;
    let copies = store.copies().await?;
    let name = match which {
        RestoreChoice::Latest => copies.last().copied(),
        RestoreChoice::Copy(name) => copies.contains(&name).then_some(name),
    };
    let Some(name) = name else {
        match which {
            RestoreChoice::Copy(name) if !copies.is_empty() => {
                let known: Vec<String> = copies.iter().map(CopyName::to_string).collect();
                bail!(
                    "there is no copy {name} of a ledger in {location}/ledger: there are {}",
                    known.join(", ")
                )
            }
            _ => bail!(
                "there is no copy of a ledger in {location}/ledger: start without --restore-ledger, which begins with a new \
                 ledger, or says why it may not"
            ),
        }
    };
    let part = part_of(path);
    remove(&part)?;
    store.read_copy(name, &part).await?;
    SqliteLedger::check_copy(&part).await.with_context(|| format!("the copy {name} cannot be used"))?;
    fs::rename(&part, path)?;
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()?;
    tracing::warn!(copy = %name, "the ledger was put back from a copy in the bucket");
    Ok(())
}

/// The file of a copy that is being made.
fn part_of(path: &Path) -> PathBuf {
    beside(path, "-copy")
}

/// The path with `ending` behind it.
fn beside(path: &Path, ending: &str) -> PathBuf {
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

fn has_room(path: &Path) -> anyhow::Result<()> {
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
