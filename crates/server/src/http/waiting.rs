//! Connections that were accepted and have no place yet. Hosts take turns. If too many connections wait, the host with the
//! most of them loses its newest one. In the kernel's queue instead, one host's connections would come before all others.

use std::collections::{HashMap, VecDeque};

use super::turns::Host;

/// The waiting connections of each host.
pub(super) struct WaitingRoom<T> {
    most: usize,
    /// Hosts with something waiting, each once; the next one first.
    turns: VecDeque<Host>,
    /// The oldest first. No list is empty.
    waiting: HashMap<Host, VecDeque<T>>,
    count: usize,
}

impl<T> WaitingRoom<T> {
    /// Room for `most`.
    pub(super) fn new(most: usize) -> Self {
        Self { most, turns: VecDeque::new(), waiting: HashMap::new(), count: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Hosts that wait, each as often as it has something waiting, in the order of their turns.
    pub(super) fn hosts(&self) -> Vec<Host> {
        let mut hosts = Vec::with_capacity(self.count);
        for round in 0.. {
            let before = hosts.len();
            hosts.extend(
                self.turns.iter().filter(|host| self.waiting.get(host).is_some_and(|all| all.len() > round)),
            );
            if hosts.len() == before {
                return hosts;
            }
        }
        hosts
    }

    /// Adds one. If there is no room, returns the newest one of the host that has most, which may be this one.
    pub(super) fn push(&mut self, host: Host, one: T) -> Option<T> {
        let of_host = self.waiting.entry(host).or_default();
        if of_host.is_empty() {
            self.turns.push_back(host);
        }
        of_host.push_back(one);
        self.count += 1;
        if self.count <= self.most {
            return None;
        }
        let most = self.waiting.iter().max_by_key(|(_, all)| all.len()).map(|(host, _)| *host)?;
        self.remove(most, VecDeque::pop_back)
    }

    /// The oldest one of the host whose turn it is.
    pub(super) fn peek(&self) -> Option<&T> {
        self.waiting.get(self.turns.front()?)?.front()
    }

    /// Takes out the oldest one of the host whose turn it is. The host then goes to the end of the queue.
    pub(super) fn pop(&mut self) -> Option<T> {
        let host = self.turns.pop_front()?;
        self.turns.push_back(host);
        self.remove(host, VecDeque::pop_front)
    }

    fn remove(&mut self, host: Host, which: impl FnOnce(&mut VecDeque<T>) -> Option<T>) -> Option<T> {
        let of_host = self.waiting.get_mut(&host)?;
        let removed = which(of_host)?;
        self.count -= 1;
        if of_host.is_empty() {
            self.waiting.remove(&host);
            self.turns.retain(|other| *other != host);
        }
        Some(removed)
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn host(last: u8) -> Host {
        IpAddr::from([10, 0, 0, last]).into()
    }

    #[test]
    fn hosts_take_turns_however_many_each_has() {
        let mut room = WaitingRoom::new(10);
        for (last, name) in [(1, "a"), (1, "b"), (1, "c"), (2, "d"), (3, "e"), (2, "f")] {
            assert_eq!(room.push(host(last), name), None);
        }
        assert_eq!(room.hosts(), [1, 2, 3, 1, 2, 1].map(host));
        let order: Vec<&str> = std::iter::from_fn(|| room.pop()).collect();
        assert_eq!(order, ["a", "d", "e", "b", "f", "c"]);
        assert!(room.is_empty() && room.peek().is_none() && room.hosts().is_empty());
    }

    #[test]
    fn the_host_that_has_most_is_turned_away_by_its_newest() {
        let mut room = WaitingRoom::new(4);
        for number in 0..4 {
            assert_eq!(room.push(host(1), number), None);
        }
        assert_eq!(room.push(host(2), 10), Some(3));
        assert_eq!(room.push(host(1), 4), Some(4), "it has most itself");
        assert_eq!(room.push(host(2), 11), Some(2));
        assert_eq!([room.pop(), room.pop(), room.pop(), room.pop()], [Some(0), Some(10), Some(1), Some(11)]);
    }
}
