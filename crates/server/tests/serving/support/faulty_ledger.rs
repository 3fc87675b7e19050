//! A ledger that fails or stops where a test tells it to.

use std::sync::Arc;

use async_trait::async_trait;
use cloakroom_core::resource::{BlobKey, Resource, ResourceId, SecretHash, State, UploadHandle};
use cloakroom_storage::ledger::{
    Abandoned, Chosen, Completion, Deletion, Fact, Finish, Forgotten, KeyChange, KeyChanged, Ledger,
    LedgerError, LedgerFacts, Mirror, Observation, Page, PendingResource, Rowless, Totals,
};
use jiff::Timestamp;

use super::faults::{Faults, Step};

/// A ledger with faults.
pub struct FaultyLedger {
    pub inner: Arc<dyn Ledger>,
    pub faults: Faults,
}

#[async_trait]
impl Ledger for FaultyLedger {
    fn follow(&self, mirror: Arc<dyn Mirror>) {
        self.inner.follow(mirror);
    }

    async fn begin(&self, pending: PendingResource) -> Result<(), LedgerError> {
        self.faults.of_ledger(Step::LedgerBegin, self.inner.begin(pending)).await
    }

    async fn note_handle(&self, id: ResourceId, handle: UploadHandle) -> Result<(), LedgerError> {
        self.faults.of_ledger(Step::LedgerNoteHandle, self.inner.note_handle(id, handle)).await
    }

    async fn complete(&self, completion: Completion) -> Result<(), LedgerError> {
        self.faults.of_ledger(Step::LedgerComplete, self.inner.complete(completion)).await
    }

    async fn abandon(&self, id: ResourceId) -> Result<Option<Abandoned>, LedgerError> {
        self.faults.of_ledger(Step::LedgerAbandon, self.inner.abandon(id)).await
    }

    async fn mark_used(&self, id: ResourceId, at: Timestamp) -> Result<bool, LedgerError> {
        self.faults.of_ledger(Step::LedgerMarkUsed, self.inner.mark_used(id, at)).await
    }

    async fn change_read_keys(&self, id: ResourceId, change: KeyChange) -> Result<KeyChanged, LedgerError> {
        self.faults.of_ledger(Step::LedgerOther, self.inner.change_read_keys(id, change)).await
    }

    async fn mark_deleting(&self, decision: Deletion) -> Result<bool, LedgerError> {
        self.faults.of_ledger(Step::LedgerMarkDeleting, self.inner.mark_deleting(decision)).await
    }

    async fn finish(&self, id: ResourceId, finish: Finish) -> Result<bool, LedgerError> {
        let step = match finish {
            Finish::Deleted => Step::LedgerFinishDeletion,
            Finish::Abandoned { .. } => Step::LedgerFinishAbandoned,
        };
        self.faults.of_ledger(step, self.inner.finish(id, finish)).await
    }

    async fn forget(&self, before: Timestamp, most: u64) -> Result<Forgotten, LedgerError> {
        self.faults.of_ledger(Step::LedgerOther, self.inner.forget(before, most)).await
    }

    async fn find(&self, id: ResourceId) -> Result<Option<Resource>, LedgerError> {
        self.faults.of_ledger(Step::LedgerFind, self.inner.find(id)).await
    }

    async fn find_by_secret(&self, hash: SecretHash) -> Result<Chosen, LedgerError> {
        self.faults.of_ledger(Step::LedgerFind, self.inner.find_by_secret(hash)).await
    }

    async fn without_row(&self, keys: &[BlobKey]) -> Result<Vec<Rowless>, LedgerError> {
        self.faults.of_ledger(Step::LedgerWithoutRow, self.inner.without_row(keys)).await
    }

    async fn page(&self, state: State, after: Option<ResourceId>, limit: u32) -> Result<Page, LedgerError> {
        let step = match state {
            State::Pending | State::Deleting => Step::LedgerIdsIn,
            State::Ready => Step::LedgerReady,
            State::Deleted => Step::LedgerOther,
        };
        self.faults.of_ledger(step, self.inner.page(state, after, limit)).await
    }

    async fn observe(&self, observations: Vec<Observation>) -> Result<(), LedgerError> {
        self.faults.of_ledger(Step::LedgerObserve, self.inner.observe(observations)).await
    }

    async fn totals(&self) -> Result<Totals, LedgerError> {
        self.faults.of_ledger(Step::LedgerTotals, self.inner.totals()).await
    }

    async fn facts(&self) -> Result<LedgerFacts, LedgerError> {
        self.faults.of_ledger(Step::LedgerOther, self.inner.facts()).await
    }

    async fn write(&self, fact: Fact) -> Result<(), LedgerError> {
        let step = match fact {
            Fact::Watched(_) => Step::LedgerRememberWatched,
            Fact::Claim(_) => Step::LedgerWriteClaim,
            Fact::Cluster(_) | Fact::Strays { .. } | Fact::Restored(_) => Step::LedgerOther,
        };
        self.faults.of_ledger(step, self.inner.write(fact)).await
    }

    fn changes(&self) -> u64 {
        self.inner.changes()
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}
