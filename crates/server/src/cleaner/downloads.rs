//! Records downloads: that the resource is used, and that its owner was seen.

use std::sync::Arc;

use super::identity::{Identity, believed};
use crate::owners::{Owners, Presence};
use cloakroom_core::resource::{Ready, Resource};
use cloakroom_core::text::chain;
use cloakroom_storage::ledger::Observation;
use cloakroom_storage::{AccessError, Staging};

/// Records the downloads that the cleaner must know of.
#[derive(Clone)]
pub struct Downloads {
    staging: Staging,
    owners: Arc<dyn Owners>,
    identity: Identity,
}

impl Downloads {
    pub(super) fn new(staging: Staging, owners: Arc<dyn Owners>, identity: Identity) -> Self {
        Self { staging, owners, identity }
    }

    /// Records that bytes are about to be sent: the use, and the presence of the owner. It is an error if the resource
    /// was deleted meanwhile.
    pub async fn begin(&self, resource: &Resource<Ready>) -> Result<(), AccessError> {
        self.staging.mark_used(resource).await?;
        self.note_owner(resource).await;
        Ok(())
    }

    /// Records the owner at the time of the download. A pod that lives only between two sweeps would otherwise never be
    /// seen.
    async fn note_owner(&self, resource: &Resource<Ready>) {
        let Ready { owner, history, .. } = &resource.data;
        let is_seen =
            || believed(Presence::look_up(owner, &*self.owners), self.identity.doubt()) == Presence::Present;
        if history.owner_history.seen_at.is_some() || !is_seen() {
            return;
        }
        let before = history.owner_history;
        let after = before.present(self.staging.clock().now());
        let observation = Observation { id: resource.id, before, after };
        if let Err(error) = self.staging.observe(&[observation]).await {
            tracing::debug!(resource_id = %resource.id, error = %chain(&error), "its owner was seen and not recorded");
        }
    }
}
