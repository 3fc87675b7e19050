//! Places for connections, limited in number. If there is no place left, the host with the most connections gives one up:
//! one with a refusal that is held back, or else an idle one. So the connections of one host keep no other client out.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::in_flight::Occupation;
use cloakroom_core::host::Host;
use cloakroom_core::lock::lock;
use cloakroom_core::metrics::{Occupancy, Occupant};

#[cfg(test)]
mod tests;

/// The places of one listener. Clones share them.
#[derive(Clone)]
pub(super) struct Seats {
    most: usize,
    taken: Arc<Mutex<Taken>>,
    freed: Arc<Notify>,
    occupancy: Occupancy,
}

#[derive(Default)]
struct Taken {
    /// The connections of each host. No entry is empty.
    hosts: HashMap<Host, Guests>,
    /// How many places are taken, those of connections that were told to leave included.
    count: usize,
    /// The connections that were told to leave and have not left yet.
    leaving: HashSet<u64>,
    next: u64,
}

#[derive(Default)]
struct Guests {
    /// By number, so the oldest first.
    seated: BTreeMap<u64, Guest>,
    /// Those of them with a refusal that is held back, and when it will be sent.
    held_back: BTreeMap<u64, Instant>,
    /// For each connection that gave way with a refusal: when that refusal would have been sent. Until then its place
    /// counts for the host, so that it gains nothing by the early end.
    charged_until: Vec<Instant>,
}

struct Guest {
    /// Whether the connection may end while it is idle. A trusted proxy's may not: it is of many clients.
    is_single: bool,
    occupation: Occupation,
    leave: CancellationToken,
}

/// Whose connection it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Visitor {
    pub(super) host: Host,
    /// Whether the host is one client, and no trusted proxy of many.
    pub(super) is_single: bool,
}

/// The place of one connection. Dropping it frees the place.
pub(super) struct Seat {
    /// Whether the connection has a transfer in flight.
    pub(super) occupation: Occupation,
    /// Cancelled when another connection needs the place.
    pub(super) leave: CancellationToken,
    pub(super) visitor: Visitor,
    seats: Seats,
    number: u64,
    _occupant: Occupant,
}

impl Seats {
    /// Makes `most` places. Their use is counted in `occupancy`.
    pub(super) fn new(most: usize, occupancy: Occupancy) -> Self {
        Self { most, taken: Arc::default(), freed: Arc::default(), occupancy }
    }

    pub(super) fn count(&self) -> usize {
        lock(&self.taken).count
    }

    /// Takes a place; `None` if none is free.
    pub(super) fn take(&self, visitor: Visitor) -> Option<Seat> {
        let (occupation, leave) = (Occupation::default(), CancellationToken::new());
        let number = {
            let mut taken = lock(&self.taken);
            if taken.count >= self.most {
                return None;
            }
            taken.add(visitor, &occupation, &leave)
        };
        let occupant = self.occupancy.enter();
        Some(Seat { occupation, leave, visitor, seats: self.clone(), number, _occupant: occupant })
    }

    /// Makes connections leave for those that wait, each of which is given by its host.
    pub(super) fn make_room_for(&self, waiting: &[Host]) {
        let mut taken = lock(&self.taken);
        // The first ones get free places, and those of connections that are about to leave.
        let soon_free = taken.leaving.len() + self.most.saturating_sub(taken.count);
        for host in waiting.iter().skip(soon_free) {
            taken.make_room_for(*host, Instant::now());
        }
    }

    /// Waits until a place is free again.
    pub(super) async fn freed(&self) {
        self.freed.notified().await;
    }
}

impl Seat {
    /// Holds a refusal back until `until`. Meanwhile the connection may be told to leave. Returns `false` if it was.
    pub(super) async fn hold_back(&self, until: Instant) -> bool {
        self.set_held_back(Some(until));
        let is_sent = tokio::select! {
            () = tokio::time::sleep_until(until) => true,
            () = self.leave.cancelled() => false,
        };
        self.set_held_back(None);
        is_sent
    }

    fn set_held_back(&self, until: Option<Instant>) {
        let mut taken = lock(&self.seats.taken);
        let Some(guests) = taken.hosts.get_mut(&self.visitor.host) else { return };
        match until {
            Some(until) if guests.seated.contains_key(&self.number) => {
                guests.held_back.insert(self.number, until);
            }
            _ => drop(guests.held_back.remove(&self.number)),
        }
    }
}

impl Taken {
    fn add(&mut self, visitor: Visitor, occupation: &Occupation, leave: &CancellationToken) -> u64 {
        let number = self.next;
        self.next += 1;
        self.count += 1;
        let guest =
            Guest { is_single: visitor.is_single, occupation: occupation.clone(), leave: leave.clone() };
        self.hosts.entry(visitor.host).or_default().seated.insert(number, guest);
        number
    }

    fn remove(&mut self, host: Host, number: u64) {
        self.count -= 1;
        if self.leaving.remove(&number) {
            return;
        }
        if let Some(guests) = self.hosts.get_mut(&host) {
            guests.seated.remove(&number);
            guests.held_back.remove(&number);
        }
        self.forget_if_empty(host, Instant::now());
    }

    fn forget_if_empty(&mut self, host: Host, now: Instant) {
        if let Some(guests) = self.hosts.get_mut(&host)
            && guests.charged(now) == 0
        {
            self.hosts.remove(&host);
        }
    }

    /// Ends one connection of the host with the most connections that has one to end. That is either the new
    /// connection's own host, or a host that has more than that host would have.
    fn make_room_for(&mut self, new: Host, now: Instant) {
        self.hosts.retain(|_, guests| guests.charged(now) > 0);
        let own = self.hosts.get_mut(&new).map_or(0, |guests| guests.charged(now)) + 1;
        let with_one = self.hosts.iter_mut().filter_map(|(host, guests)| {
            let one = guests.to_leave()?;
            let count = guests.charged(now) + usize::from(*host == new);
            (count > own || *host == new).then_some((count, *host, one))
        });
        let Some((_, host, one)) = with_one.max_by_key(|(count, ..)| *count) else { return };
        let Some(guests) = self.hosts.get_mut(&host) else { return };
        if let Some(guest) = guests.seated.remove(&one) {
            guests.charged_until.extend(guests.held_back.remove(&one));
            self.leaving.insert(one);
            guest.leave.cancel();
        }
        self.forget_if_empty(host, now);
    }
}

impl Guests {
    /// How many places count for the host.
    fn charged(&mut self, now: Instant) -> usize {
        self.charged_until.retain(|until| *until > now);
        self.seated.len() + self.charged_until.len()
    }

    /// The connection that is the first to leave: the oldest one with a refusal that is held back, or else the oldest idle
    /// one.
    fn to_leave(&self) -> Option<u64> {
        let is_idle = |guest: &Guest| guest.is_single && !guest.occupation.has_work();
        let idle = || self.seated.iter().find(|(_, guest)| is_idle(guest));
        let held_back = self.held_back.keys().next().copied();
        held_back.or_else(|| idle().map(|(number, _)| *number))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        lock(&self.seats.taken).remove(self.visitor.host, self.number);
        self.seats.freed.notify_one();
    }
}
