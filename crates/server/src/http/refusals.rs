//! Limits the rate of refusals. A refused client often tries again at once, and a refusal costs as much as any other
//! small request. So refusals beyond the rate are answered later, and their clients come back later.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::StatusCode;
use tokio::time::Instant;

use cloakroom_core::client::Client;
use cloakroom_core::lock::lock;
use cloakroom_core::resource::Holder;

/// The average time between two refusals that are answered at once.
const INTERVAL: Duration = Duration::from_millis(5);

/// A burst may have as many refusals as the rate allows within this time.
const BURST: Duration = Duration::from_millis(500);

/// The longest delay of an answer.
const LONGEST: Duration = Duration::from_secs(1);

/// The refusals of one listener. Clones share the rates.
#[derive(Clone)]
pub(super) struct Refusals(Arc<Mutex<Rates>>);

/// When the next refusal would be due if all came evenly (the generic cell rate algorithm, ITU-T I.371).
struct Rates {
    /// Of all clients whose token is not known.
    hosts: Instant,
    /// Of each namespace or user whose token is known, if that is in the future.
    holders: HashMap<Holder, Instant>,
}

impl Default for Refusals {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Rates { hosts: Instant::now(), holders: HashMap::new() })))
    }
}

impl Refusals {
    /// When this answer is to be sent; `None` is at once. Only refusals beyond the rate are held back.
    pub(super) fn held_back_until(&self, status: StatusCode, client: &Client) -> Option<Instant> {
        if !status.is_client_error() && !status.is_server_error() {
            return None;
        }
        let now = Instant::now();
        let delay = self.delay(client, now);
        (!delay.is_zero()).then_some(now + delay)
    }

    /// The delay of a refusal at `now`.
    fn delay(&self, client: &Client, now: Instant) -> Duration {
        let mut rates = lock(&self.0);
        let due = match client {
            Client::Server | Client::Host(_) => &mut rates.hosts,
            Client::Holder(holder) => {
                rates.holders.retain(|_, due| *due > now);
                rates.holders.entry(holder.clone()).or_insert(now)
            }
        };
        *due = ((*due).max(now) + INTERVAL).min(now + BURST + LONGEST);
        due.duration_since(now).saturating_sub(BURST)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn host() -> Client {
        Client::Host(std::net::IpAddr::from(Ipv4Addr::LOCALHOST).into())
    }

    fn holder(namespace: &str) -> Client {
        Client::Holder(Holder::namespace(namespace))
    }

    #[test]
    fn a_flood_of_refusals_is_answered_later_but_within_a_second() {
        let refusals = Refusals::default();
        let start = Instant::now();
        let many: Vec<Duration> = (0..1000).map(|_| refusals.delay(&host(), start)).collect();
        assert_eq!(many[99], Duration::ZERO);
        assert_eq!(many[100], INTERVAL);
        assert_eq!(many[999], LONGEST);
        assert_eq!(refusals.delay(&host(), start + BURST + LONGEST), Duration::ZERO);
    }

    #[test]
    fn refusals_at_their_rate_are_answered_at_once() {
        let refusals = Refusals::default();
        let start = Instant::now();
        assert!((0..1000).all(|number| refusals.delay(&host(), start + INTERVAL * number) == Duration::ZERO));
    }

    #[test]
    fn refusals_of_others_hold_none_back_of_a_known_namespace() {
        let refusals = Refusals::default();
        let start = Instant::now();
        for _ in 0..1000 {
            refusals.delay(&host(), start);
            refusals.delay(&holder("abuser"), start);
        }
        assert_eq!(refusals.delay(&holder("abuser"), start), LONGEST);
        assert_eq!(refusals.delay(&holder("honest"), start), Duration::ZERO);
        refusals.delay(&holder("honest"), start + BURST + LONGEST);
        assert_eq!(refusals.0.lock().unwrap().holders.len(), 1, "what is over is forgotten");
    }
}
