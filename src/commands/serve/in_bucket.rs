//! The start and the end of a server whose ledger is in the bucket of its bundles.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;

use super::copies::{Copier, beside};
use super::store::ConfiguredBucket;
use cloakroom_adapters::Place;
use cloakroom_adapters::bucket::BucketStore;
use cloakroom_adapters::sqlite::{Changes, SqliteFile, SqliteLedger};
use cloakroom_core::lock::lock;
use cloakroom_core::metrics::Metrics;
use cloakroom_core::text::chain;
use cloakroom_server::owners::Owners;
use cloakroom_storage::log::{
    Appender, Heartbeat, LedgerFile as _, LogStore, Position, Started, Starting, Timing, WriterEnd,
    WriterStamp, WriterState,
};
use cloakroom_storage::stamp::Installation;

/// How often the stamp of another server is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// How many beats a server that waits must miss.
const MISSED_BEATS: u32 = 3;

/// For how many times the time of a takeover no sweep deletes after it.
const REST: u32 = 4;

/// For how many times the time of a takeover a server may not reach its cluster.
const WITHOUT_CLUSTER: u32 = 2;

/// How often a server that only reads tries to write.
const RETRY: Duration = Duration::from_secs(5);

/// How long the last beat may take.
const LAST_BEAT_TIME: Duration = Duration::from_secs(3);

/// How a server takes over from another one.
#[derive(Debug, Clone, Copy)]
pub struct Succession {
    /// How long the stamp of the other one must have stood still; zero to take over at once.
    pub patience: Duration,
    /// How often a server renews its own.
    pub beat: Duration,
    /// For how long after its start no sweep deletes.
    pub rest: Duration,
    /// How long it may not reach its cluster before it lets another one take over at once.
    pub longest_without_cluster: Duration,
    /// The copy of the ledger that an admin wants back.
    pub restore: Option<Position>,
}

impl Succession {
    /// `after` is how long another server must have been silent.
    pub fn new(after: Duration, at_once: bool, restore: Option<Position>) -> Self {
        let patience = if at_once { Duration::ZERO } else { after };
        Self {
            patience,
            beat: after / MISSED_BEATS,
            rest: after.saturating_mul(REST),
            longest_without_cluster: after.saturating_mul(WITHOUT_CLUSTER),
            restore,
        }
    }
}

/// What goes on beside a server whose ledger is in a bucket.
pub enum InBucket {
    Writing {
        heartbeat: Arc<Heartbeat>,
        beats: AbortOnDropHandle<()>,
        copies: AbortOnDropHandle<()>,
        /// Looks whether the cluster can be reached.
        looks: Option<AbortOnDropHandle<()>>,
    },
    /// The bucket took no writes at the start. The task ends when it does again.
    ReadOnly { retry: tokio::sync::Mutex<AbortOnDropHandle<()>> },
}

/// Waits until no other server writes, and makes the ledger at `path` from the bucket.
pub async fn start(
    bucket: &ConfiguredBucket,
    succession: Succession,
    (place, path): (&Place, &Path),
    metrics: &Metrics,
) -> anyhow::Result<(Arc<SqliteLedger>, InBucket)> {
    let store = Arc::clone(&bucket.store) as Arc<dyn LogStore>;
    let (file, told) = (SqliteFile::new(path.to_owned()), Mutex::new(None));
    let tell = |stamp, left| tell(stamp, left, &told);
    let starting = succession.starting(&store, &file, &tell);
    let began = Instant::now();
    let started = match starting.run().await {
        Ok(started) => started,
        Err(error) if error.is_full() => {
            tracing::error!(
                error = %chain(&error),
                "the bucket takes no writes: what is staged is served, and nothing else is done until it does"
            );
            starting.read_only().await?;
            let ledger = SqliteLedger::open_in(place, path, Changes::Refused).await?;
            let retry = tokio::spawn(try_again(Arc::clone(&bucket.store), succession, beside(path, "-next")));
            let retry = tokio::sync::Mutex::new(AbortOnDropHandle::new(retry));
            return Ok((Arc::new(ledger), InBucket::ReadOnly { retry }));
        }
        Err(error) => return Err(error.into()),
    };
    let appender = Appender::new(Arc::clone(&store), &started);
    let progress = Arc::clone(appender.progress());
    let ledger = Arc::new(SqliteLedger::open_in(place, path, Changes::Logged(appender)).await?);
    let (heartbeat, beats) = started.heartbeat;
    metrics.took_over(started.start.epoch, began.elapsed());
    tracing::info!(epoch = started.start.epoch, "the ledger was made from the bucket {}", bucket.location);
    let copier = Copier {
        store,
        heartbeat: Arc::clone(&heartbeat),
        progress,
        ledger: Arc::clone(&ledger),
        path: path.to_owned(),
        metrics: metrics.clone(),
    };
    Ok((ledger, InBucket::Writing { heartbeat, beats, copies: copier.begin(), looks: None }))
}

/// Tries until the bucket takes a whole start.
async fn try_again(store: Arc<BucketStore>, succession: Succession, path: PathBuf) {
    let (file, log) = (SqliteFile::new(path), Arc::clone(&store) as Arc<dyn LogStore>);
    let starting = succession.starting(&log, &file, &|_, _| {});
    loop {
        sleep(RETRY).await;
        if store.probe().await.is_err() {
            continue;
        }
        if let Ok(Started { heartbeat: (heartbeat, _beats), .. }) = starting.run().await {
            // The next start need not wait for this one.
            heartbeat.say(WriterState::Stopped);
            let _ = heartbeat.beat().await;
            let _ = file.clear().await;
            return;
        }
    }
}

async fn look_for_cluster(heartbeat: Arc<Heartbeat>, owners: Arc<dyn Owners>, succession: Succession) {
    let mut reached_at = Instant::now();
    let mut yields = false;
    loop {
        sleep(succession.beat).await;
        if owners.cluster().await.is_ok() {
            reached_at = Instant::now();
        }
        let is_cut_off = reached_at.elapsed() >= succession.longest_without_cluster;
        if is_cut_off != yields {
            yields = is_cut_off;
            if yields {
                tracing::warn!(
                    "the API server does not answer: another server at this prefix may take over at once"
                );
            }
            heartbeat.say(if yields { WriterState::Yields } else { WriterState::Serves });
        }
    }
}

impl Succession {
    fn starting<'a>(
        &self,
        store: &Arc<dyn LogStore>,
        file: &'a SqliteFile,
        tell: &'a (dyn Fn(WriterStamp, Duration) + Sync),
    ) -> Starting<'a> {
        let Self { patience, beat, restore, .. } = *self;
        Starting {
            store: Arc::clone(store),
            file,
            timing: Timing { patience, look: LOOK.min(patience), beat },
            installation: Installation::generate(&mut rand::rng()),
            restore,
            tell,
        }
    }
}

/// Says once for each epoch that is waited for.
fn tell(stamp: WriterStamp, left: Duration, told: &Mutex<Option<u64>>) {
    if lock(told).replace(stamp.epoch) != Some(stamp.epoch) {
        tracing::info!(
            epoch = stamp.epoch,
            "another server has this prefix: this one begins when that one has stopped, or has not renewed its stamp for {} s",
            left.as_secs_f64()
        );
    }
}

impl InBucket {
    /// The beats, if this server writes.
    pub fn heartbeat(&self) -> Option<Arc<Heartbeat>> {
        match self {
            Self::Writing { heartbeat, .. } => Some(Arc::clone(heartbeat)),
            Self::ReadOnly { .. } => None,
        }
    }

    /// Lets another server take over at once while this one cannot reach its cluster: its node may be cut off.
    pub fn yield_without(&mut self, owners: Arc<dyn Owners>, succession: Succession) {
        let Self::Writing { heartbeat, looks, .. } = self else { return };
        let looking = look_for_cluster(Arc::clone(heartbeat), owners, succession);
        *looks = Some(AbortOnDropHandle::new(tokio::spawn(looking)));
    }

    pub fn is_read_only(&self) -> bool {
        matches!(self, Self::ReadOnly { .. })
    }

    /// Waits until the server must end, and says why.
    pub async fn over(&self) -> anyhow::Error {
        match self {
            Self::Writing { heartbeat, .. } => heartbeat.over().await.into(),
            Self::ReadOnly { retry } => {
                // A panic in it was reported when it happened.
                let _ = (&mut *retry.lock().await).await;
                anyhow::anyhow!(
                    "the bucket takes writes again: this server ends, because the next start can write"
                )
            }
        }
    }

    /// Says in the stamp that this server has stopped, so that the next one need not wait.
    pub async fn stop(self) {
        let Self::Writing { heartbeat, beats, copies, looks } = self else { return };
        drop((copies, looks));
        if heartbeat.ended() == Some(WriterEnd::Superseded) {
            return;
        }
        heartbeat.say(WriterState::Stopped);
        let said = tokio::time::timeout(LAST_BEAT_TIME, heartbeat.beat()).await;
        let why = match said {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(chain(&error)),
            Err(_) => Some(format!("the bucket did not answer within {} s", LAST_BEAT_TIME.as_secs())),
        };
        if let Some(error) = why {
            tracing::warn!(
                error,
                "the stamp in the bucket does not say that this server has stopped: the next one waits"
            );
        }
        drop(beats);
    }
}
