//! The leases that this server holds, and their renewal.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio_util::sync::CancellationToken;

use super::{Parts, StageError};
use crate::ledger::{Authority, LEASE_RENEWAL, LeaseId, Ledger, LedgerError};
use crate::store::StoreError;
use cloakroom_core::text::chain;

/// All of them.
pub(super) struct Leases {
    ledger: Arc<dyn Ledger>,
    held: Mutex<HashMap<LeaseId, Held>>,
}

struct Held {
    lost: CancellationToken,
    /// Whether the ledger has said that it has it.
    is_taken: bool,
}

/// The lease of one transfer, until it is dropped.
pub(super) struct Lease {
    id: LeaseId,
    lost: CancellationToken,
    leases: Arc<Leases>,
}

impl Leases {
    pub(super) fn new(ledger: Arc<dyn Ledger>) -> Self {
        Self { ledger, held: Mutex::default() }
    }

    /// A new one. The ledger gets to know of it with the first row or resource that it is for.
    pub(super) fn new_lease(self: &Arc<Self>) -> Lease {
        let (id, lost) = (LeaseId::generate(&mut rand::rng()), CancellationToken::new());
        self.held().insert(id, Held { lost: lost.clone(), is_taken: false });
        Lease { id, lost, leases: Arc::clone(self) }
    }

    /// Renews all of them, and tells those transfers that have lost theirs.
    pub(super) async fn renew(&self) -> Result<(), LedgerError> {
        let held: Vec<LeaseId> = self.held().keys().copied().collect();
        if held.is_empty() {
            return Ok(());
        }
        for lost in self.ledger.renew(&held).await? {
            if let Some(held) = self.held().get(&lost).filter(|held| held.is_taken) {
                held.lost.cancel();
            }
        }
        Ok(())
    }

    fn held(&self) -> MutexGuard<'_, HashMap<LeaseId, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    pub(super) fn id(&self) -> LeaseId {
        self.id
    }

    /// The ledger has it. If it says otherwise later, it is lost.
    pub(super) fn taken(&self) {
        if let Some(held) = self.leases.held().get_mut(&self.id) {
            held.is_taken = true;
        }
    }

    /// Cancelled when the ledger has it no more.
    pub(super) fn lost(&self) -> CancellationToken {
        self.lost.clone()
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

/// Renews what is held until the server is closed.
pub(super) async fn keep_renewing(parts: Weak<Parts>) {
    loop {
        tokio::time::sleep(LEASE_RENEWAL).await;
        let Some(parts) = parts.upgrade() else { return };
        if let Err(error) = parts.leases.renew().await {
            tracing::warn!(error = %chain(&error), "could not renew the leases of transfers in flight");
        }
    }
}
