//! What is stored and in flight, for metrics and status.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::{Parts, Staging, TOMBSTONES_FOR_EACH};
use crate::ledger::{LedgerError, Taken};
use crate::store::Space;
use cloakroom_core::metrics::{LimitUse, Limited, Stock};
use cloakroom_core::resource::State;
use cloakroom_core::text::chain;

/// Counting reads a whole index. So a count is used for this many times as long as it took. However often it is asked
/// for, the ledger spends at most a twentieth of its time on counting.
const COUNT_HOLDS: u32 = 20;

/// How long one value is waited for. A disk that hangs must not hold up the other metrics.
const PATIENCE: Duration = Duration::from_secs(2);

/// The last count of rows in each state; `None` before the first one.
#[derive(Debug, Default)]
pub(super) struct CountedStates(Mutex<Option<Counted>>);

#[derive(Debug)]
struct Counted {
    by_state: BTreeMap<&'static str, u64>,
    at: Instant,
    took: Duration,
}

impl Staging {
    /// Looks up what is stored and in flight. A value that cannot be found out is `None`, and the log has the cause.
    pub async fn stock(&self) -> Stock {
        let parts = &self.parts;
        let (uploads, downloads) = self.in_flight();
        let (space, resources, taken) = tokio::join!(
            in_time("could not find out how much of the disk is free", parts.storage.space()),
            in_time("could not count the resources", parts.count_states()),
            in_time("could not find out how much room is taken", parts.ledger.taken()),
        );
        let (space, taken) = (space.flatten(), taken.unwrap_or_default());
        let tombstones = resources.as_ref().and_then(|states| states.get(State::Deleted.as_str())).copied();
        Stock {
            limits: parts.uses(taken, space, tombstones),
            uploads: uploads as u64,
            downloads: downloads as u64,
            stored_bytes: taken.stored_bytes,
            strays: taken.strays.resources,
            stray_bytes: taken.strays.bytes,
            free_bytes: space.map(|space| space.free),
            resources,
        }
    }
}

/// What `looked_up` finds out; `None` if it fails or takes too long. Then the log has the line `failed`, with the cause.
async fn in_time<T, E: std::error::Error>(
    failed: &str,
    looked_up: impl Future<Output = Result<T, E>>,
) -> Option<T> {
    match tokio::time::timeout(PATIENCE, looked_up).await {
        Ok(Ok(found)) => return Some(found),
        Ok(Err(error)) => tracing::warn!(error = %chain(&error), "{failed}"),
        Err(_) => tracing::warn!(error = "no answer within 2 seconds", "{failed}"),
    }
    None
}

impl Parts {
    /// How much of each limit is used.
    fn uses(&self, taken: Taken, space: Option<Space>, tombstones: Option<u64>) -> Vec<LimitUse> {
        let most_tombstones = self.limits.max_resources.saturating_mul(TOMBSTONES_FOR_EACH) as u64;
        let tombstones =
            tombstones.map(|used| LimitUse { of: Limited::Tombstones, used, limit: most_tombstones });
        let open = self.storage.disk.as_ref().and_then(|disk| disk.open_blobs());
        let open = open.map(|(used, limit)| LimitUse::of_counts(Limited::OpenBundles, used, limit));
        let memory = LimitUse {
            of: Limited::OwnerMemory,
            used: taken.owner_bytes,
            limit: self.limits.owner_memory_bytes,
        };
        let mut uses = vec![memory];
        uses.extend(self.capacity.uses(taken, space));
        uses.extend(self.transfers.uses());
        uses.extend(tombstones.into_iter().chain(open).chain(self.storage.blobs.memory()));
        uses
    }

    async fn count_states(&self) -> Result<BTreeMap<&'static str, u64>, LedgerError> {
        // Callers that come while one counts wait for that count.
        let mut last = self.counted_states.0.lock().await;
        if let Some(counted) = last.as_ref().filter(|counted| counted.holds_after(counted.at.elapsed())) {
            return Ok(counted.by_state.clone());
        }
        let began = Instant::now();
        let mut by_state: BTreeMap<_, _> = State::ALL.iter().map(|state| (state.as_str(), 0)).collect();
        by_state.extend(self.ledger.count_by_state().await?);
        *last = Some(Counted { by_state: by_state.clone(), at: Instant::now(), took: began.elapsed() });
        Ok(by_state)
    }
}

impl Counted {
    fn holds_after(&self, age: Duration) -> bool {
        age < self.took * COUNT_HOLDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_took_long_holds_long() {
        let counted =
            Counted { by_state: BTreeMap::new(), at: Instant::now(), took: Duration::from_millis(50) };
        assert!(counted.holds_after(Duration::from_millis(999)));
        assert!(!counted.holds_after(Duration::from_secs(1)));
    }
}
