//! Why a resource stays.

use super::named::named;

/// Why a resource stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// Its owner exists.
    OwnerPresent,
    /// Its owner's pods finished, and count as present for a while.
    OwnerFinished,
    /// Nobody downloaded it yet, and there is still time.
    NotUsedYet,
    /// Its owner is gone, but not for long enough.
    OwnerGone,
    /// It was downloaded, its owner was never seen, and may still come.
    OwnerNotSeenYet,
    /// Nobody can tell whether its owner exists.
    OwnerUnknown(Unknown),
    /// Used, and no cluster is asked about its owner.
    OwnersNotAsked,
    /// Somebody is downloading it.
    Downloading,
    /// It would go, with more than half of all others: the sweep waits for that to prove true.
    Held,
}

/// Why the presence of an owner is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unknown {
    /// The watch of this kind has not completed its first list.
    Starting,
    /// The watch broke and has not recovered, or a fresh read failed.
    Failing,
    /// The API server does not let this server look at this kind, or in this namespace (403).
    Forbidden,
    /// The cluster does not have this kind (any more).
    NoSuchKind,
    /// The namespace is not one of those that this server was told to look at.
    OtherNamespace,
    /// Resources ask for so many label keys that those of this owner are not kept.
    TooManyLabelKeys,
    /// Another cluster answers than the one that owners were seen in, or it does not show that it is the same.
    OtherCluster,
}

named!(Why {
    OwnerPresent => "owner-present",
    OwnerFinished => "owner-finished",
    NotUsedYet => "not-used-yet",
    OwnerGone => "owner-gone",
    OwnerNotSeenYet => "owner-not-seen-yet",
    OwnersNotAsked => "owners-not-asked",
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
    fn every_reason_to_stay_reads_back() {
        for why in Why::ALL {
            assert_eq!(why.as_str().parse(), Ok(*why));
        }
    }
}
