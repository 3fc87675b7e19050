//! How a watch is, and since when.

use jiff::Timestamp;

use super::WatchState;
use cloakroom_cluster::ApiFailure;

/// How a watch is after this failure.
pub(super) fn state_after(failure: &ApiFailure) -> WatchState {
    match failure {
        ApiFailure::Forbidden { .. } => WatchState::Forbidden,
        ApiFailure::NotFound { .. } => WatchState::NoSuchKind,
        _ => WatchState::Failing,
    }
}

/// One watch, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchReport {
    /// What it watches.
    pub kind: String,
    /// Where; everywhere if `None`.
    pub namespace: Option<String>,
    /// Whether it is the second watch of pods, of those that are not finished.
    pub unfinished_only: bool,
    /// How it is.
    pub state: WatchState,
    /// Since when.
    pub since: Timestamp,
    /// What went wrong last.
    pub last_failure: Option<String>,
}

/// How one watch is, as its task writes it down.
#[derive(Debug, Clone)]
pub(super) struct WatchRecord {
    pub(super) state: WatchState,
    pub(super) since: Timestamp,
    pub(super) last_failure: Option<String>,
    /// The version of the label keys (see `Wanted::version`) that its last complete list had.
    pub(super) listed_keys: Option<u64>,
}

impl WatchRecord {
    pub(super) fn new() -> Self {
        Self { state: WatchState::Starting, since: Timestamp::now(), last_failure: None, listed_keys: None }
    }

    /// `true` if the state is another one than before.
    pub(super) fn enter(&mut self, state: WatchState, failure: Option<&ApiFailure>) -> bool {
        if let Some(failure) = failure {
            self.last_failure = Some(failure.to_string());
        }
        if self.state == state {
            return false;
        }
        if state == WatchState::Ready {
            self.last_failure = None;
        }
        (self.state, self.since) = (state, Timestamp::now());
        true
    }
}
