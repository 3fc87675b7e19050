//! Time that does not jump when somebody sets the wall clock.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::clock::Clock;

/// A disagreement of the clocks that is taken for a correction and not for drift.
const JUMP: SignedDuration = SignedDuration::from_secs(60);

/// The wall clock, less every jump that it made since the start.
#[derive(Debug)]
pub(super) struct SteadyTime {
    wall: Timestamp,
    monotonic: Duration,
    jumped: SignedDuration,
}

impl SteadyTime {
    pub(super) fn new(clock: &dyn Clock) -> Self {
        Self { wall: clock.now(), monotonic: clock.monotonic(), jumped: SignedDuration::ZERO }
    }

    /// The time by which time rules are judged.
    pub(super) fn now(&mut self, clock: &dyn Clock) -> Timestamp {
        let (wall, monotonic) = (clock.now(), clock.monotonic());
        let passed = SignedDuration::try_from(monotonic.saturating_sub(self.monotonic)).unwrap_or_default();
        let jump = wall.duration_since(self.wall) - passed;
        if jump.abs() > JUMP {
            self.jumped = self.jumped.saturating_add(jump);
            tracing::warn!(
                seconds = jump.as_secs(),
                "the wall clock jumped; expiry goes on by the monotonic clock"
            );
        }
        (self.wall, self.monotonic) = (wall, monotonic);
        wall.checked_sub(self.jumped).unwrap_or(wall)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    struct TwoClocks(Mutex<(i64, u64)>);

    impl Clock for TwoClocks {
        fn now(&self) -> Timestamp {
            Timestamp::from_second(self.0.lock().unwrap().0).unwrap()
        }

        fn monotonic(&self) -> Duration {
            Duration::from_secs(self.0.lock().unwrap().1)
        }
    }

    #[test]
    fn a_jump_of_the_wall_clock_does_not_move_the_time() {
        let clocks = TwoClocks(Mutex::new((1_000_000, 0)));
        let mut time = SteadyTime::new(&clocks);
        for (wall, monotonic, expected) in [
            (1_000_030, 30, 1_000_030),
            (9_000_060, 60, 1_000_060),
            (9_000_090, 90, 1_000_090),
            (5, 120, 1_000_120),
        ] {
            *clocks.0.lock().unwrap() = (wall, monotonic);
            assert_eq!(time.now(&clocks), Timestamp::from_second(expected).unwrap());
        }
    }
}
