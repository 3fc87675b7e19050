//! The status of a watch.

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

/// The status of one watch, for the admin's status and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchReport {
    /// The kind that is watched, as uploads name it.
    pub kind: String,
    /// The namespace that is watched; `None` is all.
    pub namespace: Option<String>,
    /// Whether this is the second watch of pods, which has unfinished ones only.
    pub unfinished_only: bool,
    /// The present state.
    pub state: WatchState,
    /// When the watch entered this state.
    pub since: Timestamp,
    /// The last failure, for people; `None` once the watch is ready again.
    pub last_failure: Option<String>,
}

/// The status of one watch, which its task updates.
#[derive(Debug, Clone)]
pub(super) struct WatchRecord {
    pub(super) state: WatchState,
    pub(super) since: Timestamp,
    pub(super) last_failure: Option<String>,
    /// The version of the label keys (see `Wanted::version`) that its last complete list had; `None` before the first
    /// one.
    pub(super) listed_keys: Option<u64>,
}

impl WatchRecord {
    pub(super) fn new() -> Self {
        Self { state: WatchState::Starting, since: Timestamp::now(), last_failure: None, listed_keys: None }
    }

    /// Enters a state. Returns `true` if the state has changed.
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
