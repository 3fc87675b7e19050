//! How one source gets on: failures in a row, waits in between, and what to say when time is up.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::error::Cause;
use super::observer::FetchObserver;
use crate::client::Failure;
use cloakroom_core::retry::{Backoff, Failures};
use cloakroom_core::size::format_size;

/// The retries of one source.
pub(super) struct SourceRetries {
    what: String,
    backoff: Backoff,
    observer: Arc<dyn FetchObserver>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Since bytes came last.
    failures: Failures<Failure>,
    last: Option<Failure>,
    came_bytes: u64,
    total_bytes: Option<u64>,
}

impl SourceRetries {
    pub(super) fn new(what: String, backoff: Backoff, observer: Arc<dyn FetchObserver>) -> Self {
        Self { what, backoff, observer, state: Mutex::default() }
    }

    /// So many bytes of so many came: whatever failed before is over.
    pub(super) fn progressed(&self, came_bytes: u64, total_bytes: Option<u64>) {
        let mut state = self.state();
        (state.came_bytes, state.total_bytes) = (came_bytes, total_bytes);
        state.failures.end();
        state.last = None;
    }

    /// Waits after `failure`, longer each time; tells about it if it is a new one.
    pub(super) async fn wait(&self, failure: Failure) {
        let (wait, is_new) = {
            let mut state = self.state();
            state.last = Some(failure.clone());
            let wait = state.failures.wait(&self.backoff, failure.retry_after(), rand::random());
            (wait, state.failures.is_news(failure.clone()))
        };
        if is_new {
            self.observer.retrying(&self.what, &failure.to_string());
        }
        tokio::time::sleep(wait).await;
    }

    /// All that came has to come again.
    pub(super) fn start_over(&self, why: &str) {
        self.observer.starting_over(&self.what, why);
        self.state().came_bytes = 0;
    }

    /// Why the source is not there after `limit`.
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
