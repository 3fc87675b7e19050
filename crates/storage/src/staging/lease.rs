//! The leases that this server holds, and their renewal.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio_util::sync::CancellationToken;

use super::{Parts, UploadError};
use crate::ledger::{Authority, LeaseId, Ledger, LedgerError};
use crate::store::StoreError;
use cloakroom_core::text::chain;

/// All leases of this server.
pub(super) struct Leases {
    ledger: Arc<dyn Ledger>,
    held: Mutex<HashMap<LeaseId, Held>>,
}

struct Held {
    lost: CancellationToken,
    /// Whether the ledger has confirmed the lease.
    is_taken: bool,
}

/// The lease of one transfer. Dropping it ends the lease.
pub(super) struct Lease {
    id: LeaseId,
    lost: CancellationToken,
    leases: Arc<Leases>,
}

impl Leases {
    pub(super) fn new(ledger: Arc<dyn Ledger>) -> Self {
        Self { ledger, held: Mutex::default() }
    }

    /// Makes a new lease. The ledger learns of it with the first row or resource that it is for.
    pub(super) fn new_lease(self: &Arc<Self>) -> Lease {
        let (id, lost) = (LeaseId::generate(&mut rand::rng()), CancellationToken::new());
        self.held().insert(id, Held { lost: lost.clone(), is_taken: false });
        Lease { id, lost, leases: Arc::clone(self) }
    }

    /// Renews all leases. A transfer that has lost its lease is told to end. A lease that the ledger confirms during
    /// the call is not lost: the ledger may have looked before it had the lease.
    pub(super) async fn renew(&self) -> Result<(), LedgerError> {
        let before: HashMap<LeaseId, bool> =
            self.held().iter().map(|(id, held)| (*id, held.is_taken)).collect();
        if before.is_empty() {
            return Ok(());
        }
        let all: Vec<LeaseId> = before.keys().copied().collect();
        for lost in self.ledger.renew(&all).await? {
            let was_taken = before.get(&lost) == Some(&true);
            if was_taken && let Some(held) = self.held().get(&lost) {
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

    /// Records that the ledger has the lease. If the ledger does not have it later, it is lost.
    pub(super) fn taken(&self) {
        if let Some(held) = self.leases.held().get_mut(&self.id) {
            held.is_taken = true;
        }
    }

    /// Cancelled when the ledger no longer has the lease.
    pub(super) fn lost(&self) -> CancellationToken {
        self.lost.clone()
    }

    /// The authority to abandon the upload of this lease.
    pub(super) fn authority(&self) -> Authority {
        Authority::Uploader(self.id)
    }

    /// The error for a failed step of the upload. If another server has given the upload up and removed its bytes, that
    /// is the cause.
    pub(super) async fn why(&self, error: StoreError) -> UploadError {
        let is_lost = self.leases.ledger.renew(&[self.id]).await.is_ok_and(|lost| !lost.is_empty());
        if is_lost { UploadError::Abandoned } else { error.into() }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.leases.held().remove(&self.id);
        self.leases.ledger.let_go(self.id);
    }
}

/// Renews all leases until the server is closed.
pub(super) async fn keep_renewing(parts: Weak<Parts>) {
    loop {
        let Some(ledger) = parts.upgrade().map(|parts| Arc::clone(&parts.ledger)) else { return };
        ledger.until_renewal().await;
        let Some(parts) = parts.upgrade() else { return };
        if let Err(error) = parts.leases.renew().await {
            tracing::warn!(error = %chain(&error), "could not renew the leases of transfers in flight");
        }
    }
}
