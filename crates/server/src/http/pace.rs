//! Limits how slow the other side of a connection may be. Only the time spent waiting for it counts, and never the time
//! that the server needs.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// The least speed that the other side of a connection must have.
#[derive(Debug, Clone, Copy)]
pub struct PaceLimits {
    /// The longest time without a single byte.
    pub idle_timeout: Duration,
    /// The least average, in bytes for each second of waiting.
    pub min_rate: u64,
    /// The waiting time over which the average is taken.
    pub rate_window: Duration,
}

/// Why the other side is too slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum TooSlow {
    /// It moved no byte for the longest time.
    #[error("nothing came for {} s (--idle-timeout){}", limit.as_secs_f64(), about_standstill(*late))]
    Idle { limit: Duration, late: Duration },
    /// Its average was too low.
    #[error("less than {rate} bytes a second moved over {} s (--min-rate)", window.as_secs_f64())]
    BelowRate { rate: u64, window: Duration },
}

/// If it takes the server longer than this to notice something, the server stood still.
const STANDSTILL: Duration = Duration::from_secs(5);

impl TooSlow {
    /// Whether this may be the server's own fault: it stood still, for instance because it was paused.
    pub(super) fn is_after_standstill(&self) -> bool {
        matches!(self, Self::Idle { late, .. } if *late > STANDSTILL)
    }
}

fn about_standstill(late: Duration) -> String {
    if late <= STANDSTILL {
        return String::new();
    }
    format!("; the server itself stood still for {} s or more", late.as_secs())
}

/// Measures one direction of a connection.
#[derive(Debug)]
pub(super) struct Pace {
    limits: PaceLimits,
    /// When the present wait began, if no byte has moved since; `None` while bytes move.
    idle_since: Option<Instant>,
    /// When the part of the present wait began that is not in `waited` yet.
    waiting_since: Option<Instant>,
    /// The waiting time in the present window.
    waited: Duration,
    moved_bytes: u64,
    alarm: Option<Pin<Box<Sleep>>>,
}

impl Pace {
    pub(super) fn new(limits: PaceLimits) -> Self {
        Self {
            limits,
            idle_since: None,
            waiting_since: None,
            waited: Duration::ZERO,
            moved_bytes: 0,
            alarm: None,
        }
    }

    /// Counts `bytes` that the other side moved. It is an error if the window has ended and the average is too low.
    pub(super) fn moved(&mut self, bytes: usize) -> Result<(), TooSlow> {
        self.moved_bytes += bytes as u64;
        self.idle_since = None;
        if let Some(since) = self.waiting_since.take() {
            self.waited += since.elapsed();
        }
        self.judge_window(self.waited)
    }

    /// Counts the time until the other side moves again. The task is woken when that takes too long.
    pub(super) fn poll_waiting(&mut self, context: &mut Context<'_>) -> Poll<TooSlow> {
        let now = Instant::now();
        let idle_since = *self.idle_since.get_or_insert(now);
        let since = *self.waiting_since.get_or_insert(now);
        let limit = self.limits.idle_timeout;
        if let Some(late) = (now - idle_since).checked_sub(limit) {
            return Poll::Ready(TooSlow::Idle { limit, late });
        }
        let waited = self.waited + (now - since);
        if waited >= self.limits.rate_window {
            if let Err(too_slow) = self.judge_window(waited) {
                return Poll::Ready(too_slow);
            }
            self.waiting_since = Some(now);
        }
        let window_ends =
            self.waiting_since.unwrap_or(now) + self.limits.rate_window.saturating_sub(self.waited);
        self.set_alarm(window_ends.min(idle_since + self.limits.idle_timeout), context)
    }

    fn set_alarm(&mut self, at: Instant, context: &mut Context<'_>) -> Poll<TooSlow> {
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        if alarm.deadline() != at {
            alarm.as_mut().reset(at);
        }
        match alarm.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                // The alarm is due, so the task is woken to check again.
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    fn judge_window(&mut self, waited: Duration) -> Result<(), TooSlow> {
        if waited < self.limits.rate_window {
            return Ok(());
        }
        let asked = u128::from(self.limits.min_rate) * waited.as_millis() / 1000;
        let is_too_slow = u128::from(self.moved_bytes) < asked;
        (self.waited, self.moved_bytes) = (Duration::ZERO, 0);
        if is_too_slow {
            Err(TooSlow::BelowRate { rate: self.limits.min_rate, window: self.limits.rate_window })
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    const SHORT: Duration = Duration::from_millis(40);
    const LONG: Duration = Duration::from_hours(1);

    fn pace(idle_timeout: Duration, min_rate: u64, rate_window: Duration) -> Pace {
        Pace::new(PaceLimits { idle_timeout, min_rate, rate_window })
    }

    async fn wait(pace: &mut Pace) -> TooSlow {
        let verdict = poll_fn(|context| pace.poll_waiting(context));
        tokio::time::timeout(Duration::from_secs(30), verdict).await.expect("waited for ever")
    }

    #[tokio::test]
    async fn silence_ends_after_the_idle_timeout_however_short_the_window_is() {
        for window in [SHORT / 4, SHORT, SHORT * 4, LONG] {
            let start = Instant::now();
            let verdict = wait(&mut pace(SHORT, 0, window)).await;
            assert!(matches!(verdict, TooSlow::Idle { limit: SHORT, .. }), "{window:?}: {verdict}");
            assert!(start.elapsed() >= SHORT);
        }
    }

    #[tokio::test]
    async fn a_server_that_stood_still_says_so_of_each_transfer_that_it_ends() {
        for (paused, is_told) in [(SHORT + Duration::from_secs(73), true), (SHORT, false)] {
            let mut pace = pace(SHORT, 0, LONG);
            pace.idle_since = Instant::now().checked_sub(paused);
            let verdict = wait(&mut pace).await;
            assert_eq!(verdict.is_after_standstill(), is_told);
            assert_eq!(
                verdict.to_string().contains("the server itself stood still for 73 s or more"),
                is_told
            );
        }
    }

    #[tokio::test]
    async fn a_crawl_ends_after_the_window() {
        let mut pace = pace(LONG, 1_000_000, SHORT);
        pace.moved(1000).unwrap();
        assert_eq!(wait(&mut pace).await, TooSlow::BelowRate { rate: 1_000_000, window: SHORT });
    }

    #[tokio::test]
    async fn only_waiting_counts_not_the_time_that_is_needed_here() {
        let limit = Duration::from_millis(400);
        let mut pace = pace(limit, 1_000_000, limit);
        for _ in 0..3 {
            let moment = Duration::from_millis(5);
            let verdict = tokio::time::timeout(moment, poll_fn(|context| pace.poll_waiting(context))).await;
            assert!(verdict.is_err(), "{verdict:?}");
            pace.moved(1).unwrap();
            tokio::time::sleep(limit).await;
            pace.moved(1).unwrap();
        }
    }
}
