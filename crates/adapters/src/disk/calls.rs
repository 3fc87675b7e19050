//! Calls to the disk, each on a thread that may block.
//!
//! A disk that hangs answers no call, and there are only so many threads. Before they run out, new calls are refused, so
//! that everything else in this process goes on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

use super::DiskError;
use cloakroom_core::lock::lock;

/// After this time a call counts as stuck. A disk under the heaviest load answers sooner.
const STUCK_AFTER: Duration = Duration::from_secs(10);

/// While so many calls are stuck, new ones are refused. They are an eighth of the threads that may block.
const MOST_STUCK: usize = 64;

/// The calls that have not returned. Clones count the same ones.
#[derive(Debug, Clone, Default)]
pub(super) struct DiskCalls(Arc<Mutex<Running>>);

#[derive(Debug, Default)]
struct Running {
    /// Since when, in the order in which they began.
    since: BTreeMap<u64, Instant>,
    next: u64,
}

/// A call that has not returned. It is counted until it is dropped.
struct Call {
    calls: DiskCalls,
    number: u64,
}

impl DiskCalls {
    /// Makes a call, and waits for it.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, DiskError> + Send + 'static,
    ) -> Result<T, DiskError> {
        self.begin(work)?.await.map_err(|_| DiskError::Stopping)?
    }

    /// Makes a call.
    pub(super) fn begin<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, DiskError> + Send + 'static,
    ) -> Result<JoinHandle<Result<T, DiskError>>, DiskError> {
        let call = self.admit(Instant::now())?.count();
        Ok(tokio::task::spawn_blocking(move || {
            let done = work();
            drop(call);
            done
        }))
    }

    /// Makes a call that waits until bytes are on the disk. A healthy disk may take minutes for it, so it never counts as
    /// stuck. Each upload makes one at a time.
    pub(super) fn begin_sync<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, DiskError> + Send + 'static,
    ) -> Result<JoinHandle<Result<T, DiskError>>, DiskError> {
        self.admit(Instant::now())?;
        Ok(tokio::task::spawn_blocking(work))
    }

    /// Returns an error if too many calls are stuck at `now`.
    fn admit(&self, now: Instant) -> Result<&Self, DiskError> {
        let running = lock(&self.0);
        // They are in the order of their age. So if this one is old, as many are.
        let old = running.since.values().nth(MOST_STUCK - 1);
        match old {
            Some(since) if now.saturating_duration_since(*since) > STUCK_AFTER => Err(DiskError::Stuck),
            _ => Ok(self),
        }
    }

    fn count(&self) -> Call {
        self.count_since(Instant::now())
    }

    fn count_since(&self, since: Instant) -> Call {
        let mut running = lock(&self.0);
        let number = running.next;
        running.next += 1;
        running.since.insert(number, since);
        Call { calls: self.clone(), number }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        lock(&self.calls.0).since.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_refused_while_as_many_as_that_are_stuck() {
        let (calls, began) = (DiskCalls::default(), Instant::now());
        let mut running: Vec<Call> = (0..MOST_STUCK).map(|_| calls.count_since(began)).collect();
        let later = began + STUCK_AFTER + Duration::from_millis(1);
        assert!(calls.admit(began + STUCK_AFTER).is_ok(), "a call is not yet stuck");
        assert!(matches!(calls.admit(later), Err(DiskError::Stuck)));
        running.pop();
        assert!(calls.admit(later).is_ok(), "a call has returned");
        running.push(calls.count_since(later));
        assert!(calls.admit(later).is_ok(), "the last of them is new");
    }

    #[tokio::test]
    async fn a_call_counts_until_it_returns_even_if_nobody_waits_for_it() {
        let calls = DiskCalls::default();
        let (release, held) = std::sync::mpsc::channel::<()>();
        let work = calls.begin(move || {
            let _ = held.recv();
            Ok(())
        });
        let work = work.unwrap();
        assert_eq!(lock(&calls.0).since.len(), 1);
        let waiting = tokio::spawn(work);
        waiting.abort();
        assert!(waiting.await.unwrap_err().is_cancelled());
        assert_eq!(lock(&calls.0).since.len(), 1, "the thread is still taken");
        drop(release);
        calls.run(|| Ok(())).await.unwrap();
        while !lock(&calls.0).since.is_empty() {
            tokio::task::yield_now().await;
        }
    }
}
