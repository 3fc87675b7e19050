//! Places for connections, limited in number. If there is no place left, the host with the most connections gives up an
//! idle one. So idle connections of one host keep no other client out.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::in_flight::Occupation;
use super::turns::Host;
use cloakroom_core::metrics::{Occupancy, Occupant};

/// How often a connection that waits for a place looks for an idle one.
const AGAIN: Duration = Duration::from_millis(100);

/// The places of one listener. Clones share them.
#[derive(Clone)]
pub(super) struct Seats {
    most: usize,
    free: Arc<Semaphore>,
    taken: Arc<Mutex<Taken>>,
    occupancy: Occupancy,
}

#[derive(Default)]
struct Taken {
    /// The connections of each host, the oldest first. No list is empty.
    hosts: HashMap<Host, VecDeque<Guest>>,
    next: u64,
}

struct Guest {
    number: u64,
    occupation: Occupation,
    leave: CancellationToken,
}

/// The place of one connection. Dropping it frees the place.
pub(super) struct Seat {
    /// Whether the connection has a transfer in flight.
    pub(super) occupation: Occupation,
    /// Cancelled when another connection needs the place.
    pub(super) leave: CancellationToken,
    seats: Seats,
    host: Host,
    number: u64,
    _permit: OwnedSemaphorePermit,
    _occupant: Occupant,
}

impl Seats {
    /// Makes `most` places. Their use is counted in `occupancy`.
    pub(super) fn new(most: usize, occupancy: Occupancy) -> Self {
        let most = most.min(Semaphore::MAX_PERMITS);
        Self { most, free: Arc::new(Semaphore::new(most)), taken: Arc::default(), occupancy }
    }

    pub(super) fn count(&self) -> usize {
        self.most - self.free.available_permits()
    }

    /// Waits for a place. `None` if the semaphore is closed, which never happens.
    pub(super) async fn take(&self, host: Host) -> Option<Seat> {
        let permit = loop {
            if self.free.available_permits() == 0 {
                self.taken().make_room_for(host);
            }
            // The wait has a limit, because connections may become idle meanwhile.
            if let Ok(permit) = timeout(AGAIN, Arc::clone(&self.free).acquire_owned()).await {
                break permit.ok()?;
            }
        };
        let (occupation, leave) = (Occupation::default(), CancellationToken::new());
        let number = self.taken().add(host, &occupation, &leave);
        let occupant = self.occupancy.enter();
        let seats = self.clone();
        Some(Seat { occupation, leave, seats, host, number, _permit: permit, _occupant: occupant })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    fn add(&mut self, host: Host, occupation: &Occupation, leave: &CancellationToken) -> u64 {
        let number = self.next;
        self.next += 1;
        let guest = Guest { number, occupation: occupation.clone(), leave: leave.clone() };
        self.hosts.entry(host).or_default().push_back(guest);
        number
    }

    fn remove(&mut self, host: Host, number: u64) {
        let Some(guests) = self.hosts.get_mut(&host) else { return };
        guests.retain(|guest| guest.number != number);
        if guests.is_empty() {
            self.hosts.remove(&host);
        }
    }

    /// Ends the oldest idle connection of the host with the most connections. That is either the new connection's own
    /// host, or a host that has more than that host would have.
    fn make_room_for(&mut self, new: Host) {
        let own = self.hosts.get(&new).map_or(0, VecDeque::len) + 1;
        let with_idle = self.hosts.iter().filter_map(|(host, guests)| {
            let idle = guests.iter().position(|guest| !guest.occupation.has_work())?;
            let count = guests.len() + usize::from(*host == new);
            (count > own || *host == new).then_some((count, *host, idle))
        });
        let Some((_, host, idle)) = with_idle.max_by_key(|(count, ..)| *count) else { return };
        let guest = self.hosts.get_mut(&host).and_then(|guests| guests.remove(idle));
        if let Some(guest) = guest {
            guest.leave.cancel();
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.taken().remove(self.host, self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use futures_util::FutureExt as _;
    use tokio_util::task::TaskTracker;

    use super::*;

    fn host(last: u8) -> Host {
        IpAddr::from([10, 0, 0, last]).into()
    }

    fn left(seats: &[Seat]) -> Vec<bool> {
        seats.iter().map(|seat| seat.leave.is_cancelled()).collect()
    }

    async fn taken(seats: &Seats, hosts: &[u8]) -> Vec<Seat> {
        let mut all = Vec::new();
        for last in hosts {
            all.push(seats.take(host(*last)).await.unwrap());
        }
        all
    }

    #[tokio::test]
    async fn the_host_that_has_most_gives_up_its_oldest_idle_connection() {
        let seats = Seats::new(6, Occupancy::default());
        let mut all = taken(&seats, &[1, 2, 2, 1, 2, 3]).await;
        let mut waiting = Box::pin(seats.take(host(4)));
        assert!(waiting.as_mut().now_or_never().is_none());
        assert_eq!(left(&all), [false, true, false, false, false, false]);
        drop(all.remove(1));
        assert!(waiting.await.is_some());
    }

    #[tokio::test]
    async fn a_connection_with_a_transfer_keeps_its_place() {
        let (seats, work) = (Seats::new(3, Occupancy::default()), TaskTracker::new());
        let all = taken(&seats, &[1, 1, 1]).await;
        let _first = all[0].occupation.begin(work.token());
        assert!(seats.take(host(2)).now_or_never().is_none());
        assert_eq!(left(&all), [false, true, false]);
    }

    #[tokio::test]
    async fn a_host_that_has_most_takes_from_itself_and_from_no_other() {
        let seats = Seats::new(4, Occupancy::default());
        let all = taken(&seats, &[1, 1, 1, 2]).await;
        assert!(seats.take(host(1)).now_or_never().is_none());
        assert_eq!(left(&all), [true, false, false, false]);
        let work = TaskTracker::new();
        let _busy = [all[1].occupation.begin(work.token()), all[2].occupation.begin(work.token())];
        assert!(seats.take(host(1)).now_or_never().is_none());
        assert_eq!(left(&all), [true, false, false, false]);
    }

    #[tokio::test]
    async fn hosts_that_are_gone_take_no_memory() {
        let seats = Seats::new(4, Occupancy::default());
        drop(taken(&seats, &[1, 2, 2]).await);
        assert!(seats.taken().hosts.is_empty());
        assert_eq!(seats.count(), 0);
    }
}
