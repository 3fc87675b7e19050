//! One pass: finish what was interrupted, expire what is due, forget old tombstones.

use super::steady::SteadyTime;
use super::{Decision, Policy, decide};
use crate::staging::{AccessError, Recovered, Staging};

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

    /// Makes one pass.
    pub async fn sweep(&mut self) -> Result<Swept, AccessError> {
        let look_for_orphans = self.passes.is_multiple_of(ORPHAN_SWEEPS);
        self.passes += 1;
        let recovered = self.staging.recover(look_for_orphans).await?;
        let now = self.time.now(self.staging.clock());
        let expired = self.expire(now).await?;
        let forgotten = self.staging.forget_tombstones(now).await?;
        Ok(Swept { recovered, expired, forgotten })
    }

    async fn expire(&self, now: jiff::Timestamp) -> Result<u64, AccessError> {
        let oldest = self.policy.max_age.and_then(|age| now.checked_sub(age).ok());
        let mut expired = 0;
        loop {
            let mut deleted = 0;
            for resource in &self.staging.due(now, oldest, PAGE).await? {
                if let Decision::Delete(reason) = decide(resource, now, &self.policy)
                    && self.staging.expire(resource, reason, now).await?
                {
                    deleted += 1;
                }
            }
            expired += deleted;
            // A page that was all kept (downloads in flight) would come again and again.
            if deleted < u64::from(PAGE) {
                return Ok(expired);
            }
        }
    }
}
