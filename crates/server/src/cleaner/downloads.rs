//! What the cleaner notes of a download: that the resource is used, and that its owner was seen.

use std::sync::Arc;

use super::identity::{Identity, believed};
use crate::owners::{Owners, Presence};
use cloakroom_core::resource::{Ready, Resource};
use cloakroom_core::text::chain;
use cloakroom_staging::{AccessError, Download, Staging};

/// Notes downloads.
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

    /// Notes that bytes are about to be sent: the use, and that the owner is there. An error if the resource is gone
    /// meanwhile.
    pub async fn begin(&self, download: &Download) -> Result<(), AccessError> {
        self.staging.mark_used(download).await?;
        self.note_owner(download.resource()).await;
        Ok(())
    }

    /// A pod that lives for less than the time between two sweeps would otherwise never have been seen.
    async fn note_owner(&self, resource: &Resource<Ready>) {
        let Ready { owner, history, .. } = &resource.stage;
        let is_seen = || believed(self.owners.presence(owner), self.identity.doubt()) == Presence::Present;
        if history.owner_history.seen_at.is_some() || !is_seen() {
            return;
        }
        let owner_history = history.owner_history.present(self.staging.clock().now());
        if let Err(error) = self.staging.observe(&[(resource.id, owner_history)]).await {
            tracing::debug!(resource_id = %resource.id, error = %chain(&error), "its owner was seen, and not noted");
        }
    }
}
