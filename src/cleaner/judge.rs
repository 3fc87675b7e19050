//! What a sweep would decide about one resource, for whoever asks.

use std::sync::Arc;

use super::{Decision, Policy, Readings, Why, decide};
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
    /// Judges by what `owners` knows.
    pub fn new(staging: Staging, owners: Arc<dyn Owners>, policy: Policy) -> Self {
        Self { staging, owners, policy }
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
            Decision::Keep(kept) if self.staging.is_in_use(id) => {
                Decision::Keep(super::Kept { why: Why::Downloading, ..kept })
            }
            decision => decision,
        };
        Judgement { presence, decision }
    }
}
