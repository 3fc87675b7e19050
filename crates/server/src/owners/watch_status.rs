//! The status of a watch.

use std::time::Duration;

use jiff::Timestamp;

use super::WatchState;
use cloakroom_cluster::ApiFailure;
use cloakroom_core::clock::Clock;
use cloakroom_core::resource::OwnerKind;

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
    pub kind: OwnerKind,
    /// The namespace that is watched; `None` is all.
    pub namespace: Option<String>,
    /// Whether this is the second watch of pods, which has unfinished ones only.
    pub unfinished_only: bool,
    pub state: WatchState,
    /// When the watch entered this state.
    pub since: Timestamp,
    /// The last failure, for people; `None` once the watch is ready again.
    pub last_failure: Option<String>,
    /// When it last knew all objects, by the monotonic clock; the present time if it is ready. `None` if it never did.
    pub complete_at: Option<Duration>,
}

/// The status of one watch, which its task updates.
#[derive(Debug, Clone)]
pub(super) struct WatchRecord {
    pub(super) state: WatchState,
    pub(super) since: Timestamp,
    pub(super) last_failure: Option<String>,
    /// When it was last ready, by the monotonic clock, if it is not ready now.
    was_complete_at: Option<Duration>,
    /// The version of the label keys (see `Wanted::version`) that its last complete list had; `None` before the first
    /// one.
    pub(super) listed_keys: Option<u64>,
}

impl WatchRecord {
    pub(super) fn new(clock: &dyn Clock) -> Self {
        Self {
            state: WatchState::Starting,
            since: clock.now(),
            last_failure: None,
            was_complete_at: None,
            listed_keys: None,
        }
    }

    /// When the watch last knew all objects, by the monotonic clock.
    pub(super) fn complete_at(&self, clock: &dyn Clock) -> Option<Duration> {
        if self.state == WatchState::Ready { Some(clock.monotonic()) } else { self.was_complete_at }
    }

    /// Enters a state. Returns `true` if the state has changed.
    pub(super) fn enter(
        &mut self,
        state: WatchState,
        failure: Option<&ApiFailure>,
        clock: &dyn Clock,
    ) -> bool {
        if let Some(failure) = failure {
            self.last_failure = Some(failure.to_string());
        }
        if self.state == state {
            return false;
        }
        if state == WatchState::Ready {
            self.last_failure = None;
        }
        self.was_complete_at = self.complete_at(clock);
        (self.state, self.since) = (state, clock.now());
        true
    }
}
