//! The waits between attempts.

use std::time::Duration;

/// Waits that double from `first` up to `longest`. Half of each wait is random, so that pods that failed together do
/// not try again together. If a server is away for 3 s, these waits add less than 2 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The wait after the first failure.
    pub first: Duration,
    /// The longest wait.
    pub longest: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { first: Duration::from_millis(200), longest: Duration::from_secs(2) }
    }
}

impl Backoff {
    /// The wait after `failures` failures in a row. `random` is from 0 to 1.
    pub fn delay(&self, failures: u32, random: f64) -> Duration {
        let doubled =
            self.first.saturating_mul(1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX));
        doubled.min(self.longest).mul_f64(0.5 + random.clamp(0.0, 1.0) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let backoff = Backoff::default();
        let waits = [1, 2, 3, 4, 5, 40].map(|failures| backoff.delay(failures, 1.0).as_millis());
        assert_eq!(waits, [200, 400, 800, 1600, 2000, 2000]);
        assert_eq!(backoff.delay(1, 0.0), Duration::from_millis(100));
        assert_eq!(backoff.delay(0, 1.0), Duration::from_millis(200));
    }
}
