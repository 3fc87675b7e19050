//! What a ledger remembers beside its rows.

use std::fmt;
use std::str::FromStr;

use cloakroom_core::resource::BlobKey;

use super::{Stray, WatchScope};
use crate::log::{NotAPosition, Position};
use crate::stamp::Claim;

/// All of it. What this version cannot read is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LedgerFacts {
    /// The cluster that was asked about owners, by the uid of its namespace `kube-system`; `None` if none is known.
    pub cluster: Option<String>,
    /// The kinds, with their namespaces, that a server on this ledger once read completely.
    pub watched: Vec<WatchScope>,
    /// The strays that listings with this ledger have found, in the order of their keys.
    pub strays: Vec<Stray>,
    /// The claim on its store; `None` if it never had one on a disk.
    pub claim: Option<Claim>,
    /// The copy that an admin has put back last.
    pub restored: Option<Restored>,
}

/// A ledger in a bucket was put back from an earlier copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restored {
    /// The copy.
    pub copy: Position,
    /// Whether sweeps still wait until an admin lets them delete.
    pub is_behind: bool,
}

/// As the ledger keeps it: the copy, and a word.
impl fmt::Display for Restored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.copy, if self.is_behind { BEHIND } else { RESUMED })
    }
}

impl FromStr for Restored {
    type Err = NotAPosition;

    fn from_str(text: &str) -> Result<Self, NotAPosition> {
        let (copy, word) = text.split_once(' ').ok_or(NotAPosition)?;
        // A word that is damaged keeps the sweeps waiting.
        Ok(Self { copy: copy.parse()?, is_behind: word != RESUMED })
    }
}

const BEHIND: &str = "behind";
const RESUMED: &str = "resumed";

/// A change to what is remembered.
#[derive(Debug)]
pub enum Fact {
    /// Replaces the uid of the cluster; `None` forgets it.
    Cluster(Option<String>),
    /// Adds kinds.
    Watched(Vec<WatchScope>),
    /// Strays count in the bytes of all, and in no account of a holder.
    Strays {
        /// Those to add, unless they are known already.
        found: Vec<Stray>,
        /// Those to remove.
        gone: Vec<BlobKey>,
    },
    /// Replaces the claim on its store. It is no change in the sense of [`Ledger::changes`](super::Ledger::changes).
    Claim(Claim),
    /// Replaces what was put back.
    Restored(Restored),
}
