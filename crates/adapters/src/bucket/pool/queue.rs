//! Decides which transfer gets memory next, and which ones have to give memory back.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use std::time::Duration;

use cloakroom_core::client::Client;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{Direction, Patience, Pool, Revoke, Taken};

/// The memory of a download, in units. Each client may have one download in addition to a part.
const DOWNLOAD: u32 = 512;

/// The memory of a pool, in units, and those who wait for it.
#[derive(Debug)]
pub(super) struct Queue {
    all: u32,
    free: u32,
    /// Clients without memory are not in here.
    held: HashMap<Client, u32>,
    /// By arrival.
    waiting: Vec<Waiting>,
    /// By number, so those whose clients are waited for the longest come first.
    lent: BTreeMap<u64, Lent>,
    next: u64,
    /// The most that was ever asked for at once.
    largest: u32,
    /// The time of the last search for memory to take back.
    looked_at: Instant,
}

#[derive(Debug)]
struct Waiting {
    client: Client,
    units: u32,
    since: Instant,
    answer: oneshot::Sender<Taken>,
}

/// Memory whose client is waited for.
pub(super) struct Lent {
    pub client: Client,
    pub kind: Direction,
    pub units: u32,
    pub since: Instant,
    /// When its memory was taken.
    pub taken_at: Instant,
    pub memory: Arc<dyn Revoke>,
}

impl Debug for Lent {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lent").field("client", &self.client).field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl Queue {
    pub fn new(units: u32) -> Self {
        Self {
            all: units,
            free: units,
            held: HashMap::new(),
            waiting: Vec::new(),
            lent: BTreeMap::new(),
            next: 0,
            largest: 0,
            looked_at: Instant::now(),
        }
    }

    /// `client` asks for memory, at most for all that there is.
    pub fn enter(&mut self, client: &Client, units: u32) -> oneshot::Receiver<Taken> {
        let units = units.min(self.all);
        self.largest = self.largest.max(units);
        let (answer, taken) = oneshot::channel();
        self.waiting.push(Waiting { client: client.clone(), units, since: Instant::now(), answer });
        taken
    }

    /// Whether nothing is left of all clients.
    #[cfg(test)]
    pub fn is_unused(&self) -> bool {
        self.held.is_empty() && self.lent.is_empty() && self.free == self.all
    }

    /// How much is taken or waited for, and how much there is.
    pub fn used(&self) -> (u64, u64) {
        let waiting = self.waiting.iter().filter(|waiting| !waiting.answer.is_closed());
        let waited_for: u64 = waiting.map(|waiting| u64::from(waiting.units)).sum();
        (u64::from(self.all - self.free) + waited_for, u64::from(self.all))
    }

    pub fn lend(&mut self, lent: Lent) -> u64 {
        let number = self.next;
        self.next += 1;
        self.lent.insert(number, lent);
        number
    }

    /// A client is not waited for any more.
    pub fn end(&mut self, number: u64) {
        self.lent.remove(&number);
    }

    pub fn give_back(&mut self, client: &Client, units: u32) {
        self.free += units;
        if let Some(held) = self.held.get_mut(client) {
            *held -= units;
            if *held == 0 {
                self.held.remove(client);
            }
        }
    }

    /// Whether the last search for memory to take back was at least `interval` ago.
    pub fn should_look(&self, interval: Duration) -> bool {
        self.looked_at.elapsed() >= interval
    }

    /// Gives free memory to transfers that wait for it. Returns memory whose transfer has gone meanwhile: the caller must drop it
    /// after it has released the lock.
    pub fn give(&mut self, pool: &Pool) -> Vec<Taken> {
        self.waiting.retain(|waiting| !waiting.answer.is_closed());
        let mut unclaimed = Vec::new();
        while let Some(next) = self.next_one()
            && self.waiting[next].units <= self.free
        {
            let Waiting { client, units, answer, .. } = self.waiting.remove(next);
            self.free -= units;
            *self.held.entry(client.clone()).or_default() += units;
            unclaimed.extend(answer.send(Taken::new(pool, client, units)).err());
        }
        unclaimed
    }

    /// The one that gets memory next: of the client that has least, the first. Clients that may not have more are passed over.
    fn next_one(&self) -> Option<usize> {
        let waiting = self.waiting.iter().enumerate().filter(|(_, waiting)| self.may_have(waiting));
        // The first of several that are equal.
        waiting.min_by_key(|(_, waiting)| self.held_by(&waiting.client)).map(|(index, _)| index)
    }

    fn may_have(&self, waiting: &Waiting) -> bool {
        let held = self.held_by(&waiting.client);
        held == 0 || held.saturating_add(waiting.units) <= self.most_of_one()
    }

    /// How much one client may have while no other one has or wants anything, so that the next one need not wait.
    fn most_of_one(&self) -> u32 {
        (self.all - self.all / 4).max(self.largest.saturating_add(DOWNLOAD))
    }

    fn held_by(&self, client: &Client) -> u32 {
        self.held.get(client).copied().unwrap_or(0)
    }

    /// Takes memory back for the transfer that is next. Clients that have more than its client come first, then its own client.
    pub fn revoke(&mut self, patience: &Patience) -> Vec<Arc<dyn Revoke>> {
        self.looked_at = Instant::now();
        // If all of them have too much, the first one.
        let Some(next) = self.waiting.get(self.next_one().unwrap_or(0)) else { return Vec::new() };
        let only_own = !self.may_have(next);
        let mut missing = if only_own {
            (self.held_by(&next.client) + next.units).saturating_sub(self.most_of_one())
        } else {
            next.units.saturating_sub(self.free)
        };
        let (has, share) = (self.held_by(&next.client), self.share_beside(next.units));
        let mut ends_upload = next.since.elapsed() >= patience.wait;
        let (mut held, mut numbers) = (self.held.clone(), Vec::new());
        let (own, others): (Vec<_>, Vec<_>) =
            self.lent.iter().partition(|(_, lent)| lent.client == next.client);
        let others = others.into_iter().map(|lent| (lent, false)).filter(|_| !only_own);
        for ((number, lent), is_own) in others.chain(own.into_iter().map(|lent| (lent, true))) {
            let Some(held) = held.get_mut(&lent.client).filter(|_| missing > 0) else { break };
            let may = match lent.kind {
                Direction::Download if is_own => lent.taken_at.elapsed() >= patience.turn,
                // It loses nothing by that.
                Direction::Download => *held > has,
                Direction::Upload => {
                    ends_upload && lent.since.elapsed() >= patience.slow_upload && (is_own || *held > share)
                }
            };
            if may && (lent.kind == Direction::Upload || lent.since.elapsed() >= patience.slow_download) {
                // One at a time.
                ends_upload &= lent.kind == Direction::Download;
                missing = missing.saturating_sub(lent.units);
                *held -= lent.units;
                numbers.push(*number);
            }
        }
        numbers.iter().filter_map(|number| self.lent.remove(number)).map(|lent| lent.memory).collect()
    }

    /// What each other client has if one gets `units`, and all others that have or want something have the same.
    fn share_beside(&self, units: u32) -> u32 {
        let clients: HashSet<&Client> =
            self.held.keys().chain(self.waiting.iter().map(|waiting| &waiting.client)).collect();
        let others = u32::try_from(clients.len()).unwrap_or(u32::MAX).saturating_sub(1).max(1);
        self.all.saturating_sub(units) / others
    }
}
