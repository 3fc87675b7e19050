//! One pass: finish what was interrupted, expire what is due, forget old tombstones.

use std::time::Instant;

use super::steady::{Readings, SteadyTime};
use super::{Decision, Policy, decide};
use crate::metrics::SweepOutcome;
use crate::resource::Resource;
use crate::staging::{AccessError, Recovered, Staging};
use crate::telemetry::chain;

/// Resources looked at together.
const PAGE: u32 = 500;

/// Bytes without a row are looked for at the start and then in every so many sweeps: only a crash makes them.
const ORPHAN_SWEEPS: u64 = 100;

/// What a pass did.
#[derive(Debug, Clone, Copy, Default)]
pub struct Swept {
    /// What it finished.
    pub recovered: Recovered,
    /// Resources whose time was up.
    pub expired: u64,
    /// Tombstones that had served their time.
    pub forgotten: u64,
}

impl Swept {
    /// Writes down what was done, if there was anything to do.
    pub fn log(&self) {
        if self.expired == 0 && self.recovered.is_nothing() {
            tracing::debug!("swept, nothing to do");
            return;
        }
        tracing::info!(
            expired = self.expired,
            interrupted_uploads = self.recovered.uploads,
            interrupted_deletions = self.recovered.deletions,
            orphans = self.recovered.orphans,
            "swept"
        );
    }
}

/// Makes passes, and remembers what one pass must know of the last.
pub struct Sweeper {
    staging: Staging,
    policy: Policy,
    time: SteadyTime,
    passes: u64,
}

impl Sweeper {
    /// Works on `staging` by `policy`.
    pub fn new(staging: Staging, policy: Policy) -> Self {
        let time = SteadyTime::new(staging.clock());
        Self { staging, policy, time, passes: 0 }
    }

    /// Makes one pass, and counts it.
    pub async fn sweep(&mut self) -> Result<Swept, AccessError> {
        let began = Instant::now();
        let result = self.pass().await;
        let outcome = if result.is_ok() { SweepOutcome::Ok } else { SweepOutcome::Failed };
        self.staging.metrics().swept(outcome, began.elapsed(), self.staging.clock().now());
        result
    }

    async fn pass(&mut self) -> Result<Swept, AccessError> {
        let look_for_orphans = self.passes.is_multiple_of(ORPHAN_SWEEPS);
        self.passes += 1;
        let recovered = self.staging.recover(look_for_orphans).await?;
        let readings = self.time.read(self.staging.clock());
        let expired = self.expire(&readings).await?;
        let forgotten = self.staging.forget_tombstones(readings.earliest()).await?;
        Ok(Swept { recovered, expired, forgotten })
    }

    async fn expire(&self, readings: &Readings) -> Result<u64, AccessError> {
        let now = readings.latest();
        let oldest = self.policy.max_age.and_then(|age| now.checked_sub(age).ok());
        let mut expired = 0;
        let mut after = None;
        loop {
            let page = self.staging.due(now, oldest, after, PAGE).await?;
            for resource in &page {
                expired += u64::from(self.expire_one(resource, readings).await?);
            }
            after = page.last().map(|resource| resource.id);
            if page.len() < PAGE as usize {
                return Ok(expired);
            }
        }
    }

    async fn expire_one(&self, resource: &Resource, readings: &Readings) -> Result<bool, AccessError> {
        let Decision::Delete(reason) =
            decide(resource, readings.for_one_of(resource.created_at), &self.policy)
        else {
            return Ok(false);
        };
        match self.staging.expire(resource, reason, self.staging.clock().now()).await {
            // One bundle that cannot be removed must not hold up all the others.
            Err(AccessError::Store(error)) => {
                tracing::warn!(
                    resource_id = %resource.id, error = %chain(&error),
                    "could not remove an expired bundle; the next sweep tries again"
                );
                Ok(false)
            }
            other => other,
        }
    }
}
