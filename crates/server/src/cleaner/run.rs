//! The loop.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};

use super::{Sweeper, Swept};
use crate::shutdown::Shutdown;
use cloakroom_core::text::chain;
use cloakroom_staging::AccessError;

/// Sweeps that were asked for and wait for the one in progress.
const WAITING: usize = 16;

type Answer = oneshot::Sender<Result<Swept, AccessError>>;

/// Asks the loop for a sweep between two regular ones.
#[derive(Debug, Clone)]
pub struct Cleaner {
    requests: mpsc::Sender<Answer>,
    interval: Duration,
    last: Last,
}

/// The last pass.
#[derive(Debug, Clone)]
pub struct LastSweep {
    /// When it ended.
    pub ended_at: Timestamp,
    /// What it did; `None` if it failed.
    pub swept: Option<Swept>,
}

type Last = Arc<Mutex<Option<LastSweep>>>;

/// The loop has ended: the server stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cleaner has stopped, because the server is about to stop")]
pub struct Stopped;

impl Cleaner {
    /// Sweeps now, and tells what that did.
    pub async fn sweep(&self) -> Result<Result<Swept, AccessError>, Stopped> {
        let (answer, swept) = oneshot::channel();
        self.requests.send(answer).await.map_err(|_| Stopped)?;
        swept.await.map_err(|_| Stopped)
    }

    /// The last pass, if there was one.
    pub fn last(&self) -> Option<LastSweep> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How long after one pass the next one begins.
    pub fn interval(&self) -> Duration {
        self.interval
    }
}

/// The handle, and the loop that it speaks to: a sweep every `interval` until the server stops. A pass that fails is
/// logged and the next one tries again.
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
            // Whoever asked may have gone.
            let _ = asked.send(swept);
        }
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            // When nobody can ask any more, only the interval counts.
            Some(request) = queue.recv() => asked = Some(request),
            () = shutdown.requested() => return,
        }
    }
}
