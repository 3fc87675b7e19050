//! The time of day and the passing of time, as a parameter, so that tests can drive both.

mod steady;

use std::time::{Duration, Instant};

use jiff::Timestamp;

pub use steady::{Readings, SteadyTime};

/// A source of time.
pub trait Clock: Send + Sync {
    /// The wall clock, cut to whole milliseconds, because the ledger stores milliseconds.
    fn now(&self) -> Timestamp;

    /// Time since some fixed moment. It never jumps: setting the wall clock does not change it.
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
