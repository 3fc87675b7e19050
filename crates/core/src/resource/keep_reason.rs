//! The reasons for which a resource is kept.

use super::named::named;

/// Why the cleaner keeps a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeepReason {
    /// Its owner exists.
    OwnerPresent,
    /// All pods of its owner finished, and still count as present for a while.
    OwnerFinished,
    /// It was not downloaded yet, and its unused timeout is not over.
    NotUsedYet,
    /// Its owner is gone, but not for as long as the grace.
    OwnerGone,
    /// It was downloaded, its owner was never seen, and the owner may still come.
    OwnerNotSeenYet,
    /// The server cannot tell whether its owner exists.
    OwnerUnknown(Unknown),
    /// It was downloaded, and this server asks no cluster about owners.
    OwnersNotAsked,
    /// It has no owner, and was never read whole.
    NotReadYet,
    /// It has no owner, and was read within its unused timeout.
    ReadRecently,
    /// A download is in flight.
    Downloading,
    /// Its owner vanished together with more than half of the others. The sweep waits until that proves to be true.
    Held,
}

/// Why the server does not know whether an owner exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unknown {
    /// The watch of this kind has not completed its first list.
    Starting,
    /// The watch broke and has not recovered, or a fresh read failed.
    Failing,
    /// The API server does not let this server read this kind, or this namespace (403).
    Forbidden,
    /// The cluster does not have this kind, or no longer has it.
    NoSuchKind,
    /// The namespace is none of those that this server may read.
    OtherNamespace,
    /// Resources have more label keys than the server watches, and this owner's are among the others.
    TooManyLabelKeys,
    /// Another cluster answers than the one that owners were seen in, or one that does not show which one it is.
    OtherCluster,
}

named!(KeepReason {
    OwnerPresent => "owner-present",
    OwnerFinished => "owner-finished",
    NotUsedYet => "not-used-yet",
    OwnerGone => "owner-gone",
    OwnerNotSeenYet => "owner-not-seen-yet",
    OwnersNotAsked => "owners-not-asked",
    NotReadYet => "not-read-yet",
    ReadRecently => "read-recently",
    Downloading => "downloading",
    Held => "held",
    OwnerUnknown(Unknown::Starting) => "watch-starting",
    OwnerUnknown(Unknown::Failing) => "watch-failing",
    OwnerUnknown(Unknown::Forbidden) => "forbidden",
    OwnerUnknown(Unknown::NoSuchKind) => "no-such-kind",
    OwnerUnknown(Unknown::OtherNamespace) => "other-namespace",
    OwnerUnknown(Unknown::TooManyLabelKeys) => "too-many-label-keys",
    OwnerUnknown(Unknown::OtherCluster) => "other-cluster",
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_keep_reason_reads_back() {
        for why in KeepReason::ALL {
            assert_eq!(why.as_str().parse(), Ok(*why));
        }
    }
}
