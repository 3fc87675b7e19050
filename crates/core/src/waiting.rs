//! A queue in which clients take turns, however much each of them has waiting. If there is too much, the client with the
//! most of it loses its newest one.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// What waits, by client. `K` tells clients apart.
#[derive(Debug)]
pub struct WaitingRoom<K, T> {
    most: usize,
    /// Clients with something waiting, each once; the next one first.
    turns: VecDeque<K>,
    /// The oldest first. No list is empty.
    waiting: HashMap<K, VecDeque<T>>,
    count: usize,
}

impl<K: Clone + Eq + Hash, T> WaitingRoom<K, T> {
    /// Room for `most`.
    pub fn new(most: usize) -> Self {
        Self { most, turns: VecDeque::new(), waiting: HashMap::new(), count: 0 }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How much waits.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Clients that wait, each as often as it has something waiting, in the order of their turns.
    pub fn clients(&self) -> Vec<K> {
        let mut clients = Vec::with_capacity(self.count);
        for round in 0.. {
            let before = clients.len();
            let has_more = |client: &&K| self.waiting.get(*client).is_some_and(|all| all.len() > round);
            clients.extend(self.turns.iter().filter(has_more).cloned());
            if clients.len() == before {
                return clients;
            }
        }
        clients
    }

    /// Adds one. If there is no room, returns the newest one of the client that has most, which may be this one.
    pub fn push(&mut self, client: K, one: T) -> Option<T> {
        let of_client = self.waiting.entry(client.clone()).or_default();
        if of_client.is_empty() {
            self.turns.push_back(client);
        }
        of_client.push_back(one);
        self.count += 1;
        if self.count <= self.most {
            return None;
        }
        let most = self.waiting.iter().max_by_key(|(_, all)| all.len()).map(|(client, _)| client.clone())?;
        let of_client = self.waiting.get_mut(&most)?;
        let newest = of_client.pop_back()?;
        self.count -= 1;
        if of_client.is_empty() {
            self.waiting.remove(&most);
            self.turns.retain(|client| *client != most);
        }
        Some(newest)
    }

    /// The oldest one of the client whose turn it is.
    pub fn peek(&self) -> Option<&T> {
        self.waiting.get(self.turns.front()?)?.front()
    }

    /// Takes out the oldest one of the client whose turn it is. The client then goes to the end of the queue.
    pub fn pop(&mut self) -> Option<T> {
        let client = self.turns.pop_front()?;
        let of_client = self.waiting.get_mut(&client)?;
        let oldest = of_client.pop_front()?;
        self.count -= 1;
        if of_client.is_empty() {
            self.waiting.remove(&client);
        } else {
            self.turns.push_back(client);
        }
        Some(oldest)
    }

    /// Takes out everything that `is_wanted` says no of.
    pub fn retain(&mut self, is_wanted: impl Fn(&T) -> bool) {
        self.waiting.retain(|_, all| {
            all.retain(&is_wanted);
            !all.is_empty()
        });
        self.turns.retain(|client| self.waiting.contains_key(client));
        self.count = self.waiting.values().map(VecDeque::len).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Invariant: a client with many requests makes others wait for one of them, not for all.
    #[test]
    fn clients_take_turns_however_many_each_has() {
        let mut room = WaitingRoom::new(10);
        for (client, name) in [(1, "a"), (1, "b"), (1, "c"), (2, "d"), (3, "e"), (2, "f")] {
            assert_eq!(room.push(client, name), None);
        }
        assert_eq!(room.clients(), [1, 2, 3, 1, 2, 1]);
        let order: Vec<&str> = std::iter::from_fn(|| room.pop()).collect();
        assert_eq!(order, ["a", "d", "e", "b", "f", "c"]);
        assert!(room.is_empty() && room.peek().is_none() && room.clients().is_empty());
    }

    #[test]
    fn the_client_that_has_most_is_turned_away_by_its_newest() {
        let mut room = WaitingRoom::new(4);
        for number in 0..4 {
            assert_eq!(room.push(1, number), None);
        }
        assert_eq!(room.push(2, 10), Some(3));
        assert_eq!(room.push(1, 4), Some(4), "it has most itself");
        assert_eq!(room.push(2, 11), Some(2));
        assert_eq!([room.pop(), room.pop(), room.pop(), room.pop()], [Some(0), Some(10), Some(1), Some(11)]);
    }

    #[test]
    fn those_that_left_take_no_room_and_no_turn() {
        let mut room = WaitingRoom::new(4);
        for (client, number) in [(1, 0), (1, 1), (2, 2), (3, 3)] {
            room.push(client, number);
        }
        room.retain(|number| number % 2 == 1);
        assert_eq!((room.count(), room.clients()), (2, vec![1, 3]));
        assert_eq!([room.pop(), room.pop(), room.pop()], [Some(1), Some(3), None]);
    }
}
