//! Copies of the ledger in the bucket of its bundles: one each day, and one when the server stops. With such a copy a server
//! that has lost its data directory begins again.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail};
use jiff::{SignedDuration, Timestamp};
use tokio_util::task::AbortOnDropHandle;

use super::store::Bucket;
use crate::cli::RestoreChoice;
use cloakroom_adapters::bucket::BucketStore;
use cloakroom_adapters::sqlite::SqliteLedger;
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
    /// How much the ledger had changed when this server made its last copy; `None` if it has made none.
    changes: Option<u64>,
}

/// The copies of a server. The daily ones end when this is dropped.
pub struct Copies {
    maker: Arc<Maker>,
    daily: AbortOnDropHandle<()>,
}

impl Copies {
    /// Begins to make a copy each day.
    pub fn begin(
        bucket: &Bucket,
        ledger: Arc<SqliteLedger>,
        path: PathBuf,
        staging: Staging,
        metrics: Metrics,
    ) -> Self {
        let store = Arc::clone(&bucket.store);
        let maker = Arc::new(Maker { store, ledger, path, staging, metrics, state: Mutex::default() });
        let daily = AbortOnDropHandle::new(tokio::spawn(Arc::clone(&maker).keep_making()));
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
    /// Makes a copy of the closed ledger, if there is anything new in it.
    pub async fn make(self, shutdown: &Shutdown) {
        // A ledger that is behind is none to go back to.
        if self.0.is_nothing_new() || self.0.staging.is_behind() {
            return;
        }
        let making = self.0.keep(&self.0.path, self.0.ledger.changes());
        let made = tokio::select! {
            made = tokio::time::timeout(LAST_COPY_TIME, making) => made,
            () = shutdown.hurried() => return,
        };
        match made {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(error = %chain(&*error), "no copy of the ledger could be made"),
            Err(_) => tracing::warn!(
                "no copy of the ledger was made: the bucket did not take it within {} s",
                LAST_COPY_TIME.as_secs()
            ),
        }
    }
}

impl Maker {
    /// Makes a copy whenever the newest one is a day old.
    async fn keep_making(self: Arc<Self>) {
        loop {
            if let Err(error) = self.make_if_due().await {
                tracing::warn!(
                    error = %chain(&*error),
                    "no copy of the ledger could be made; the next try is in {} minutes", LOOK_INTERVAL.as_secs() / 60
                );
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    async fn make_if_due(&self) -> anyhow::Result<()> {
        if self.state().newest.is_none() {
            let newest = self.store.copies().await?.pop();
            self.note(newest);
        }
        if self.is_nothing_new() {
            self.metrics.ledger_copied(Some(Timestamp::now()));
            return Ok(());
        }
        let is_recent = |copy: CopyName| Timestamp::now().duration_since(copy.made_at()) < INTERVAL;
        if self.staging.is_behind() || self.state().newest.is_some_and(is_recent) {
            return Ok(());
        }
        self.has_room()?;
        let (changes, copy) = (self.ledger.changes(), self.path.with_extension("db-copy"));
        remove(&copy)?;
        let kept = async {
            self.ledger.copy_to(&copy).await?;
            self.keep(&copy, changes).await
        };
        let kept = kept.await;
        remove(&copy)?;
        kept
    }

    /// Whether another copy would say no more than the last one of this server.
    fn is_nothing_new(&self) -> bool {
        self.state().changes == Some(self.ledger.changes())
    }

    fn has_room(&self) -> anyhow::Result<()> {
        let size = fs::metadata(&self.path)?.len();
        let disk = rustix::fs::statvfs(self.path.parent().unwrap_or(Path::new(".")))?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        if free < size.saturating_mul(ROOM) {
            bail!(
                "the ledger has {size} bytes, and its disk has {free} bytes free: it needs {ROOM} times as many as the ledger has"
            );
        }
        Ok(())
    }

    /// Puts a file with a whole ledger into the bucket, and removes the copies that are not needed any more.
    async fn keep(&self, file: &Path, changes: u64) -> anyhow::Result<()> {
        let name = CopyName::after(self.state().newest, Timestamp::now());
        self.store.keep_copy(name, file).await?;
        self.note(Some(name));
        self.state().changes = Some(changes);
        tracing::info!(copy = %name, "a copy of the ledger is in the bucket");
        for old in superfluous(&self.store.copies().await?) {
            self.store.remove_copy(old).await?;
        }
        Ok(())
    }

    fn note(&self, newest: Option<CopyName>) {
        self.state().newest = newest;
        self.metrics.ledger_copied(newest.map(CopyName::made_at));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The newest copy of the ledger, as far as the bucket can be asked.
pub async fn newest(bucket: Option<&Bucket>) -> Option<CopyName> {
    bucket?.store.copies().await.ok()?.pop()
}

/// Gets a copy of the ledger from the bucket, and puts it at `path`, where there is none.
pub async fn restore(bucket: &Bucket, which: RestoreChoice, path: &Path) -> anyhow::Result<()> {
    let Bucket { store, location, .. } = bucket;
    let copies = store.copies().await?;
    let known = || copies.iter().map(CopyName::to_string).collect::<Vec<_>>().join(", ");
    let name = match which {
        RestoreChoice::Latest => copies.last().copied(),
        RestoreChoice::Copy(name) => copies.contains(&name).then_some(name),
    };
    let Some(name) = name else {
        match which {
            RestoreChoice::Copy(name) if !copies.is_empty() => {
                bail!("there is no copy {name} of a ledger in {location}/ledger: there are {}", known())
            }
            _ => bail!("there is no copy of a ledger in {location}/ledger"),
        }
    };
    let part = path.with_extension("db-copy");
    remove(&part)?;
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
    store.read_copy(name, file).await?;
    fs::rename(&part, path)?;
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()?;
    tracing::warn!(copy = %name, "the ledger was put back from a copy in the bucket");
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
