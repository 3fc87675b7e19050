//! The progress of one source: failures in a row, the waits between them, and the message when the time is over.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::error::Cause;
use super::observer::FetchObserver;
use crate::client::{Backoff, Failure};
use cloakroom_core::size::format_size;

/// The longest `Retry-After` that a pod obeys for one attempt.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(30);

/// The progress of one source, shared by its attempts.
pub(super) struct Pace {
    what: String,
    backoff: Backoff,
    observer: Arc<dyn FetchObserver>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The failures since bytes last came.
    failures: u32,
    last: Option<Failure>,
    told: Option<Failure>,
    came_bytes: u64,
    total_bytes: Option<u64>,
}

impl Pace {
    pub(super) fn new(what: String, backoff: Backoff, observer: Arc<dyn FetchObserver>) -> Self {
        Self { what, backoff, observer, state: Mutex::default() }
    }

    /// Records that `came_bytes` of `total_bytes` came. This ends the row of failures.
    pub(super) fn progressed(&self, came_bytes: u64, total_bytes: Option<u64>) {
        let mut state = self.state();
        (state.came_bytes, state.total_bytes) = (came_bytes, total_bytes);
        (state.failures, state.last, state.told) = (0, None, None);
    }

    /// Waits after `failure`, longer after each failure in a row. Notifies the observer if the failure is a new one.
    pub(super) async fn wait(&self, failure: Failure) {
        let (wait, is_new) = {
            let mut state = self.state();
            state.failures = state.failures.saturating_add(1);
            let is_new = state.told.as_ref() != Some(&failure);
            let wished = failure.retry_after().unwrap_or_default().min(LONGEST_RETRY_AFTER);
            let wait = self.backoff.delay(state.failures, rand::random()).max(wished);
            (state.told, state.last) = (Some(failure.clone()), Some(failure.clone()));
            (wait, is_new)
        };
        if is_new {
            self.observer.retrying(&self.what, &failure.to_string());
        }
        tokio::time::sleep(wait).await;
    }

    /// Records that all bytes so far must be downloaded again.
    pub(super) fn start_over(&self, why: &str) {
        self.observer.starting_over(&self.what, why);
        self.state().came_bytes = 0;
    }

    /// The cause if the source is not there after `limit`.
    pub(super) fn time_up(&self, limit: Duration) -> Cause {
        let state = self.state();
        match (&state.last, state.total_bytes) {
            (Some(last), _) => Cause::TimeUp { last: last.clone(), limit },
            (None, Some(total)) => {
                let came = format!("only {} of {} came", format_size(state.came_bytes), format_size(total));
                Cause::TooSlow { came, limit }
            }
            (None, None) if state.came_bytes > 0 => {
                Cause::TooSlow { came: format!("only {} came", format_size(state.came_bytes)), limit }
            }
            (None, None) => Cause::TooSlow { came: "no answer came".to_owned(), limit },
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
