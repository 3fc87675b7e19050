//! What time it is, as a parameter.

use std::time::{Duration, Instant};

use jiff::Timestamp;

/// Tells the time.
pub trait Clock: Send + Sync {
    /// The wall clock, in whole milliseconds: what the ledger can keep.
    fn now(&self) -> Timestamp;

    /// Time since some fixed moment, by a clock that nobody sets.
    fn monotonic(&self) -> Duration;
}

/// The operating system's clocks.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// Starts the monotonic clock at zero.
    pub fn new() -> Self {
        Self { started: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let now = Timestamp::now();
        Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
}
