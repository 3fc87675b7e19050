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

    /// What a sweep would do now. Makes no call and no query.
    pub fn judge(&self, id: ResourceId, owner: &Owner, life: &Life) -> Decision {
        let presence = believed(Presence::look_up(owner, &*self.owners), self.identity.doubt());
        let now = self.staging.readings();
        let known = self.last_known.knowledge(owner, presence, self.staging.clock().monotonic());
        let in_use = self.staging.is_in_use(id).then_some(KeepReason::Downloading);
        match decide(life, known, &now, &self.policy) {
            Decision::Keep(kept) if let Some(why) = in_use => Decision::Keep(Kept { why, ..kept }),
            // No sweep has found the owner absent yet, so this is the earliest time of the deletion.
            Decision::Keep(kept @ Kept { why: KeepReason::NotUsedYet, until })
                if life.owner_history.absent_since.is_none() =>
            {
                let expiry = life.lifetime.expiry_if_unused(life.created_at);
                Decision::Keep(Kept { until: until.into_iter().chain([expiry]).min(), ..kept })
            }
            // A sweep deletes by age even then.
            decision @ Decision::Delete(reason) if reason.is_by_age() => decision,
            Decision::Delete(_) if let Some(why) = in_use => Decision::Keep(Kept { why, until: None }),
            decision @ Decision::Delete(reason) if needs_knowledge(reason, presence) => {
                let withheld = self.withheld.why(id);
                withheld.map_or(decision, |why| Decision::Keep(Kept { why, until: None }))
            }
            decision => decision,
        }
    }
}
