//! What a sweep would decide about one resource, for whoever asks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::decide::needs_knowledge;
use super::identity::{Identity, believed};
use super::{Decision, KeepReason, Kept, Policy, Readings, decide};
use crate::owners::{Owners, Presence};
use cloakroom_core::resource::{Life, Owner, ResourceId};
use cloakroom_staging::Staging;

/// What the last sweep would have deleted for lack of an owner, and why it did not: the guard holds it back, or the fresh
/// read did not say the same as the watch. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Withheld(Arc<Mutex<HashMap<ResourceId, KeepReason>>>);

impl Withheld {
    pub(super) fn set(&self, withheld: HashMap<ResourceId, KeepReason>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = withheld;
    }

    fn why(&self, id: ResourceId) -> Option<KeepReason> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&id).copied()
    }
}

/// Decides as a sweep would, without doing anything.
#[derive(Clone)]
pub struct Judge {
    staging: Staging,
    owners: Arc<dyn Owners>,
    policy: Policy,
    withheld: Withheld,
    identity: Identity,
}

/// What is known and decided about a resource at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judgement {
    /// Whether its owner is there.
    pub presence: Presence,
    /// What a sweep would do.
    pub decision: Decision,
}

impl Judge {
    pub(super) fn new(
        staging: Staging,
        owners: Arc<dyn Owners>,
        policy: Policy,
        withheld: Withheld,
        identity: Identity,
    ) -> Self {
        Self { staging, owners, policy, withheld, identity }
    }

    /// Judges one resource. Makes no call and no query.
    pub fn judge(&self, id: ResourceId, owner: &Owner, life: &Life) -> Judgement {
        let presence = believed(self.owners.presence(owner), self.identity.doubt());
        let now = Readings::at(self.staging.clock().now());
        let decision = decide(life, presence, &now, &self.policy);
        let decision = match decision {
            _ if self.staging.is_in_use(id) => kept(KeepReason::Downloading),
            Decision::Delete(reason) if needs_knowledge(reason, presence) => {
                self.withheld.why(id).map_or(decision, kept)
            }
            // Before a sweep has missed its owner for the first time, this is when it goes at the earliest.
            Decision::Keep(Kept { why: KeepReason::NotUsedYet, until: None }) => Decision::Keep(Kept {
                why: KeepReason::NotUsedYet,
                until: Some(life.lifetime.expiry_if_unused(life.created_at)),
            }),
            decision => decision,
        };
        Judgement { presence, decision }
    }
}

fn kept(why: KeepReason) -> Decision {
    Decision::Keep(Kept { why, until: None })
}
