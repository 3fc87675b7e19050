//! The loop that sweeps, at an interval and on request.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};

use super::{Sweeper, Swept};
use crate::shutdown::Shutdown;
use cloakroom_core::text::chain;
use cloakroom_staging::AccessError;

/// The number of requested sweeps that may wait for the one in progress.
const WAITING: usize = 16;

type Answer = oneshot::Sender<Result<Swept, AccessError>>;

/// A handle that asks the loop for a sweep between two regular ones.
#[derive(Debug, Clone)]
pub struct Cleaner {
    requests: mpsc::Sender<Answer>,
    interval: Duration,
    last: Last,
}

/// The result of the last sweep.
#[derive(Debug, Clone)]
pub struct LastSweep {
    /// When it ended.
    pub ended_at: Timestamp,
    /// What it did; `None` if it failed.
    pub swept: Option<Swept>,
}

type Last = Arc<Mutex<Option<LastSweep>>>;

/// The loop has ended, because the server stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cleaner has stopped, because the server is about to stop")]
pub struct Stopped;

impl Cleaner {
    /// Sweeps now, and returns what the sweep did.
    pub async fn sweep(&self) -> Result<Result<Swept, AccessError>, Stopped> {
        let (answer, swept) = oneshot::channel();
        self.requests.send(answer).await.map_err(|_| Stopped)?;
        swept.await.map_err(|_| Stopped)
    }

    /// The last sweep; `None` if there was none since the start.
    pub fn last(&self) -> Option<LastSweep> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The time between the end of one sweep and the beginning of the next.
    pub fn interval(&self) -> Duration {
        self.interval
    }
}

/// Returns the handle and the loop behind it. The loop sweeps every `interval` until the server stops. It logs a sweep
/// that fails, and the next one tries again.
pub fn run(
    sweeper: Sweeper,
    interval: Duration,
    shutdown: Shutdown,
) -> (Cleaner, impl Future<Output = ()> + Send) {
    let (requests, queue) = mpsc::channel(WAITING);
    let last = Last::default();
    let cleaner = Cleaner { requests, interval, last: Arc::clone(&last) };
    (cleaner, sweep_until(sweeper, interval, shutdown, queue, last))
}

async fn sweep_until(
    mut sweeper: Sweeper,
    interval: Duration,
    shutdown: Shutdown,
    mut queue: mpsc::Receiver<Answer>,
    last: Last,
) {
    let mut asked: Option<Answer> = None;
    loop {
        let swept = sweeper.sweep().await;
        match &swept {
            Ok(swept) => swept.log(),
            Err(error) => {
                tracing::error!(error = %chain(error), "the sweep failed; the next one tries again");
            }
        }
        *last.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(LastSweep { ended_at: sweeper.now(), swept: swept.as_ref().ok().cloned() });
        if let Some(asked) = asked.take() {
            // The client that asked may have left.
            let _ = asked.send(swept);
        }
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            // Without a handle no request can come, and only the interval counts.
            Some(request) = queue.recv() => asked = Some(request),
            () = shutdown.requested() => return,
        }
    }
}
