//! Limits the rate of refusals. A refused client often tries again at once, and a refusal costs as much as any other
//! small request. So refusals beyond the rate are answered later, and their clients come back later.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use tokio::time::Instant;

/// The average time between two refusals that are answered at once.
const INTERVAL: Duration = Duration::from_millis(5);

/// A burst may have as many refusals as the rate allows within this time.
const BURST: Duration = Duration::from_millis(500);

/// The longest delay of an answer.
const LONGEST: Duration = Duration::from_secs(1);

/// The refusals of one listener. Clones share the rate.
#[derive(Clone)]
pub(super) struct Refusals(Arc<Mutex<Instant>>);

impl Default for Refusals {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }
}

impl Refusals {
    /// When this answer is to be sent; `None` is at once. Only refusals beyond the rate are held back.
    pub(super) fn held_back_until(&self, status: StatusCode) -> Option<Instant> {
        if !status.is_client_error() && !status.is_server_error() {
            return None;
        }
        let now = Instant::now();
        let delay = self.delay(now);
        (!delay.is_zero()).then_some(now + delay)
    }

    /// The delay of a refusal at `now`, by the generic cell rate algorithm (ITU-T I.371). The state is the time at
    /// which the next refusal would be due if all came evenly.
    fn delay(&self, now: Instant) -> Duration {
        let mut due = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *due = ((*due).max(now) + INTERVAL).min(now + BURST + LONGEST);
        due.duration_since(now).saturating_sub(BURST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_refusals_is_answered_later_and_none_after_more_than_a_second() {
        let refusals = Refusals::default();
        let start = Instant::now();
        let many: Vec<Duration> = (0..1000).map(|_| refusals.delay(start)).collect();
        assert_eq!(many[99], Duration::ZERO);
        assert_eq!(many[100], INTERVAL);
        assert_eq!(many[999], LONGEST);
        assert_eq!(refusals.delay(start + BURST + LONGEST), Duration::ZERO);
    }

    #[test]
    fn refusals_at_their_rate_are_answered_at_once() {
        let refusals = Refusals::default();
        let start = Instant::now();
        assert!((0..1000).all(|number| refusals.delay(start + INTERVAL * number) == Duration::ZERO));
    }
}
