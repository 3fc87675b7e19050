//! The claim of a server whose ledger is in a bucket: the stamp there names its epoch. So no ledger is behind unless an admin has
//! put a copy back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::super::AccessError;
use super::{Behind, ClaimError};
use crate::ledger::{Fact, Ledger, Restored};
use crate::log::{Heartbeat, LogError};
use crate::store::StoreError;
use cloakroom_core::metrics::Metrics;

pub(in super::super) struct BucketClaim {
    heartbeat: Arc<Heartbeat>,
    /// When sweeps may delete, unless the clock cannot count that far.
    rests_until: Option<Instant>,
    /// The copy that the ledger was put back from, while it is behind.
    restored: tokio::sync::Mutex<Option<Restored>>,
    /// Whether this sweep has read the stamp already.
    is_confirmed: AtomicBool,
    pub(super) behind: Behind,
}

impl BucketClaim {
    pub(super) async fn check(
        ledger: &dyn Ledger,
        heartbeat: Arc<Heartbeat>,
        rest: Duration,
        metrics: Metrics,
    ) -> Result<Self, ClaimError> {
        let restored = ledger.facts().await?.restored.filter(|restored| restored.is_behind);
        let claim = Self {
            heartbeat,
            rests_until: Instant::now().checked_add(rest),
            restored: restored.into(),
            is_confirmed: AtomicBool::new(false),
            behind: Behind::new(restored.is_some(), metrics),
        };
        if let Some(Restored { copy, .. }) = restored {
            tracing::error!(
                %copy,
                "the ledger is an earlier copy: what is staged is served and uploads are taken, but no sweep deletes anything \
                 until cloakroom resume-deletions"
            );
        }
        Ok(claim)
    }

    pub(super) async fn resume_deletions(&self, ledger: &dyn Ledger) -> Result<bool, AccessError> {
        let mut behind = self.restored.lock().await;
        let Some(restored) = *behind else { return Ok(false) };
        ledger.write(Fact::Restored(Restored { is_behind: false, ..restored })).await?;
        *behind = None;
        self.behind.tell(false);
        Ok(true)
    }

    pub(super) fn is_short_of_room(&self) -> bool {
        self.heartbeat.is_short_of_room()
    }

    /// Whether the stamp could not be renewed.
    pub(super) fn fails(&self) -> bool {
        self.heartbeat.fails()
    }

    pub(super) fn begin_batch(&self) {
        self.is_confirmed.store(false, Ordering::Relaxed);
    }

    /// Reads the stamp once for each sweep.
    pub(super) async fn may_sweep(&self) -> Result<bool, AccessError> {
        if self.behind.is() || self.rests_until.is_none_or(|until| Instant::now() < until) {
            return Ok(false);
        }
        if !self.is_confirmed.load(Ordering::Relaxed) {
            self.heartbeat.seen().await.map_err(|error| match error {
                LogError::Store(error) => AccessError::from(error),
                error => StoreError::Fault(error.into()).into(),
            })?;
            self.is_confirmed.store(true, Ordering::Relaxed);
        }
        Ok(self.heartbeat.ended().is_none())
    }
}
