//! Deletions: by the ticket's holder, by an admin, and by the cleaner.

use std::sync::Arc;

use jiff::Timestamp;
use tracing::Instrument as _;

use super::transfers::Gate;
use super::{AccessError, Parts, Staging};
use crate::ledger::{Condition, Deletion, Finish, LedgerError};
use crate::store::StoreError;
use cloakroom_core::resource::{BlobKey, DeletionReason, Ready, Resource, ResourceId, ResourceSecret, State};
use cloakroom_core::text::chain;

/// In whose name a resource is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authority {
    /// The sweep: while the ledger is behind its store, it has no right to delete.
    Sweep,
    /// The ticket's holder.
    Ticket,
    /// The server's admin.
    Admin,
}

impl Staging {
    /// Deletes a resource for the holder of its ticket. It succeeds if the resource is deleted already.
    pub async fn release(&self, id: ResourceId, secret: &ResourceSecret) -> Result<(), AccessError> {
        let resource = self.parts.authorized(id, secret).await?;
        let state = resource.state();
        // If the ttl or the largest age has ended the resource, the tombstone keeps that reason and time.
        let ended = resource.into_ready().and_then(|ready| self.parts.ended_by_age(&ready));
        let (at, reason) = match ended {
            Some(ending) => (ending.at, ending.reason),
            None => (self.parts.clock.now(), DeletionReason::Released),
        };
        let deletion = Deletion { id, reason, at, condition: Condition::Always };
        self.parts.delete(state, deletion).await.map(drop)
    }

    /// Deletes a resource for an admin, even if it is in use. Returns `false` if there is no acknowledged resource of
    /// that id.
    pub async fn remove(&self, id: ResourceId) -> Result<bool, AccessError> {
        let state = match self.parts.find(id).await {
            // A row whose state cannot be read may have been acknowledged.
            Err(LedgerError::Unreadable(row)) => Some(row.state.unwrap_or(State::Ready)),
            found => found?.map(|resource| resource.state()),
        };
        let Some(state) = state.filter(|state| *state != State::Pending) else { return Ok(false) };
        let (at, reason) = (self.parts.clock.now(), DeletionReason::Removed);
        let deletion = Deletion { id, reason, at, condition: Condition::Always };
        let is_removed = self.parts.delete(state, deletion).await?;
        self.parts.tell_of_unreadable();
        Ok(is_removed)
    }

    /// Deletes a resource for an admin if it was never downloaded, and no download is in flight. Returns `false` if it
    /// stays.
    pub async fn remove_unused(&self, resource: &Resource<Ready>) -> Result<bool, AccessError> {
        if resource.is_used() {
            return Ok(false);
        }
        self.expire(resource, DeletionReason::Removed, self.parts.clock.now(), Authority::Admin).await
    }

    /// Deletes a resource whose time is up. If the reason is not its age alone, it stays if it was downloaded since the
    /// decision, or if a download is in flight. Returns `false` if it stays.
    pub async fn expire(
        &self,
        resource: &Resource<Ready>,
        reason: DeletionReason,
        at: Timestamp,
        by: Authority,
    ) -> Result<bool, AccessError> {
        let condition = if reason.is_by_age() {
            Condition::Always
        } else if self.is_in_use(resource.id) {
            return Ok(false);
        } else {
            Condition::LastUsedAt(resource.data.history.last_used_at)
        };
        if !self.parts.may_remove(by).await? {
            return Ok(false);
        }
        self.parts.delete(State::Ready, Deletion { id: resource.id, reason, at, condition }).await
    }
}

impl Parts {
    /// Deletes a resource that was in `state`. It goes on if the caller is dropped, because the ledger may have been asked.
    async fn delete(self: &Arc<Self>, state: State, deletion: Deletion) -> Result<bool, AccessError> {
        let parts = Arc::clone(self);
        let deleted = async move { parts.delete_now(state, deletion).await };
        let work = self.background.spawn(deleted.in_current_span());
        self.unless_stalled(work).await?.map_err(|_| AccessError::Store(StoreError::Stopping))?
    }

    async fn delete_now(self: &Arc<Self>, state: State, deletion: Deletion) -> Result<bool, AccessError> {
        let id = deletion.id;
        if state == State::Ready {
            if !self.mark_deleting(deletion).await? {
                return Ok(false);
            }
            self.metrics.deleted(deletion.reason.as_str());
        }
        if state != State::Deleted && !self.finish_deletion(id).await? && state == State::Ready {
            self.finish_after_downloads(id);
        }
        if state == State::Ready {
            tracing::info!(resource_id = %id, reason = %deletion.reason, "deleted");
        }
        Ok(true)
    }

    /// Closes the resource, and then asks the ledger. If the ledger refuses, it is open again.
    async fn mark_deleting(self: &Arc<Self>, deletion: Deletion) -> Result<bool, AccessError> {
        let decision = loop {
            match self.transfers.begin_deletion(deletion.id, deletion.condition == Condition::Always) {
                Gate::Open(Some(decision)) => break decision,
                Gate::Open(None) | Gate::Closed => return Ok(false),
                Gate::Closing(decided) => decided.cancelled().await,
                Gate::Unknown(decision) => drop(self.settle(decision).await?),
            }
        };
        // A download that ended since the decision may have left a use that the ledger could not take.
        if deletion.condition != Condition::Always && self.has_unwritten_use(deletion.id) {
            decision.is(false);
            return Ok(false);
        }
        let marked = match self.ledger.mark_deleting(deletion).await {
            Err(LedgerError::Full) => {
                self.give_up_reserve().await?;
                self.ledger.mark_deleting(deletion).await
            }
            marked => marked,
        };
        match marked {
            Ok(is_marked) => decision.is(is_marked),
            // If the row does not say it now, it will have to say it to the next one who asks.
            Err(_) if self.settle(decision).await.unwrap_or(false) => {
                self.finish_after_downloads(deletion.id);
            }
            Err(_) => {}
        }
        Ok(marked?)
    }

    /// Frees the reserve. On a full disk there may be no room to store that something is deleted or used.
    pub(super) async fn give_up_reserve(&self) -> Result<(), StoreError> {
        tracing::warn!("the disk is full: giving up the reserve to write a change down");
        match &self.storage.disk {
            Some(disk) => disk.release_reserve().await,
            None => Ok(()),
        }
    }

    /// Removes the bytes of a `deleting` row, and leaves the tombstone. It is safe to repeat.
    /// While a download is in flight, the bytes stay, and the row with its charge. Returns `false` for that, or if there was
    /// nothing to finish.
    pub(super) async fn finish_deletion(&self, id: ResourceId) -> Result<bool, AccessError> {
        if self.transfers.is_downloading(id) {
            return Ok(false);
        }
        self.storage.blobs.delete(BlobKey::for_resource(id)).await?;
        let is_finished = self.ledger.finish(id, Finish::Deleted).await?;
        self.transfers.deletion_finished(id);
        Ok(is_finished)
    }

    /// Finishes a deletion once the downloads that are in flight have ended, or have had their time.
    fn finish_after_downloads(self: &Arc<Self>, id: ResourceId) {
        let parts = Arc::clone(self);
        let finished = async move {
            parts.transfers.end(id, parts.limits.deletion_wait).await;
            if let Err(error) = parts.finish_deletion(id).await {
                tracing::warn!(
                    resource_id = %id, error = %chain(&error), "could not finish a deletion; the next sweep tries again"
                );
            }
        };
        self.background.spawn(finished.in_current_span());
    }

    /// Checks and maintains the folder of ledger and bundles. One that was replaced is an error, and a read-only disk too: all that a sweep
    /// does would fail on it, and an alert should say so before a deletion is due.
    pub(super) async fn maintain_disk(&self) -> Result<(), StoreError> {
        let Some(disk) = &self.storage.disk else { return Ok(()) };
        match disk.maintain().await {
            Ok(()) => {}
            Err(error @ (StoreError::Full { .. } | StoreError::Fault(_) | StoreError::Throttled(_))) => {
                tracing::warn!(error = %chain(&error), "no reserve for deletions could be kept");
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
