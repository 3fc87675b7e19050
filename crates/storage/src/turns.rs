//! Decides whose work is done next. Clients take turns, so a client with many requests makes the others wait for one of
//! its requests, and not for all.
//!
//! Only short work that uses the processor, the ledger or the disk needs a turn. If it takes longer than is usual for it, it
//! waits for something else, such as its client or the API server. So its turn ends.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use cloakroom_core::client::Client;
use cloakroom_core::lock::lock;
use cloakroom_core::waiting::WaitingRoom;

/// The longest time of a turn that needs the processor.
const PATIENCE: Duration = Duration::from_millis(2);

/// A client is not alone for so long after another one had a turn.
const COMPANY: Duration = Duration::from_millis(100);

/// The turns at one kind of work. Clones share them.
#[derive(Debug, Clone)]
pub struct Turns(Arc<Mutex<Queue>>);

#[derive(Debug)]
struct Queue {
    at_once: usize,
    /// The longest time of a turn.
    patience: Duration,
    /// `None` if clients that are alone take turns, too.
    company: Option<Company>,
    /// Turns that have not ended, with their numbers and the times of their beginnings; the oldest first.
    given: VecDeque<(u64, Instant)>,
    /// The number of the next turn.
    next: u64,
    waiting: WaitingRoom<Client, oneshot::Sender<Turn>>,
    /// Whether [`Turns::go_on`] runs.
    goes_on: bool,
}

/// A turn. Dropping it ends it.
#[derive(Debug)]
pub struct Turn {
    turns: Turns,
    number: u64,
}

impl Turns {
    /// So many turns at once at what needs the processor.
    pub fn new(at_once: usize) -> Self {
        Self::with(at_once, PATIENCE, None)
    }

    /// The same, and any number for a client that is alone.
    pub fn between_clients(at_once: usize) -> Self {
        Self::with(at_once, PATIENCE, Some(Company::default()))
    }

    /// One turn at a time, for `patience` at most.
    pub fn one_by_one(patience: Duration) -> Self {
        Self::with(1, patience, None)
    }

    fn with(at_once: usize, patience: Duration, company: Option<Company>) -> Self {
        // The places for connections limit how many wait.
        let waiting = WaitingRoom::new(usize::MAX);
        let queue =
            Queue { at_once, patience, company, given: VecDeque::new(), next: 0, waiting, goes_on: false };
        Self(Arc::new(Mutex::new(queue)))
    }

    /// Waits for a turn.
    pub async fn take(&self, client: Client) -> Turn {
        let given = {
            let mut queue = lock(&self.0);
            let is_alone =
                queue.company.as_mut().is_some_and(|company| company.is_alone(&client, Instant::now()));
            if queue.waiting.is_empty() && (is_alone || queue.has_room()) {
                return self.give(&mut queue);
            }
            let (sender, given) = oneshot::channel();
            // There is always room.
            drop(queue.waiting.push(client, sender));
            if !mem::replace(&mut queue.goes_on, true) {
                tokio::spawn(self.clone().go_on());
            }
            given
        };
        // A sender is dropped unused only together with the queue.
        match given.await {
            Ok(turn) => turn,
            Err(_) => self.give(&mut lock(&self.0)),
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
            let until_over = lock(&self.0).until_over();
            tokio::time::sleep(until_over).await;
            let mut queue = lock(&self.0);
            if queue.waiting.is_empty() {
                queue.goes_on = false;
                return;
            }
            self.hand_on(queue);
        }
    }

    /// The number of turns that have not ended.
    pub fn count(&self) -> usize {
        lock(&self.0).given.len()
    }
}

/// Which clients asked lately.
#[derive(Debug, Default)]
struct Company {
    last: Client,
    /// When another one than the one before asked.
    changed_at: Option<Instant>,
}

impl Company {
    /// Whether no other one than this client, which asks at `now`, has asked lately.
    fn is_alone(&mut self, client: &Client, now: Instant) -> bool {
        if self.last != *client {
            self.last = client.clone();
            self.changed_at = Some(now);
        }
        self.changed_at.is_none_or(|changed_at| now.saturating_duration_since(changed_at) >= COMPANY)
    }
}

impl Queue {
    /// How long it takes until the oldest turn is over.
    fn until_over(&self) -> Duration {
        let oldest = self.given.front().map(|(_, since)| since.elapsed());
        self.patience.saturating_sub(oldest.unwrap_or(self.patience))
    }

    fn has_room(&mut self) -> bool {
        while self.given.pop_front_if(|(_, since)| since.elapsed() >= self.patience).is_some() {}
        self.given.len() < self.at_once
    }

    /// The next request whose client is still there.
    fn pop(&mut self) -> Option<oneshot::Sender<Turn>> {
        std::iter::from_fn(|| self.waiting.pop()).find(|sender| !sender.is_closed())
    }
}

impl Turn {
    /// Ends the turn, and gives it to the next request.
    pub fn end(&self) {
        let mut queue = lock(&self.turns.0);
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
    use std::net::IpAddr;
    use std::pin::pin;

    use futures_util::FutureExt as _;

    use super::*;
    use cloakroom_core::resource::Holder;

    const AT_ONCE: usize = 8;

    fn host(last: u8) -> Client {
        Client::Host(IpAddr::from([10, 0, 0, last]).into())
    }

    /// As many turns as there are at once.
    async fn all(turns: &Turns, client: Client) -> Vec<Turn> {
        let mut taken = Vec::new();
        for _ in 0..AT_ONCE {
            taken.push(turns.take(client.clone()).await);
        }
        taken
    }

    #[tokio::test]
    async fn what_waits_for_something_else_keeps_no_other_waiting_but_once() {
        let turns = Turns::new(AT_ONCE);
        let taken = all(&turns, host(1)).await;
        turns.take(host(2)).await.end();
        for _ in 0..AT_ONCE {
            let turn = turns.take(host(2)).now_or_never();
            assert!(turn.is_some(), "the turns of those that wait are over");
        }
        drop(taken);
        assert!(lock(&turns.0).given.is_empty());
    }

    #[tokio::test]
    async fn a_client_that_is_alone_may_have_any_number_of_turns() {
        let turns = Turns::between_clients(1);
        lock(&turns.0).company = Some(Company { last: host(1), changed_at: None });
        let alone = [turns.take(host(1)).now_or_never(), turns.take(host(1)).now_or_never()];
        assert!(alone.iter().all(Option::is_some));
    }

    #[tokio::test]
    async fn one_by_one_the_next_waits_until_the_one_before_has_ended() {
        let turns = Turns::one_by_one(Duration::from_hours(1));
        let first = turns.take(host(1)).await;
        let mut second = pin!(turns.take(host(2)));
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        second.await.end();
    }

    #[test]
    fn a_client_is_alone_some_time_after_the_last_one_that_was_another() {
        let (mut company, now) = (Company { last: host(1), changed_at: None }, Instant::now());
        assert!(company.is_alone(&host(1), now));
        for client in [host(2), host(1), host(1)] {
            assert!(!company.is_alone(&client, now));
        }
        assert!(!company.is_alone(&host(1), now + COMPANY / 2));
        assert!(company.is_alone(&host(1), now + COMPANY));
    }

    #[test]
    fn clients_that_are_gone_take_no_turn() {
        let turns = Turns::new(AT_ONCE);
        let mut queue = lock(&turns.0);
        let (sender, _given) = oneshot::channel();
        for last in (0..=u8::MAX).cycle().take(1000) {
            queue.waiting.push(host(last), oneshot::channel().0);
        }
        queue.waiting.push(host(7), sender);
        assert!(queue.pop().is_some_and(|sender| !sender.is_closed()));
        assert!(queue.pop().is_none() && queue.waiting.is_empty());
    }

    #[test]
    fn namespaces_behind_one_address_take_turns() {
        let turns = Turns::new(AT_ONCE);
        let mut queue = lock(&turns.0);
        let mut receivers = Vec::new();
        let spark = || Client::Holder(Holder::namespace("spark"));
        for client in [host(1), host(1), host(1), spark()] {
            let (sender, given) = oneshot::channel();
            queue.waiting.push(client, sender);
            receivers.push(given);
        }
        assert_eq!(queue.waiting.clients(), [host(1), spark(), host(1), host(1)]);
    }
}
