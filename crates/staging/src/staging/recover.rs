//! Finishing what was interrupted.

use super::{AccessError, Parts, Staging};
use crate::ledger::{Authority, Epoch};
use cloakroom_core::resource::{BlobKey, ResourceId, State};
use cloakroom_core::text::chain;

/// Rows looked at together.
const PAGE: u32 = 500;

/// Keys of blobs that are listed together.
const KEYS: usize = 1000;

/// What was found and put right.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Uploads that were never acknowledged: row and bytes removed.
    pub uploads: u64,
    /// Deletions that were decided and not finished: finished.
    pub deletions: u64,
    /// Bytes that no row knows: removed.
    pub orphans: u64,
}

impl Recovered {
    /// Whether there was anything to do.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl Staging {
    /// Finishes interrupted uploads and deletions. If `thorough`, it also removes bytes that no row knows, and reads
    /// again from the ledger what is otherwise kept in memory; this is done as well where a failure of the ledger
    /// left something uncertain. What a lease stands behind is left alone. In that term of the cleaner.
    pub async fn recover(&self, term: Epoch, thorough: bool) -> Result<Recovered, AccessError> {
        let parts = &self.parts;
        parts.keep_reserve().await?;
        parts.write_uses().await?;
        parts.leases.renew().await?;
        let uploads = parts.give_up_interrupted(term).await?;
        let deletions = parts.finish_deletions().await?;
        // Bytes first: they are listed before their rows are looked up, so that an upload that begins meanwhile cannot be
        // taken for an orphan.
        let with_bytes = if thorough { parts.all_keys().await? } else { Vec::new() };
        parts.ledger.refresh(thorough).await?;
        parts.tell_of_unreadable().await?;
        // Last, because what was just read says whether bytes without a row may belong to one.
        Ok(Recovered { uploads, deletions, orphans: parts.remove_orphans(with_bytes).await? })
    }
}

impl Parts {
    /// As long as the id of any row is damaged, bytes without a row may be that row's, and stay.
    async fn remove_orphans(&self, with_bytes: Vec<BlobKey>) -> Result<u64, AccessError> {
        let are_kept = self.ledger.unreadable().await?.has_damaged_ids;
        let (mut removed, mut kept) = (0_u64, 0_u64);
        for key in with_bytes {
            let id = key.resource();
            if self.ledger.state(id).await?.is_some_and(|state| state != State::Deleted) {
                continue;
            }
            if are_kept {
                kept += 1;
                continue;
            }
            match self.storage.blobs.abort(key, None).await {
                Ok(()) => {
                    tracing::warn!(resource_id = %id, "removed bytes that the ledger does not know");
                    removed += 1;
                }
                Err(error) => tracing::warn!(
                    resource_id = %id, error = %chain(&error),
                    "could not remove bytes that the ledger does not know"
                ),
            }
        }
        if kept > 0 {
            tracing::warn!(
                bundles = kept,
                "bytes that the ledger does not know are kept, because they may belong to rows with damaged ids: remove \
                 those rows with cloakroom rm, or mend their ids"
            );
        }
        Ok(removed)
    }

    async fn give_up_interrupted(&self, term: Epoch) -> Result<u64, AccessError> {
        let mut given_up = 0;
        for id in self.all_in(State::Pending).await? {
            if self.give_up(id, Authority::Cleaner(term)).await {
                given_up += 1;
            }
        }
        Ok(given_up)
    }

    async fn finish_deletions(&self) -> Result<u64, AccessError> {
        let mut finished = 0;
        for id in self.all_in(State::Deleting).await? {
            match self.finish_deletion(id).await {
                Ok(()) => finished += 1,
                // One bundle that cannot be removed must not hold up all the others.
                Err(error) if error.is_of_one() => tracing::warn!(
                    resource_id = %id, error = %chain(&error), "could not finish a deletion; the next sweep tries again"
                ),
                Err(error) => return Err(error),
            }
        }
        Ok(finished)
    }

    async fn all_keys(&self) -> Result<Vec<BlobKey>, AccessError> {
        let mut keys: Vec<BlobKey> = Vec::new();
        loop {
            let page = self.storage.blobs.list(keys.last().copied(), KEYS).await?;
            if page.is_empty() {
                return Ok(keys);
            }
            keys.extend(page);
        }
    }

    async fn all_in(&self, state: State) -> Result<Vec<ResourceId>, AccessError> {
        let mut ids: Vec<ResourceId> = Vec::new();
        loop {
            let page = self.ledger.ids_in(state, ids.last().copied(), PAGE).await?;
            if page.is_empty() {
                return Ok(ids);
            }
            ids.extend(page);
        }
    }
}
