//! What there is, for whoever watches the server.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::{Parts, Staging};
use crate::ledger::LedgerError;
use crate::metrics::Stock;
use crate::resource::State;
use crate::telemetry::chain;

/// Counting reads all of an index, so a count holds for this many times as long as it took: however many ask, and
/// however many rows there are, the ledger counts a twentieth of the time at most.
const COUNT_HOLDS: u32 = 20;

/// The last count of rows in each state.
#[derive(Debug, Default)]
pub(super) struct CountedStates(Mutex<Option<Counted>>);

#[derive(Debug)]
struct Counted {
    by_state: BTreeMap<&'static str, u64>,
    at: Instant,
    took: Duration,
}

impl Staging {
    /// Looks up what there is. What cannot be found out is `None`, and the log says why.
    pub async fn stock(&self) -> Stock {
        let parts = &self.parts;
        let (uploads, downloads) = self.in_flight();
        let free_bytes = parts.store.free_bytes().await.inspect_err(|error| {
            tracing::warn!(error = %chain(error), "could not find out how much of the disk is free");
        });
        let resources = parts.count_states().await.inspect_err(|error| {
            tracing::warn!(error = %chain(error), "could not count the resources");
        });
        Stock {
            uploads: uploads as u64,
            downloads: downloads as u64,
            stored_bytes: parts.capacity.stored_bytes(),
            free_bytes: free_bytes.ok().flatten(),
            resources: resources.ok(),
        }
    }
}

impl Parts {
    async fn count_states(&self) -> Result<BTreeMap<&'static str, u64>, LedgerError> {
        // Whoever comes while it is counted waits for that count.
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
