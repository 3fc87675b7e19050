//! The progress of one source: failures in a row, the waits between them, and the message when the time is over.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::error::SourceCause;
use super::observer::FetchObserver;
use crate::client::Failure;
use cloakroom_core::lock::lock;
use cloakroom_core::retry::{Backoff, Failures};
use cloakroom_core::size::format_size;

/// The progress and the retries of one source, shared by its attempts.
pub(super) struct SourceRetries {
    what: String,
    backoff: Backoff,
    observer: Arc<dyn FetchObserver>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The failures since bytes last came.
    failures: Failures<Failure>,
    last: Option<Failure>,
    came_bytes: u64,
    total_bytes: Option<u64>,
}

impl SourceRetries {
    pub(super) fn new(what: String, backoff: Backoff, observer: Arc<dyn FetchObserver>) -> Self {
        Self { what, backoff, observer, state: Mutex::default() }
    }

    /// Records that `came_bytes` of `total_bytes` came. This ends the row of failures.
    pub(super) fn progressed(&self, came_bytes: u64, total_bytes: Option<u64>) {
        let mut state = lock(&self.state);
        (state.came_bytes, state.total_bytes) = (came_bytes, total_bytes);
        state.failures.end();
        state.last = None;
        drop(state);
        self.observer.progressed(&self.what, came_bytes, total_bytes);
    }

    /// Waits after `failure`, longer after each failure in a row. Notifies the observer if the failure is a new one.
    pub(super) async fn wait(&self, failure: Failure) {
        let (wait, is_new) = {
            let mut state = lock(&self.state);
            state.last = Some(failure.clone());
            let wait = state.failures.wait(&self.backoff, failure.retry_after(), rand::random());
            (wait, state.failures.is_news(failure.clone()))
        };
        if is_new {
            self.observer.retrying(&self.what, &failure.to_string());
        }
        tokio::time::sleep(wait).await;
    }

    /// Records that all bytes so far must be downloaded again.
    pub(super) fn start_over(&self, why: &str) {
        self.observer.starting_over(&self.what, why);
        lock(&self.state).came_bytes = 0;
    }

    /// The cause if the source is not there after `limit`.
    pub(super) fn time_up(&self, limit: Duration) -> SourceCause {
        let state = lock(&self.state);
        match (&state.last, state.total_bytes) {
            (Some(last), _) => SourceCause::TimeUp { last: last.clone(), limit },
            (None, Some(total)) => {
                let came = format!("only {} of {} came", format_size(state.came_bytes), format_size(total));
                SourceCause::TooSlow { came, limit }
            }
            (None, None) if state.came_bytes > 0 => {
                SourceCause::TooSlow { came: format!("only {} came", format_size(state.came_bytes)), limit }
            }
            (None, None) => SourceCause::TooSlow { came: "no answer came".to_owned(), limit },
        }
    }
}
