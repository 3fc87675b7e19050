//! Whose request is begun next. Clients take turns by their address: one that asks for much at once makes the others wait
//! for one request of its own, not for all.
//!
//! Only the beginning of a request takes a turn: from its head until its body is asked for, or its answer is there. That
//! part uses the ledger and the processor, and is short. One that waits for something else, such as the API server, keeps
//! the others waiting for [`PATIENCE`] and no longer.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use std::{iter, mem};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::oneshot;

/// Requests that are begun at once.
const AT_ONCE: usize = 8;

/// After this time without a turn for those who wait, one more is given.
const PATIENCE: Duration = Duration::from_millis(2);

/// A host, as far as its address tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Host(IpAddr);

impl From<IpAddr> for Host {
    /// In IPv6 a host has a network of 64 bits to itself, as a rule.
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
            address @ IpAddr::V4(_) => address,
        })
    }
}

/// The turns of one listener. Clones are the same ones.
#[derive(Clone, Default)]
pub(super) struct Turns(Arc<Mutex<Queue>>);

#[derive(Default)]
struct Queue {
    /// Turns that were given and are not over.
    taken: usize,
    /// Hosts that wait, the next one first; each of them once.
    hosts: VecDeque<Host>,
    /// Their requests, the oldest first; never empty.
    waiting: HashMap<Host, VecDeque<oneshot::Sender<Turn>>>,
    /// [`Turns::go_on`] runs.
    goes_on: bool,
}

/// The beginning of one request.
pub(super) struct Turn {
    turns: Turns,
    is_over: AtomicBool,
}

impl Turns {
    /// Waits for a turn.
    pub(super) async fn take(&self, host: Host) -> Turn {
        let given = {
            let mut queue = self.queue();
            if queue.taken < AT_ONCE && queue.hosts.is_empty() {
                return self.give(&mut queue);
            }
            let (sender, given) = oneshot::channel();
            queue.push(host, sender);
            if !mem::replace(&mut queue.goes_on, true) {
                tokio::spawn(self.clone().go_on());
            }
            given
        };
        // Every sender is used, or the queue is gone with everything else.
        match given.await {
            Ok(turn) => turn,
            Err(_) => self.give(&mut self.queue()),
        }
    }

    fn give(&self, queue: &mut Queue) -> Turn {
        queue.taken += 1;
        Turn { turns: self.clone(), is_over: AtomicBool::new(false) }
    }

    /// As long as there are some who wait, none of them waits for requests that wait themselves.
    async fn go_on(self) {
        loop {
            tokio::time::sleep(PATIENCE).await;
            let mut queue = self.queue();
            let Some(sender) = queue.pop() else {
                queue.goes_on = false;
                return;
            };
            let turn = self.give(&mut queue);
            drop(queue);
            // The turn of one that is gone ends here.
            drop(sender.send(turn));
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn push(&mut self, host: Host, sender: oneshot::Sender<Turn>) {
        let waiting = self.waiting.entry(host).or_default();
        if waiting.is_empty() {
            self.hosts.push_back(host);
        }
        waiting.push_back(sender);
    }

    /// The oldest request of the next host, which goes to the end of the queue.
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
    /// The beginning is over.
    pub(super) fn end(&self) {
        if self.is_over.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut queue = self.turns.queue();
        queue.taken -= 1;
        let mut given = Vec::new();
        while queue.taken < AT_ONCE
            && let Some(sender) = queue.pop()
        {
            given.push((sender, self.turns.give(&mut queue)));
        }
        drop(queue);
        for (sender, turn) in given {
            drop(sender.send(turn));
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.end();
    }
}

/// The body of a request, whose turn is over when it is asked for.
pub(super) struct AwaitedBody {
    pub(super) body: Body,
    pub(super) turn: Arc<Turn>,
}

impl HttpBody for AwaitedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.turn.end();
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use http_body_util::BodyExt as _;

    use super::*;

    fn host(last: u8) -> Host {
        IpAddr::from([10, 0, 0, last]).into()
    }

    /// All that are given at once.
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
    async fn requests_that_wait_for_something_else_do_not_keep_others_waiting() {
        let turns = Turns::default();
        let taken = all(&turns, host(1)).await;
        for _ in 0..3 {
            turns.take(host(2)).await.end();
        }
        assert_eq!(turns.queue().taken, taken.len());
    }

    #[tokio::test]
    async fn clients_that_are_gone_take_no_turn() {
        let turns = Turns::default();
        let taken = all(&turns, host(1)).await;
        for _ in 0..100_000 {
            assert!(turns.take(host(2)).now_or_never().is_none());
        }
        drop(taken);
        assert_eq!(turns.queue().taken, 0);
        assert!(turns.take(host(3)).now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_turn_is_over_when_the_body_is_asked_for() {
        let turns = Turns::default();
        let turn = Arc::new(turns.take(host(1)).await);
        let mut body = AwaitedBody { body: Body::from("jars"), turn: Arc::clone(&turn) };
        assert_eq!(turns.queue().taken, 1);
        body.frame().await.unwrap().unwrap();
        assert_eq!(turns.queue().taken, 0);
        drop((body, turn));
        assert_eq!(turns.queue().taken, 0, "it is over once");
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
