//! The states of a resource, and the reasons for its deletion.

use super::named::named;

/// `pending → ready → deleting → deleted`. The row of a refused upload is removed while it is `pending`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Its bytes are still arriving.
    Pending,
    /// Its upload was acknowledged: it can be downloaded, and survives a crash.
    Ready,
    /// Its bytes are being removed.
    Deleting,
    /// Its bytes are gone. A small tombstone remains, so that its ticket is answered with the reason.
    Deleted,
}

/// Why a resource was deleted. The ledger, the log and the answer to its ticket use the same word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeletionReason {
    /// The holder of its ticket released it.
    Released,
    /// No download happened within its unused timeout.
    Unused,
    /// No download happened within the server's `--max-unused`, and whether its owner exists was not known, or it has
    /// none.
    MaxUnusedReached,
    /// Its `ttl` was reached.
    TtlReached,
    /// The server's `--max-age` was reached.
    MaxAgeReached,
    /// Its owner was seen, and is gone.
    Orphaned,
    /// Its owner's pods finished, and the time that finished pods count as present is over.
    OwnerFinished,
    /// It was downloaded, and its owner was never seen.
    OwnerNeverSeen,
    /// It has no owner, and was not read again within its unused timeout.
    NotReadAgain,
    /// An admin of the server removed it.
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
    NotReadAgain => "not-read-again",
    Removed => "removed",
});

impl DeletionReason {
    /// Whether the age of the resource alone is the reason, whether it is used or not.
    pub fn is_by_age(self) -> bool {
        matches!(self, Self::TtlReached | Self::MaxAgeReached)
    }
}

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
