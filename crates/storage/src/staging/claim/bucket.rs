//! The claim of a server whose ledger is in a bucket: the stamp there names its epoch. So no ledger is behind unless an admin has
//! put a copy back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::super::AccessError;
use super::ClaimError;
use crate::ledger::{Fact, Ledger, Restored};
use crate::log::{Heartbeat, LogError};
use crate::store::StoreError;
use cloakroom_core::metrics::Metrics;

pub(in super::super) struct BucketClaim {
    heartbeat: Arc<Heartbeat>,
    /// When sweeps may delete, unless the clock cannot count that far.
    rests_until: Option<Instant>,
    /// The copy that the ledger was put back from, while it is behind.
    behind: tokio::sync::Mutex<Option<Restored>>,
    is_behind: AtomicBool,
    /// Whether this sweep has read the stamp already.
    is_confirmed: AtomicBool,
    metrics: Metrics,
}

impl BucketClaim {
    pub(super) async fn check(
        ledger: &dyn Ledger,
        heartbeat: Arc<Heartbeat>,
        rest: Duration,
        metrics: Metrics,
    ) -> Result<Self, ClaimError> {
        let behind = ledger.facts().await?.restored.filter(|restored| restored.is_behind);
        let claim = Self {
            heartbeat,
            rests_until: Instant::now().checked_add(rest),
            behind: behind.into(),
            is_behind: AtomicBool::new(false),
            is_confirmed: AtomicBool::new(false),
            metrics,
        };
        claim.tell(behind.is_some());
        if let Some(Restored { copy, .. }) = behind {
            tracing::error!(
                %copy,
                "the ledger is an earlier copy: what is staged is served and uploads are taken, but no sweep deletes anything \
                 until cloakroom resume-deletions"
            );
        }
        Ok(claim)
    }

    fn tell(&self, is_behind: bool) {
        self.is_behind.store(is_behind, Ordering::Relaxed);
        self.metrics.ledger_behind(is_behind);
    }

    pub(super) fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::Relaxed)
    }

    pub(super) async fn resume_deletions(&self, ledger: &dyn Ledger) -> Result<bool, AccessError> {
        let mut behind = self.behind.lock().await;
        let Some(restored) = *behind else { return Ok(false) };
        ledger.write(Fact::Restored(Restored { is_behind: false, ..restored })).await?;
        *behind = None;
        self.tell(false);
        Ok(true)
    }

    pub(super) fn begin_batch(&self) {
        self.is_confirmed.store(false, Ordering::Relaxed);
    }

    /// Reads the stamp once for each sweep.
    pub(super) async fn may_sweep(&self) -> Result<bool, AccessError> {
        if self.is_behind() || self.rests_until.is_none_or(|until| Instant::now() < until) {
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
