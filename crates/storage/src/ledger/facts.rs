//! What a ledger remembers beside its rows.

use cloakroom_core::resource::BlobKey;

use super::{Stray, WatchScope};
use crate::stamp::Claim;

/// All of it. What this version cannot read is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The cluster that was asked about owners, by the uid of its namespace `kube-system`; `None` if none is known.
    pub cluster: Option<String>,
    /// The kinds, with their namespaces, that a server on this ledger once read completely.
    pub watched: Vec<WatchScope>,
    /// The strays that listings with this ledger have found, in the order of their keys.
    pub strays: Vec<Stray>,
    /// The claim on its store; `None` if it never had a store.
    pub claim: Option<Claim>,
}

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
}
