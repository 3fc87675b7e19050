//! The leases that this server holds, and their renewal.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::{Parts, StageError};
use crate::ledger::{Authority, LEASE_RENEWAL, LeaseId, Ledger, LedgerError};
use crate::store::StoreError;
use crate::telemetry::chain;

/// All of them.
pub(super) struct Leases {
    ledger: Arc<dyn Ledger>,
    held: Mutex<HashSet<LeaseId>>,
}

/// The lease of one transfer, until it is dropped.
pub(super) struct Lease {
    id: LeaseId,
    leases: Arc<Leases>,
}

impl Leases {
    pub(super) fn new(ledger: Arc<dyn Ledger>) -> Self {
        Self { ledger, held: Mutex::default() }
    }

    /// A new one. The ledger gets to know of it with the first row or resource that it is for.
    pub(super) fn new_lease(self: &Arc<Self>) -> Lease {
        let id = LeaseId::generate(&mut rand::rng());
        self.held().insert(id);
        Lease { id, leases: Arc::clone(self) }
    }

    /// Renews all of them. What has lost its lease finds out with its next step.
    pub(super) async fn renew(&self) -> Result<(), LedgerError> {
        let held: Vec<LeaseId> = self.held().iter().copied().collect();
        if !held.is_empty() {
            self.ledger.renew(&held).await?;
        }
        Ok(())
    }

    fn held(&self) -> MutexGuard<'_, HashSet<LeaseId>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    pub(super) fn id(&self) -> LeaseId {
        self.id
    }

    /// In its name its upload is given up.
    pub(super) fn authority(&self) -> Authority {
        Authority::Uploader(self.id)
    }

    /// Why a step of its upload failed: where another server has given the upload up, and removed its bytes, that is why.
    pub(super) async fn why(&self, error: StoreError) -> StageError {
        let is_lost = self.leases.ledger.renew(&[self.id]).await.is_ok_and(|lost| !lost.is_empty());
        if is_lost { StageError::GivenUp } else { error.into() }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.leases.held().remove(&self.id);
        self.leases.ledger.let_go(self.id);
    }
}

/// Renews what is held for as long as there is anything to renew it for.
pub(super) async fn keep_renewing(parts: Weak<Parts>) {
    loop {
        tokio::time::sleep(LEASE_RENEWAL).await;
        let Some(parts) = parts.upgrade() else { return };
        if let Err(error) = parts.leases.renew().await {
            tracing::warn!(error = %chain(&error), "could not renew the leases of transfers in flight");
        }
    }
}
