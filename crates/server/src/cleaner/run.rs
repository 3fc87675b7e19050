//! The loop that sweeps, at an interval and on request.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};

use super::{SweepRequest, Sweeper, Swept};
use crate::shutdown::Shutdown;
use cloakroom_core::lock::lock;
use cloakroom_core::text::chain;
use cloakroom_storage::AccessError;
use cloakroom_storage::ledger::LedgerError;

/// The number of requested sweeps that may wait for the one in progress.
const WAITING: usize = 16;

/// A request, and where its answer goes.
type Asked = (SweepRequest, oneshot::Sender<Result<Swept, AccessError>>);

/// A handle that asks the loop for a sweep between two regular ones.
#[derive(Debug, Clone)]
pub struct Cleaner {
    requests: mpsc::Sender<Asked>,
    interval: Duration,
    last: Last,
}

/// The result of the last sweep.
#[derive(Debug, Clone)]
pub struct LastSweep {
    pub ended_at: Timestamp,
    /// What it did; `None` if it failed.
    pub swept: Option<Swept>,
}

type Last = Arc<Mutex<LastSweep>>;

/// The loop has ended, because the server stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cleaner has stopped, because the server is about to stop")]
pub struct Stopped;

/// A task without which nothing is deleted any more has ended by a fault. Only a new start helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{task} stopped by a fault of this program, so nothing would be deleted any more: the server ends, and a new start \
    helps (please report what the log says before this)"
)]
pub struct Ended {
    /// Its name, with an article.
    pub task: &'static str,
}

impl Cleaner {
    /// Makes the first sweep, and returns the handle and the loop of the next ones. The loop sweeps every `interval` until
    /// the server stops. It logs a sweep that fails, and the next one tries again, unless a task has ended without which none
    /// can succeed.
    pub async fn start(
        mut sweeper: Sweeper,
        interval: Duration,
        shutdown: Shutdown,
    ) -> Result<(Self, impl Future<Output = Result<(), Ended>> + Send), AccessError> {
        sweeper.limit_reads(interval);
        let swept = sweeper.sweep().await?;
        swept.log();
        let (requests, queue) = mpsc::channel(WAITING);
        let last = Arc::new(Mutex::new(LastSweep { ended_at: sweeper.now(), swept: Some(swept) }));
        let cleaner = Self { requests, interval, last: Arc::clone(&last) };
        Ok((cleaner, sweep_until(sweeper, interval, shutdown, queue, last)))
    }

    /// Sweeps now, and returns what the sweep did.
    pub async fn sweep(&self, request: SweepRequest) -> Result<Result<Swept, AccessError>, Stopped> {
        let (answer, swept) = oneshot::channel();
        self.requests.send((request, answer)).await.map_err(|_| Stopped)?;
        swept.await.map_err(|_| Stopped)
    }

    /// The last sweep. There is always one, because a cleaner begins with a sweep.
    pub fn last(&self) -> LastSweep {
        lock(&self.last).clone()
    }

    /// The time between the end of one sweep and the beginning of the next.
    pub fn interval(&self) -> Duration {
        self.interval
    }
}

async fn sweep_until(
    mut sweeper: Sweeper,
    interval: Duration,
    shutdown: Shutdown,
    mut queue: mpsc::Receiver<Asked>,
    last: Last,
) -> Result<(), Ended> {
    loop {
        let asked = tokio::select! {
            () = tokio::time::sleep(interval) => None,
            // Without a handle no request can come, and only the interval counts.
            Some(request) = queue.recv() => Some(request),
            () = shutdown.requested() => return Ok(()),
        };
        let (request, answer) = asked.unzip();
        let swept = sweeper.sweep_for(&request.unwrap_or_default()).await;
        match &swept {
            Ok(swept) => swept.log(),
            Err(error) => {
                tracing::error!(error = %chain(error), "the sweep failed; the next one tries again");
            }
        }
        let ended = ended_task(&sweeper, swept.as_ref().err()).filter(|_| !shutdown.is_requested());
        *lock(&last) = LastSweep { ended_at: sweeper.now(), swept: swept.as_ref().ok().cloned() };
        if let Some(answer) = answer {
            // The client that asked may have left.
            let _ = answer.send(swept);
        }
        if let Some(task) = ended {
            return Err(Ended { task });
        }
    }
}

/// All tasks without which nothing is deleted any more, but for the sweeps: the one of them that has ended.
fn ended_task(sweeper: &Sweeper, failure: Option<&AccessError>) -> Option<&'static str> {
    if matches!(failure, Some(AccessError::Ledger(LedgerError::Closed))) {
        return Some("the writer of the ledger");
    }
    sweeper.ended_task()
}
