//! The ready resources, for callers that look at all of them.

use super::{AccessError, Staging};
use crate::ledger::{LedgerError, Observation};
use crate::ready::Listed;
use cloakroom_core::lock::lock;
use cloakroom_core::resource::ResourceId;

/// How many changes of owners are written together.
const TOGETHER: usize = 1000;

impl Staging {
    /// Up to `limit` ready resources with ids after `after`, in the order of their ids. Empty if there are no more.
    pub fn ready(&self, after: Option<ResourceId>, limit: usize) -> Vec<Listed> {
        self.parts.ready.page(after, limit)
    }

    /// Writes what a sweep saw of owners. If the disk is full, it gives up the reserve for that, because only deletions
    /// make room, and they depend on this. Returns `false` if there is no room even then.
    pub async fn observe_for_sweep(&self, observations: &[Observation]) -> Result<bool, AccessError> {
        match self.observe(observations).await {
            Err(LedgerError::Full) => self.parts.give_up_reserve().await?,
            written => return Ok(written.map(|()| true)?),
        }
        match self.observe(observations).await {
            Err(LedgerError::Full) => Ok(false),
            written => Ok(written.map(|()| true)?),
        }
    }

    /// Writes what was seen of owners.
    pub async fn observe(&self, observations: &[Observation]) -> Result<(), LedgerError> {
        for part in observations.chunks(TOGETHER) {
            self.parts.ledger.observe(part.to_vec()).await?;
        }
        Ok(())
    }

    /// Whether a download is in flight, or a use is not written yet.
    pub fn is_in_use(&self, id: ResourceId) -> bool {
        self.parts.transfers.is_downloading(id) || lock(&self.parts.unwritten_uses).contains_key(&id)
    }
}
