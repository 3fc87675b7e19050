//! Limits how long a connection waits for the head of a request: `--header-timeout` from the accept, and later from the
//! first byte of the head. Between two requests a connection may be idle for much longer. The timer of hyper counts both
//! together, so it is not used.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloakroom_core::lock::lock;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// The timer of one connection. Clones belong to the same connection.
#[derive(Debug, Clone)]
pub(super) struct HeadTimer {
    header_timeout: Duration,
    keep_alive: Duration,
    state: Arc<Mutex<State>>,
    /// When the connection ends if nothing happens before.
    deadline: watch::Sender<Option<Instant>>,
}

/// The state of a connection, a set of the bits below. A connection without any of them is idle.
type State = u8;

/// A head is awaited for the first time, or has begun.
const HEAD: State = 1;
/// The body of a request is being read.
const BODY: State = 2;
/// The answer is not complete.
const ANSWER: State = 4;
/// The answer has not gone to the socket.
const WRITE: State = 8;

impl HeadTimer {
    /// The timer of a connection that was just accepted. It may be idle for `keep_alive` after a request.
    pub(super) fn start(header_timeout: Duration, keep_alive: Duration) -> Self {
        let deadline = watch::Sender::new(Some(Instant::now() + header_timeout));
        Self { header_timeout, keep_alive, state: Arc::new(Mutex::new(HEAD)), deadline }
    }

    /// Tells that a whole head has come.
    pub(super) fn request(&self) -> (Answering, Receiving) {
        *lock(&self.state) = BODY | ANSWER | WRITE;
        self.deadline.send_replace(None);
        (Answering(self.clone()), Receiving(self.clone()))
    }

    /// Tells that everything that was written has gone to the socket.
    pub(super) fn flushed(&self) {
        self.leave(|state| if state & ANSWER == 0 { WRITE } else { 0 });
    }

    /// Tells that bytes have come.
    pub(super) fn received(&self) {
        let mut state = lock(&self.state);
        if *state == 0 {
            *state = HEAD;
            self.deadline.send_replace(Some(Instant::now() + self.header_timeout));
        }
    }

    /// Waits until the connection was idle for too long, or a head took too long.
    pub(super) async fn is_over(&self) {
        let mut deadline = self.deadline.subscribe();
        loop {
            let until = *deadline.borrow_and_update();
            tokio::select! {
                () = at(until) => return,
                // This timer has a sender of its own, so the channel stays open.
                _ = deadline.changed() => {}
            }
        }
    }

    /// Removes bits from the state.
    fn leave(&self, ended: impl FnOnce(State) -> State) {
        let mut state = lock(&self.state);
        let before = *state;
        *state &= !ended(before);
        if *state == 0 && before != 0 {
            self.deadline.send_replace(Some(Instant::now() + self.keep_alive));
        }
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}

/// Dropping it tells that the answer is complete.
pub(super) struct Answering(HeadTimer);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.leave(|_| ANSWER);
    }
}

/// Dropping it tells that no more of the request's body is read.
pub(super) struct Receiving(HeadTimer);

impl Drop for Receiving {
    fn drop(&mut self) {
        self.0.leave(|_| BODY);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    const HEADER: Duration = Duration::from_millis(20);
    const KEEP_ALIVE: Duration = Duration::from_millis(60);
    const LONG: Duration = Duration::from_millis(150);

    async fn over_after(timer: &HeadTimer) -> Duration {
        let began = Instant::now();
        timer.is_over().await;
        began.elapsed()
    }

    #[tokio::test]
    async fn a_head_has_its_time_from_the_accept_and_from_its_first_byte() {
        let timer = HeadTimer::start(HEADER, LONG * 100);
        // The first head gains nothing by its bytes.
        timer.received();
        timer.is_over().await;
        let (answering, receiving) = timer.request();
        let goes_on = async |what: &str| {
            timer.received();
            assert!(timeout(LONG, timer.is_over()).await.is_err(), "{what}");
        };
        goes_on("a request has no such end").await;
        timer.flushed();
        drop(answering);
        goes_on("the answer is being written").await;
        timer.flushed();
        goes_on("the rest of the body is being read").await;
        drop(receiving);
        assert!(timeout(LONG, timer.is_over()).await.is_err(), "it may be idle for longer");
        timer.received();
        assert!(over_after(&timer).await >= HEADER);
    }

    #[tokio::test]
    async fn a_connection_that_is_idle_for_too_long_ends() {
        let timer = HeadTimer::start(HEADER, KEEP_ALIVE);
        let waiting = timer.clone();
        // It is told of what happens while it waits.
        let over = tokio::spawn(async move { over_after(&waiting).await });
        drop(timer.request());
        timer.flushed();
        timer.flushed();
        assert!(over.await.unwrap() >= KEEP_ALIVE);
    }
}
