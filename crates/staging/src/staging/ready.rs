//! What is ready, for those who look at all of it.

use std::collections::BTreeMap;

use super::{AccessError, Staging};
use crate::ledger::{LedgerError, Listed};
use cloakroom_core::resource::{Owner, ResourceId, Sighting};

/// Sightings written down together.
const TOGETHER: usize = 1000;

impl Staging {
    /// Up to `limit` ready resources, in the order of their ids, after `after`; fewer where owners must be looked up, and
    /// none if there are no more.
    pub async fn ready(&self, after: Option<ResourceId>, limit: usize) -> Result<Vec<Listed>, LedgerError> {
        self.parts.ledger.listed(after, limit).await
    }

    /// The owners of those of `ids` that are ready.
    pub async fn owners(&self, ids: &[ResourceId]) -> Result<BTreeMap<ResourceId, Owner>, LedgerError> {
        self.parts.ledger.owners(ids).await
    }

    /// Who uploaded those of `ids` that are ready, as far as that is known.
    pub async fn uploaders(&self, ids: &[ResourceId]) -> Result<BTreeMap<ResourceId, String>, LedgerError> {
        self.parts.ledger.uploaders(ids).await
    }

    /// Writes down what a sweep saw of owners. On a full disk that is worth the reserve: only deletions make room, and
    /// they wait for this. `false` if there is no room even so.
    pub async fn observe_for_sweep(&self, sightings: &[(ResourceId, Sighting)]) -> Result<bool, AccessError> {
        match self.observe(sightings).await {
            Err(LedgerError::Full) => self.parts.give_up_reserve().await?,
            written => return Ok(written.map(|()| true)?),
        }
        match self.observe(sightings).await {
            Err(LedgerError::Full) => Ok(false),
            written => Ok(written.map(|()| true)?),
        }
    }

    /// Writes down what was seen of owners.
    pub async fn observe(&self, sightings: &[(ResourceId, Sighting)]) -> Result<(), LedgerError> {
        for part in sightings.chunks(TOGETHER) {
            self.parts.ledger.observe(part.to_vec()).await?;
        }
        Ok(())
    }

    /// Whether somebody is downloading it at this moment.
    pub fn is_in_use(&self, id: ResourceId) -> bool {
        self.parts.transfers.is_downloading(id) || self.parts.unwritten_uses().contains_key(&id)
    }
}
