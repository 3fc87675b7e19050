//! The queue of unknown tokens. Any client can make such tokens up, so few are asked about at once, and hosts take turns.

use std::iter;
use std::sync::{Arc, Mutex, MutexGuard};

use cloakroom_core::client::Host;
use cloakroom_core::lock::lock;
use cloakroom_core::waiting::WaitingRoom;
use tokio::sync::oneshot;

/// Reviews at once of unknown tokens.
const AT_ONCE: usize = 4;

/// Reviews of unknown tokens, running or waiting.
pub(super) const MOST: usize = 32;

/// The queue. Clones share it.
#[derive(Clone)]
pub(super) struct UnknownTokens(Arc<Mutex<Queue>>);

struct Queue {
    running: usize,
    waiting: WaitingRoom<Host, oneshot::Sender<Place>>,
}

/// A review that may run. Dropping it lets the next one.
pub(super) struct Place(UnknownTokens);

impl Default for UnknownTokens {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Queue { running: 0, waiting: WaitingRoom::new(MOST - AT_ONCE) })))
    }
}

impl UnknownTokens {
    /// Waits until a token from `host` may be asked about. `None` if too many wait: the newest one of the host that has most
    /// of them.
    pub(super) async fn enter(&self, host: Host) -> Option<Place> {
        self.join(host).await.ok()
    }

    /// Puts a token from `host` into the queue. The receiver gets its place, or an error if it is turned away.
    fn join(&self, host: Host) -> oneshot::Receiver<Place> {
        let (sender, place) = oneshot::channel();
        let mut queue = lock(&self.0);
        queue.forget_those_that_left();
        // The one that is turned away is told so by the end of its sender.
        drop(queue.waiting.push(host, sender));
        self.hand_on(queue);
        place
    }

    /// How many are asked about or wait.
    pub(super) fn count(&self) -> usize {
        let mut queue = lock(&self.0);
        queue.forget_those_that_left();
        queue.running + queue.waiting.count()
    }

    fn hand_on(&self, mut queue: MutexGuard<'_, Queue>) {
        let free = AT_ONCE.saturating_sub(queue.running);
        let next: Vec<_> =
            iter::from_fn(|| queue.waiting.pop()).filter(|it| !it.is_closed()).take(free).collect();
        queue.running += next.len();
        drop(queue);
        for sender in next {
            // If its client has gone meanwhile, the place is dropped, and is free again.
            drop(sender.send(Place(self.clone())));
        }
    }
}

impl Queue {
    fn forget_those_that_left(&mut self) {
        self.waiting.retain(|sender| !sender.is_closed());
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut queue = lock(&self.0.0);
        queue.running -= 1;
        self.0.hand_on(queue);
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use tokio::task::JoinHandle;

    use super::*;

    fn host(last: u8) -> Host {
        IpAddr::from([10, 0, 0, last]).into()
    }

    /// Enters from another task, and returns once the queue has it.
    async fn entering(unknown: &UnknownTokens, from: Host) -> JoinHandle<Option<Place>> {
        let theirs = unknown.clone();
        let entering = tokio::spawn(async move { theirs.enter(from).await });
        tokio::task::yield_now().await;
        entering
    }

    #[tokio::test]
    async fn a_host_with_many_tokens_keeps_another_waiting_for_one_of_its_own() {
        let unknown = UnknownTokens::default();
        let mut many = Vec::new();
        for _ in 0..MOST {
            many.push(entering(&unknown, host(1)).await);
        }
        let mut running = Vec::new();
        for entering in many.drain(..AT_ONCE) {
            running.push(entering.await.unwrap().unwrap());
        }
        let other = entering(&unknown, host(2)).await;
        let newest = many.pop().unwrap();
        assert!(newest.await.unwrap().is_none(), "the newest of the host that has most is turned away");
        assert_eq!(unknown.count(), MOST);
        drop(running.pop());
        running.push(many.remove(0).await.unwrap().unwrap());
        drop(running.pop());
        assert!(other.await.unwrap().is_some());
    }

    #[tokio::test]
    async fn clients_that_left_take_no_place() {
        let unknown = UnknownTokens::default();
        let mut all = Vec::new();
        for _ in 0..MOST {
            all.push(entering(&unknown, host(1)).await);
        }
        for left in &all {
            left.abort();
        }
        for left in all {
            drop(left.await);
        }
        assert_eq!(unknown.count(), 0);
        assert!(unknown.enter(host(1)).await.is_some());
    }
}
