//! The start and the end of a server whose ledger is in the bucket of its bundles.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio_util::task::AbortOnDropHandle;

use super::copies::Copier;
use super::store::Bucket;
use cloakroom_adapters::Place;
use cloakroom_adapters::sqlite::{SqliteFile, SqliteLedger};
use cloakroom_core::lock::lock;
use cloakroom_core::metrics::Metrics;
use cloakroom_core::text::chain;
use cloakroom_storage::log::{
    Appender, Heartbeat, LogStore, Position, Starting, Timing, WriterEnd, WriterStamp, WriterState,
};
use cloakroom_storage::stamp::Installation;

/// How often the stamp of another server is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// How many beats a server that waits must miss.
const MISSED_BEATS: u32 = 3;

/// For how many times the time of a takeover no sweep deletes after it.
const REST: u32 = 4;

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
    /// The copy of the ledger that an admin wants back.
    pub restore: Option<Position>,
}

impl Succession {
    /// `after` is how long another server must have been silent.
    pub fn new(after: Duration, at_once: bool, restore: Option<Position>) -> Self {
        let patience = if at_once { Duration::ZERO } else { after };
        Self { patience, beat: after / MISSED_BEATS, rest: after.saturating_mul(REST), restore }
    }
}

/// What goes on beside a server whose ledger is in a bucket.
pub struct InBucket {
    pub heartbeat: Arc<Heartbeat>,
    beats: AbortOnDropHandle<()>,
    copies: AbortOnDropHandle<()>,
}

/// Waits until no other server writes, and makes the ledger at `path` from the bucket.
pub async fn start(
    bucket: &Bucket,
    succession: Succession,
    (place, path): (&Place, &Path),
    metrics: &Metrics,
) -> anyhow::Result<(Arc<SqliteLedger>, InBucket)> {
    let store = Arc::clone(&bucket.store) as Arc<dyn LogStore>;
    let Succession { patience, beat, restore, .. } = succession;
    let told = Mutex::new(None);
    let starting = Starting {
        store: Arc::clone(&store),
        file: &SqliteFile::new(path.to_owned()),
        timing: Timing { patience, look: LOOK.min(patience), beat },
        installation: Installation::generate(&mut rand::rng()),
        restore,
        tell: &|stamp, left| tell(stamp, left, &told),
    };
    let started = starting.run().await?;
    let appender = Appender::new(Arc::clone(&store), &started);
    let progress = Arc::clone(appender.progress());
    let ledger = Arc::new(SqliteLedger::open_in(place, path, Some(appender)).await?);
    let (heartbeat, beats) = started.heartbeat;
    tracing::info!(epoch = started.start.epoch, "the ledger was made from the bucket {}", bucket.location);
    let copier = Copier {
        store,
        heartbeat: Arc::clone(&heartbeat),
        progress,
        ledger: Arc::clone(&ledger),
        path: path.to_owned(),
        metrics: metrics.clone(),
    };
    Ok((ledger, InBucket { heartbeat, beats, copies: copier.begin() }))
}

/// Says once for each epoch that is waited for.
fn tell(stamp: WriterStamp, left: Duration, told: &Mutex<Option<u64>>) {
    if lock(told).replace(stamp.epoch) != Some(stamp.epoch) {
        tracing::info!(
            epoch = stamp.epoch,
            "another server has this bucket: this one begins when that one has stopped, or has not renewed its stamp for {} s",
            left.as_secs_f64()
        );
    }
}

impl InBucket {
    /// Says in the stamp that this server has stopped, so that the next one need not wait.
    pub async fn stop(self) {
        drop(self.copies);
        if self.heartbeat.ended() == Some(WriterEnd::Superseded) {
            return;
        }
        self.heartbeat.say(WriterState::Stopped);
        let said = tokio::time::timeout(LAST_BEAT_TIME, self.heartbeat.beat()).await;
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
        drop(self.beats);
    }
}
