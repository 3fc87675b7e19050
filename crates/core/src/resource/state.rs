//! Where a resource is in its life, and why it ended.

use super::named::named;

/// `pending → ready → deleting → deleted`; a refused upload goes from `pending` to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Its bytes are still arriving.
    Pending,
    /// Acknowledged: it can be downloaded, and survives a crash.
    Ready,
    /// Its bytes are being removed.
    Deleting,
    /// Gone; a small tombstone remains, so that its ticket gets an honest answer.
    Deleted,
}

/// Why a resource was deleted. The same word stands in the log, in the answer and in the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeletionReason {
    /// Its ticket holder released it.
    Released,
    /// Nobody downloaded it within its unused timeout.
    Unused,
    /// Nobody downloaded it within the server's `--max-unused`, and whether its owner exists could not be known.
    MaxUnusedReached,
    /// Its `ttl` was reached.
    TtlReached,
    /// The server's `--max-age` was reached.
    MaxAgeReached,
    /// Its owner was there, and is gone.
    Orphaned,
    /// Its owner's pods finished, and the time for which they are kept is over.
    OwnerFinished,
    /// It was downloaded, and its owner never came.
    OwnerNeverSeen,
    /// The server's admin removed it.
    Removed,
}

named!(State { Pending => "pending", Ready => "ready", Deleting => "deleting", Deleted => "deleted" });
named!(DeletionReason {
    Released => "released",
    Unused => "unused",
    MaxUnusedReached => "max-unused-reached",
    TtlReached => "ttl-reached",
    MaxAgeReached => "max-age-reached",
    Orphaned => "orphaned",
    OwnerFinished => "owner-finished",
    OwnerNeverSeen => "owner-never-seen",
    Removed => "removed",
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back() {
        for state in State::ALL {
            assert_eq!(state.as_str().parse(), Ok(*state));
        }
        for reason in DeletionReason::ALL {
            assert_eq!(reason.as_str().parse(), Ok(*reason));
        }
        assert!("gone".parse::<State>().is_err());
    }
}
