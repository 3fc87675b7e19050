//! Where a resource is in its life, and why it ended.

use std::fmt;
use std::str::FromStr;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

/// A word that is none of the known names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("“{0}” is not a known name")]
pub struct UnknownName(pub String);

macro_rules! named {
    ($type:ident { $($variant:ident => $name:literal),+ $(,)? }) => {
        impl $type {
            /// Every value.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The stable name.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $type {
            type Err = UnknownName;

            fn from_str(text: &str) -> Result<Self, UnknownName> {
                match text {
                    $($name => Ok(Self::$variant),)+
                    _ => Err(UnknownName(text.to_owned())),
                }
            }
        }
    };
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
