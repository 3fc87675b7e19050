//! How a watch is, and since when.

use jiff::Timestamp;

use crate::kubernetes::ApiFailure;

/// How a watch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchState {
    /// Its first list is not complete.
    Starting,
    /// What it knows can be relied on, until a fresh read says otherwise.
    Ready,
    /// The API server does not allow it: 403.
    Forbidden,
    /// It broke, and is being made anew.
    Failing,
    /// The cluster does not have this kind.
    NoSuchKind,
    /// The namespace that it looks at does not exist (any more), and so nothing in it.
    NamespaceGone,
}

impl WatchState {
    /// Every value.
    pub const ALL: [Self; 6] =
        [Self::Starting, Self::Ready, Self::Forbidden, Self::Failing, Self::NoSuchKind, Self::NamespaceGone];

    /// The stable name, as metrics and `cloakroom ls` have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Forbidden => "forbidden",
            Self::Failing => "failing",
            Self::NoSuchKind => "no-such-kind",
            Self::NamespaceGone => "namespace-gone",
        }
    }

    pub(super) fn after(failure: &ApiFailure) -> Self {
        match failure {
            ApiFailure::Forbidden { .. } => Self::Forbidden,
            ApiFailure::NotFound { .. } => Self::NoSuchKind,
            _ => Self::Failing,
        }
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
pub(super) struct Standing {
    pub(super) state: WatchState,
    pub(super) since: Timestamp,
    pub(super) last_failure: Option<String>,
    /// The version of the label keys (see `Wanted::version`) that its last complete list had.
    pub(super) listed_keys: Option<u64>,
}

impl Standing {
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
