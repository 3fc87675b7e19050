//! Finishes what a crash or a failure interrupted.

use std::pin::pin;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::strays::Found;
use super::upload::{Late, tell_of_broken_upload};
use super::{AccessError, Parts, Staging, StraysGo};
use crate::ledger::{Finish, Page};
use cloakroom_core::lock::lock;
use cloakroom_core::resource::{BlobKey, ResourceId, State};
use cloakroom_core::text::chain;

/// How many rows are read together.
const PAGE: u32 = 500;

/// Deletions at once. Each mostly waits for the store, and one tenant's many do not hold up those of others.
pub const DELETIONS_AT_ONCE: usize = 16;

/// What was interrupted, and is finished now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Uploads that were never acknowledged. Their rows and bytes are removed.
    pub uploads: u64,
    /// Deletions that were decided, and are finished now.
    pub deletions: u64,
    /// Bytes that belonged to no row, and are removed.
    pub strays: u64,
}

impl Recovered {
    /// Whether nothing was interrupted.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl Staging {
    /// Finishes interrupted uploads and deletions, and removes strays whose time has come. If `thorough`, it also looks for
    /// bytes that belong to no row, and reads the rows again. It also reads again if a failure of the
    /// ledger left something uncertain. A transfer in flight is left alone. If the ledger is behind, only own uploads and deletions are finished.
    pub async fn recover(&self, thorough: bool, strays_go: StraysGo) -> Result<Recovered, AccessError> {
        let parts = &self.parts;
        parts.begin_batch().await;
        parts.maintain_disk().await?;
        parts.write_uses().await?;
        let uploads = parts.abandon_interrupted().await?;
        let deletions = parts.finish_deletions().await?;
        // Keys are listed before their rows are looked up. So an upload that begins meanwhile cannot be taken for bytes
        // without a row.
        let found = if thorough { Some(parts.all_bytes().await?) } else { None };
        parts.ready.refresh(&*parts.ledger, thorough).await?;
        parts.tell_of_unreadable();
        let unacknowledged = match found {
            Some(found) => parts.sort_out(found).await?,
            None => 0,
        };
        // This comes last, because the rows that were just read tell whether a stray may belong to a damaged one.
        let strays = unacknowledged + parts.remove_strays(strays_go).await?;
        Ok(Recovered { uploads, deletions, strays })
    }
}

impl Parts {
    async fn abandon_interrupted(&self) -> Result<u64, AccessError> {
        let mut abandoned = 0;
        for id in self.all_in(State::Pending).await? {
            match self.abandon_interrupted_one(id).await {
                Ok(is_abandoned) => abandoned += u64::from(is_abandoned),
                Err(error) if error.is_of_one() => tell_of_broken_upload(id, &error),
                Err(error) => return Err(error),
            }
        }
        Ok(abandoned)
    }

    /// Abandons an upload that is not in flight. If another process began it, a whole bundle stays: the ledger may be an
    /// earlier copy, and may have lost that it was acknowledged. Without its row it is a stray.
    async fn abandon_interrupted_one(&self, id: ResourceId) -> Result<bool, AccessError> {
        let is_own = lock(&self.own_uploads).contains(&id);
        if self.capacity.is_in_flight(id) || !is_own && !self.may_abandon().await? {
            return Ok(false);
        }
        let Some(abandoned) = self.ledger.abandon(id).await? else { return Ok(false) };
        if !is_own && self.storage.blobs.facts(BlobKey::for_resource(id)).await?.is_some() {
            self.ledger.finish(id, Finish::Abandoned { late: None }).await?;
        } else {
            // How far it came is not known any more.
            self.remove_abandoned(id, &abandoned, Late::Maybe).await?;
        }
        Ok(true)
    }

    async fn finish_deletions(&self) -> Result<u64, AccessError> {
        let deletions = stream::iter(self.all_in(State::Deleting).await?)
            .map(async |id| (id, self.finish_deletion(id).await));
        let mut endings = pin!(deletions.buffer_unordered(DELETIONS_AT_ONCE));
        let mut finished = 0;
        while let Some((id, ending)) = endings.next().await {
            match ending {
                Ok(is_finished) => finished += u64::from(is_finished),
                // Bundles that cannot be removed must not hold up all the others, however many they are: each sweep meets
                // them again.
                Err(error) if error.is_of_one() => tracing::warn!(
                    resource_id = %id, error = %chain(&error), "could not finish a deletion; the next sweep tries again"
                ),
                Err(error) => return Err(error),
            }
        }
        Ok(finished)
    }

    /// All that has bytes in the store.
    async fn all_bytes(&self) -> Result<Found, AccessError> {
        let arriving = match &self.storage.disk {
            Some(disk) => disk.arriving().await?,
            None => Vec::new(),
        };
        let committed = self.storage.blobs.list().try_collect().await?;
        Ok(Found { arriving, committed })
    }

    async fn all_in(&self, state: State) -> Result<Vec<ResourceId>, AccessError> {
        let (mut ids, mut after) = (Vec::new(), None);
        loop {
            let page = self.ledger.page(state, after, PAGE).await?;
            ids.extend(page.rows.iter().map(Page::id));
            after = page.next;
            if after.is_none() {
                return Ok(ids);
            }
        }
    }
}
