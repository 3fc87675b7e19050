//! Tells what a sweep would decide about one resource.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::decide::needs_knowledge;
use super::identity::{Identity, believed};
use super::last_known::LastKnown;
use super::{Decision, KeepReason, Kept, Policy, decide};
use crate::owners::{Owners, Presence};
use cloakroom_core::lock::lock;
use cloakroom_core::resource::{Life, Owner, ResourceId};
use cloakroom_storage::Staging;

/// The resources that the last sweep kept although their owners seem to be gone, each with the reason: the guard held
/// it back, or the fresh read did not confirm the absence. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Withheld(Arc<Mutex<HashMap<ResourceId, KeepReason>>>);

impl Withheld {
    pub(super) fn set(&self, withheld: HashMap<ResourceId, KeepReason>) {
        *lock(&self.0) = withheld;
    }

    fn why(&self, id: ResourceId) -> Option<KeepReason> {
        lock(&self.0).get(&id).copied()
    }
}

/// Decides as a sweep would, without deleting.
#[derive(Clone)]
pub struct Judge {
    staging: Staging,
    owners: Arc<dyn Owners>,
    policy: Policy,
    withheld: Withheld,
    identity: Identity,
    last_known: LastKnown,
}

/// What is known and decided about a resource at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judgement {
    /// Whether its owner exists, by the watches.
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
        last_known: LastKnown,
    ) -> Self {
        Self { staging, owners, policy, withheld, identity, last_known }
    }

    /// Judges one resource. Makes no call and no query.
    pub fn judge(&self, id: ResourceId, owner: &Owner, life: &Life) -> Judgement {
        let presence = believed(self.owners.presence(owner), self.identity.doubt());
        let now = self.staging.readings();
        let known = self.last_known.knowledge(owner, presence, self.staging.clock().monotonic());
        let decision = decide(life, known, &now, &self.policy);
        let decision = match decision {
            _ if self.staging.is_in_use(id) => kept(KeepReason::Downloading),
            Decision::Delete(reason) if needs_knowledge(reason, presence) => {
                self.withheld.why(id).map_or(decision, kept)
            }
            // No sweep has found the owner absent yet, so this is the earliest time of the deletion.
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
