//! Places for connections, limited in number. If there is no place left, the host with the most connections gives one up:
//! one with a refusal that is held back, or else an idle one. So the connections of one host keep no other client out.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::in_flight::Activity;
use cloakroom_core::client::Host;
use cloakroom_core::lock::lock;
use cloakroom_core::metrics::{Occupancy, Occupant};

#[cfg(test)]
mod tests;

/// The places of one listener. Clones share them.
#[derive(Clone)]
pub(super) struct Slots {
    most: usize,
    taken: Arc<Mutex<Taken>>,
    freed: Arc<Notify>,
    occupancy: Occupancy,
}

#[derive(Default)]
struct Taken {
    /// The connections of each host. No entry is empty.
    hosts: HashMap<Host, OfHost>,
    /// How many places are taken, those of connections that were told to leave included.
    count: usize,
    /// The connections that were told to leave and have not left yet.
    leaving: HashSet<u64>,
    next: u64,
}

#[derive(Default)]
struct OfHost {
    /// By number, so the oldest first.
    open: BTreeMap<u64, TakenSlot>,
    /// Those of them with a refusal that is held back, and when it will be sent.
    held_back: BTreeMap<u64, Instant>,
    /// For each connection that gave way with a refusal: when that refusal would have been sent. Until then its place
    /// counts for the host, so that it gains nothing by the early end.
    charged_until: Vec<Instant>,
}

struct TakenSlot {
    /// Whether the connection may end while it is idle. A trusted proxy's may not: it is of many clients.
    is_single: bool,
    activity: Activity,
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
pub(super) struct Slot {
    /// Whether the connection has a transfer in flight.
    pub(super) activity: Activity,
    /// Cancelled when another connection needs the place.
    pub(super) leave: CancellationToken,
    pub(super) visitor: Visitor,
    slots: Slots,
    number: u64,
    _occupant: Occupant,
}

impl Slots {
    /// Makes `most` places. Their use is counted in `occupancy`.
    pub(super) fn new(most: usize, occupancy: Occupancy) -> Self {
        Self { most, taken: Arc::default(), freed: Arc::default(), occupancy }
    }

    pub(super) fn count(&self) -> usize {
        lock(&self.taken).count
    }

    /// Takes a place; `None` if none is free.
    pub(super) fn take(&self, visitor: Visitor) -> Option<Slot> {
        let (activity, leave) = (Activity::default(), CancellationToken::new());
        let number = {
            let mut taken = lock(&self.taken);
            if taken.count >= self.most {
                return None;
            }
            taken.add(visitor, &activity, &leave)
        };
        let occupant = self.occupancy.enter();
        Some(Slot { activity, leave, visitor, slots: self.clone(), number, _occupant: occupant })
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

impl Slot {
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
        let mut taken = lock(&self.slots.taken);
        let Some(of_host) = taken.hosts.get_mut(&self.visitor.host) else { return };
        match until {
            Some(until) if of_host.open.contains_key(&self.number) => {
                of_host.held_back.insert(self.number, until);
            }
            _ => drop(of_host.held_back.remove(&self.number)),
        }
    }
}

impl Taken {
    fn add(&mut self, visitor: Visitor, activity: &Activity, leave: &CancellationToken) -> u64 {
        let number = self.next;
        self.next += 1;
        self.count += 1;
        let connection =
            TakenSlot { is_single: visitor.is_single, activity: activity.clone(), leave: leave.clone() };
        self.hosts.entry(visitor.host).or_default().open.insert(number, connection);
        number
    }

    fn remove(&mut self, host: Host, number: u64) {
        self.count -= 1;
        if self.leaving.remove(&number) {
            return;
        }
        if let Some(of_host) = self.hosts.get_mut(&host) {
            of_host.open.remove(&number);
            of_host.held_back.remove(&number);
        }
        self.forget_if_empty(host, Instant::now());
    }

    fn forget_if_empty(&mut self, host: Host, now: Instant) {
        if let Some(of_host) = self.hosts.get_mut(&host)
            && of_host.charged(now) == 0
        {
            self.hosts.remove(&host);
        }
    }

    /// Ends one connection of the host with the most connections that has one to end. That is either the new
    /// connection's own host, or a host that has more than that host would have.
    fn make_room_for(&mut self, new: Host, now: Instant) {
        self.hosts.retain(|_, of_host| of_host.charged(now) > 0);
        let own = self.hosts.get_mut(&new).map_or(0, |of_host| of_host.charged(now)) + 1;
        let with_one = self.hosts.iter_mut().filter_map(|(host, of_host)| {
            let one = of_host.to_leave()?;
            let count = of_host.charged(now) + usize::from(*host == new);
            (count > own || *host == new).then_some((count, *host, one))
        });
        let Some((_, host, one)) = with_one.max_by_key(|(count, ..)| *count) else { return };
        let Some(of_host) = self.hosts.get_mut(&host) else { return };
        if let Some(connection) = of_host.open.remove(&one) {
            of_host.charged_until.extend(of_host.held_back.remove(&one));
            self.leaving.insert(one);
            connection.leave.cancel();
        }
        self.forget_if_empty(host, now);
    }
}

impl OfHost {
    /// How many places count for the host.
    fn charged(&mut self, now: Instant) -> usize {
        self.charged_until.retain(|until| *until > now);
        self.open.len() + self.charged_until.len()
    }

    /// The connection that is the first to leave: the oldest one with a refusal that is held back, or else the oldest idle
    /// one.
    fn to_leave(&self) -> Option<u64> {
        let is_idle = |connection: &TakenSlot| connection.is_single && !connection.activity.has_work();
        let idle = || self.open.iter().find(|(_, connection)| is_idle(connection));
        let held_back = self.held_back.keys().next().copied();
        held_back.or_else(|| idle().map(|(number, _)| *number))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        lock(&self.slots.taken).remove(self.visitor.host, self.number);
        self.slots.freed.notify_one();
    }
}
