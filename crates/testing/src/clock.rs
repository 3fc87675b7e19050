//! A clock that a test moves by hand.

use std::sync::Mutex;
use std::time::Duration;

use cloakroom_core::clock::Clock;
use jiff::Timestamp;

/// A clock that stands still until a test moves it. Wall time and monotonic time move together.
pub struct ManualClock(Mutex<(Timestamp, Duration)>);

impl ManualClock {
    pub fn new() -> Self {
        let start: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        Self(Mutex::new((start, Duration::ZERO)))
    }

    pub fn advance(&self, by: Duration) {
        let mut times = self.0.lock().unwrap();
        *times = (times.0.checked_add(by).unwrap(), times.1 + by);
    }

    /// Sets the wall clock alone, as an administrator might.
    pub fn set_wall(&self, to: &str) {
        self.0.lock().unwrap().0 = to.parse().unwrap();
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.0.lock().unwrap().0
    }

    fn monotonic(&self) -> Duration {
        self.0.lock().unwrap().1
    }
}
