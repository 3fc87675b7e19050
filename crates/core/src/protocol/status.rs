//! The status of a server's watches of owners, and of the cluster that it asks, in one word each.

use crate::resource::named;

/// The status of a watch of owners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchState {
    /// Its first list is not complete yet.
    Starting,
    /// Its knowledge is current, until a fresh read shows otherwise.
    Ready,
    /// The API server does not allow it: 403.
    Forbidden,
    /// It broke, and is being started again.
    Failing,
    /// The cluster does not have this kind.
    NoSuchKind,
    /// The namespace that it watches does not exist, or no longer exists. So nothing exists in it.
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

/// Which cluster answers questions about owners, compared with the one that owners were seen in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterMatch {
    /// There was no answer yet.
    NotAsked,
    /// The cluster that owners were seen in.
    Same,
    /// No uid is known, and none can be read.
    Unchecked,
    /// Another cluster, or one that no longer shows its uid.
    Other,
}

named!(ClusterMatch {
    NotAsked => "not-asked",
    Same => "same",
    Unchecked => "unchecked",
    Other => "other",
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_reads_back() {
        for state in WatchState::ALL {
            assert_eq!(state.as_str().parse(), Ok(*state));
        }
        for standing in ClusterMatch::ALL {
            assert_eq!(standing.as_str().parse(), Ok(*standing));
        }
    }
}
