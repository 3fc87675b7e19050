//! The part of a cluster that one watch covers.

use cloakroom_core::resource::{Owner, OwnerKind};

/// The objects of one kind, in one namespace or in all of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WatchScope {
    /// The kind.
    pub kind: OwnerKind,
    /// The namespace; `None` is all.
    pub namespace: Option<String>,
}

impl WatchScope {
    /// The scopes that an owner can be found in.
    pub fn covering(owner: &Owner) -> [Self; 2] {
        let in_all = Self { kind: owner.kind().clone(), namespace: None };
        let in_one = Self { namespace: Some(owner.namespace().to_owned()), ..in_all.clone() };
        [in_all, in_one]
    }
}
