//! The waits between attempts, and which failures to report. Each caller decides what it tries again, and for how long.

use std::time::Duration;

/// The whole wait, in place of a random number. It is for callers that do not try at the same moment as others.
pub const WITHOUT_JITTER: f64 = 1.0;

/// Waits that double from `first` up to `longest`. Half of each wait is random, so that pods and servers that failed
/// together do not try again together. With a first wait of 200 ms, a server that is away for 3 s costs less than 2 s
/// more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The wait after the first failure.
    pub first: Duration,
    /// The longest wait, unless the server asks for a longer one.
    pub longest: Duration,
    /// The longest `Retry-After` that is respected.
    pub longest_asked: Duration,
}

impl Backoff {
    /// The wait after `failures` failures in a row. `random` is from 0 to 1.
    fn delay(&self, failures: u32, random: f64) -> Duration {
        let doubled =
            self.first.saturating_mul(1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX));
        doubled.min(self.longest).mul_f64(0.5 + random.clamp(0.0, 1.0) / 2.0)
    }
}

/// The failures since the last success, and the last news of them that was reported. `N` tells one news from another.
#[derive(Debug)]
pub struct Failures<N = ()> {
    count: u32,
    told: Option<N>,
}

impl<N> Default for Failures<N> {
    fn default() -> Self {
        Self { count: 0, told: None }
    }
}

impl<N: PartialEq> Failures<N> {
    /// The number of failures.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Counts a failure, and returns the wait until the next attempt. `asked` is the server's `Retry-After`. `random`
    /// is from 0 to 1.
    pub fn wait(&mut self, backoff: &Backoff, asked: Option<Duration>, random: f64) -> Duration {
        self.count = self.count.saturating_add(1);
        let asked = asked.unwrap_or_default().min(backoff.longest_asked);
        backoff.delay(self.count, random).max(asked)
    }

    /// Whether to report this: once, until there are other news or a success.
    pub fn is_news(&mut self, news: N) -> bool {
        let is_told = self.told.as_ref() == Some(&news);
        self.told = Some(news);
        !is_told
    }

    /// Counts a success. Returns whether a failure before it was reported.
    pub fn end(&mut self) -> bool {
        std::mem::take(self).told.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff = Backoff {
        first: Duration::from_millis(200),
        longest: Duration::from_secs(2),
        longest_asked: Duration::from_mins(1),
    };

    #[test]
    fn waits_double_up_to_the_longest_and_begin_anew_after_a_success() {
        let mut failures = Failures::<()>::default();
        let mut wait = |random| failures.wait(&BACKOFF, None, random).as_millis();
        assert_eq!([(); 6].map(|()| wait(WITHOUT_JITTER)), [200, 400, 800, 1600, 2000, 2000]);
        assert_eq!(wait(0.0), 1000);
        assert_eq!(failures.count(), 7);
        failures.end();
        assert_eq!(failures.wait(&BACKOFF, None, 0.0), Duration::from_millis(100));
        assert_eq!(BACKOFF.delay(40, WITHOUT_JITTER), Duration::from_secs(2));
    }

    #[test]
    fn a_server_that_asks_for_time_gets_it_within_bounds() {
        for (asked, expected) in [(None, 200), (Some(0), 200), (Some(2), 2000), (Some(10_000), 60_000)] {
            let wait =
                Failures::<()>::default().wait(&BACKOFF, asked.map(Duration::from_secs), WITHOUT_JITTER);
            assert_eq!(wait.as_millis(), expected, "{asked:?}");
        }
    }

    #[test]
    fn each_news_is_told_once_until_a_success() {
        let mut failures = Failures::default();
        assert_eq!(
            ["a", "a", "b", "b", "a"].map(|news| failures.is_news(news)),
            [true, false, true, false, true]
        );
        assert!(failures.end() && !failures.end());
        assert!(failures.is_news("a"));
    }
}
