//! What a sweep would decide about one resource, for whoever asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::decide::needs_knowledge;
use super::{Decision, Kept, Policy, Readings, Why, decide};
use crate::owners::{Owners, Presence};
use crate::resource::{Life, Owner, Resource, ResourceId};
use crate::staging::Staging;
use crate::telemetry::chain;

/// Decides as a sweep would, without doing anything.
#[derive(Clone)]
pub struct Judge {
    staging: Staging,
    owners: Arc<dyn Owners>,
    policy: Policy,
    /// Whether the sweeper holds a mass deletion back.
    is_holding: Arc<AtomicBool>,
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
        is_holding: Arc<AtomicBool>,
    ) -> Self {
        Self { staging, owners, policy, is_holding }
    }

    /// Who knows about owners.
    pub fn owners(&self) -> &dyn Owners {
        &*self.owners
    }

    /// Notes that the owner is there at the first download: a pod that lives for less than the time between two
    /// sweeps would otherwise never have been seen.
    pub async fn look_at_download(&self, resource: &Resource) {
        let Some(owner) = resource.owner.as_ref().filter(|_| resource.sighting.seen_at.is_none()) else {
            return;
        };
        if self.owners.presence(owner) != Presence::Present {
            return;
        }
        let sighting = resource.sighting.present(self.staging.clock().now());
        if let Err(error) = self.staging.observe(vec![(resource.id, sighting)]).await {
            tracing::debug!(resource_id = %resource.id, error = %chain(&error), "its owner was seen, and not noted");
        }
    }

    /// Judges one resource. Makes no call and no query.
    pub fn judge(&self, id: ResourceId, owner: &Owner, life: &Life) -> Judgement {
        let presence = self.owners.presence(owner);
        let now = Readings::at(self.staging.clock().now());
        let decision = match decide(life, presence, &now, &self.policy) {
            _ if self.staging.is_in_use(id) => kept(Why::Downloading),
            Decision::Delete(reason)
                if needs_knowledge(reason, presence) && self.is_holding.load(Ordering::Relaxed) =>
            {
                kept(Why::Held)
            }
            decision => decision,
        };
        Judgement { presence, decision }
    }
}

fn kept(why: Why) -> Decision {
    Decision::Keep(Kept { why, until: None })
}
