//! How a server's watches of owners are, and which cluster it asks, in one word each.

use crate::resource::named;

/// How a watch of owners is.
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

named!(WatchState {
    Starting => "starting",
    Ready => "ready",
    Forbidden => "forbidden",
    Failing => "failing",
    NoSuchKind => "no-such-kind",
    NamespaceGone => "namespace-gone",
});

/// Which cluster is asked about owners, beside the one that they were seen in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterStanding {
    /// There was no answer yet.
    NotAsked,
    /// The one that owners were seen in.
    Same,
    /// No uid is known, and none can be read.
    Unchecked,
    /// Another one, or one that does not show its uid any more.
    Other,
}

named!(ClusterStanding {
    NotAsked => "not-asked",
    Same => "same",
    Unchecked => "unchecked",
    Other => "other",
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_standing_reads_back() {
        for state in WatchState::ALL {
            assert_eq!(state.as_str().parse(), Ok(*state));
        }
        for standing in ClusterStanding::ALL {
            assert_eq!(standing.as_str().parse(), Ok(*standing));
        }
    }
}
