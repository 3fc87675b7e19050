//! Decides whose request begins next. Hosts take turns, so a host with many requests makes the others wait for one of
//! its requests, and not for all.
//!
//! Only the beginning of the work needs a turn: a TLS handshake, or a request from its head until its handler reads the
//! body or answers. This part is short, and uses the processor and the ledger. If it takes longer than [`PATIENCE`], it
//! waits for something else, such as its client or the API server. So its turn ends.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{iter, mem};

use tokio::sync::oneshot;

/// Turns at once.
const AT_ONCE: usize = 8;

/// The longest time of a turn.
const PATIENCE: Duration = Duration::from_millis(2);

/// A host, as far as its address tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Host(IpAddr);

impl From<IpAddr> for Host {
    /// In IPv6, a host mostly has a network of 64 bits to itself.
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
            address @ IpAddr::V4(_) => address,
        })
    }
}

/// The turns of one listener. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Turns(Arc<Mutex<Queue>>);

#[derive(Default)]
struct Queue {
    /// Turns that have not ended, with their numbers and the times of their beginnings; the oldest first.
    given: VecDeque<(u64, Instant)>,
    /// The number of the next turn.
    next: u64,
    /// Hosts with waiting requests, each once; the next one first.
    hosts: VecDeque<Host>,
    /// Their requests, the oldest first. No list is empty.
    waiting: HashMap<Host, VecDeque<oneshot::Sender<Turn>>>,
    /// Whether [`Turns::go_on`] runs.
    goes_on: bool,
}

/// A turn. Dropping it ends it.
pub(super) struct Turn {
    turns: Turns,
    number: u64,
}

impl Turns {
    /// Waits for a turn.
    pub(super) async fn take(&self, host: Host) -> Turn {
        let given = {
            let mut queue = self.queue();
            if queue.has_room() && queue.hosts.is_empty() {
                return self.give(&mut queue);
            }
            let (sender, given) = oneshot::channel();
            queue.push(host, sender);
            if !mem::replace(&mut queue.goes_on, true) {
                tokio::spawn(self.clone().go_on());
            }
            given
        };
        // A sender is dropped unused only together with the queue.
        match given.await {
            Ok(turn) => turn,
            Err(_) => self.give(&mut self.queue()),
        }
    }

    fn give(&self, queue: &mut Queue) -> Turn {
        let number = queue.next;
        queue.next += 1;
        queue.given.push_back((number, Instant::now()));
        Turn { turns: self.clone(), number }
    }

    /// Gives free turns to waiting requests.
    fn hand_on(&self, mut queue: MutexGuard<'_, Queue>) {
        let mut given = Vec::new();
        while queue.has_room()
            && let Some(sender) = queue.pop()
        {
            given.push((sender, self.give(&mut queue)));
        }
        drop(queue);
        for (sender, turn) in given {
            // If the request has gone meanwhile, its turn is dropped and ends here.
            drop(sender.send(turn));
        }
    }

    /// Passes on turns that have lasted too long, while requests are waiting.
    async fn go_on(self) {
        loop {
            let oldest = self.queue().given.front().map(|(_, since)| since.elapsed());
            tokio::time::sleep(PATIENCE.saturating_sub(oldest.unwrap_or(PATIENCE))).await;
            let mut queue = self.queue();
            if queue.hosts.is_empty() {
                queue.goes_on = false;
                return;
            }
            self.hand_on(queue);
        }
    }

    /// The number of turns that have not ended.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.queue().given.len()
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn has_room(&mut self) -> bool {
        while self.given.pop_front_if(|(_, since)| since.elapsed() >= PATIENCE).is_some() {}
        self.given.len() < AT_ONCE
    }

    fn push(&mut self, host: Host, sender: oneshot::Sender<Turn>) {
        let waiting = self.waiting.entry(host).or_default();
        if waiting.is_empty() {
            self.hosts.push_back(host);
        }
        waiting.push_back(sender);
    }

    /// The oldest request of the next host. The host then goes to the end of the queue.
    fn pop(&mut self) -> Option<oneshot::Sender<Turn>> {
        while let Some(host) = self.hosts.pop_front() {
            let Some(waiting) = self.waiting.get_mut(&host) else { continue };
            let next = iter::from_fn(|| waiting.pop_front()).find(|sender| !sender.is_closed());
            if waiting.is_empty() {
                self.waiting.remove(&host);
            } else {
                self.hosts.push_back(host);
            }
            if next.is_some() {
                return next;
            }
        }
        None
    }
}

impl Turn {
    /// Ends the turn, and gives it to the next request.
    pub(super) fn end(&self) {
        let mut queue = self.turns.queue();
        queue.given.retain(|(number, _)| *number != self.number);
        self.turns.hand_on(queue);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn host(last: u8) -> Host {
        IpAddr::from([10, 0, 0, last]).into()
    }

    /// As many turns as there are at once.
    async fn all(turns: &Turns, host: Host) -> Vec<Turn> {
        let mut taken = Vec::new();
        for _ in 0..AT_ONCE {
            taken.push(turns.take(host).await);
        }
        taken
    }

    #[test]
    fn a_host_that_asks_for_much_keeps_others_waiting_for_one_request_of_its_own() {
        let mut queue = Queue::default();
        let mut waiting = Vec::new();
        for last in [1, 1, 1, 2, 2, 3] {
            let (sender, given) = oneshot::channel();
            queue.push(host(last), sender);
            waiting.push(given);
        }
        let next = || queue.hosts.front().copied().filter(|_| queue.pop().is_some());
        assert_eq!(iter::from_fn(next).collect::<Vec<_>>(), [1, 2, 3, 1, 2, 1].map(host));
        assert!(queue.waiting.is_empty());
    }

    #[tokio::test]
    async fn what_waits_for_something_else_keeps_no_other_waiting_but_once() {
        let turns = Turns::default();
        let taken = all(&turns, host(1)).await;
        turns.take(host(2)).await.end();
        for _ in 0..AT_ONCE {
            let turn = turns.take(host(2)).now_or_never();
            assert!(turn.is_some(), "the turns of those that wait are over");
        }
        drop(taken);
        assert!(turns.queue().given.is_empty());
    }

    #[test]
    fn clients_that_are_gone_take_no_turn() {
        let mut queue = Queue::default();
        let (sender, _given) = oneshot::channel();
        for last in (0..=u8::MAX).cycle().take(1000) {
            queue.push(host(last), oneshot::channel().0);
        }
        queue.push(host(7), sender);
        assert!(queue.pop().is_some_and(|sender| !sender.is_closed()));
        assert!(queue.pop().is_none() && queue.waiting.is_empty());
    }

    #[test]
    fn hosts_of_ipv6_are_networks() {
        let of = |text: &str| Host::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), host(1));
        assert_ne!(host(1), host(2));
    }
}
