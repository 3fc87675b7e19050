//! Measures time so that changes of the wall clock end nothing too early.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::Clock;

/// If the wall clock and the monotonic clock differ by more than this, the wall clock was set. A smaller difference is
/// drift.
const JUMP: SignedDuration = SignedDuration::from_secs(60);

/// Watches the wall clock for jumps.
#[derive(Debug)]
pub struct SteadyTime {
    wall: Timestamp,
    monotonic: Duration,
    /// All jumps since the start, the oldest first.
    jumps: Vec<SignedDuration>,
}

impl SteadyTime {
    /// Begins to watch now.
    pub fn new(clock: &dyn Clock) -> Self {
        Self { wall: clock.now(), monotonic: clock.monotonic(), jumps: Vec::new() }
    }

    /// The present time by the wall clock, and what it would be without its jumps.
    pub fn read(&mut self, clock: &dyn Clock) -> Readings {
        let (wall, monotonic) = (clock.now(), clock.monotonic());
        let passed = SignedDuration::try_from(monotonic.saturating_sub(self.monotonic)).unwrap_or_default();
        let jump = wall.duration_since(self.wall) - passed;
        if jump.abs() > JUMP {
            self.jumps.push(jump);
            tracing::warn!(
                seconds = jump.as_secs(),
                "the wall clock jumped; resources that were staged before expire by the monotonic clock"
            );
        }
        (self.wall, self.monotonic) = (wall, monotonic);
        Readings::new(wall, &self.jumps)
    }
}

/// All times that the present may be: by the clock as it is set now, and as it was set before each jump.
#[derive(Debug, Clone)]
pub struct Readings {
    /// As it is set now.
    wall: Timestamp,
    /// In order.
    all: Vec<Timestamp>,
}

impl Readings {
    /// The time of a clock that has never jumped.
    pub fn at(now: Timestamp) -> Self {
        Self { wall: now, all: vec![now] }
    }

    /// Whether at least `time` has passed since a moment that this server's clock recorded.
    pub fn passed_since(&self, since: Timestamp, time: Duration) -> bool {
        // If the clock was set back, the moment may be in the future. Then no time has passed since it, not even zero.
        let passed = self.since(since).map(|now| now.duration_since(since));
        passed.and_then(|passed| Duration::try_from(passed).ok()).is_some_and(|passed| passed >= time)
    }

    /// The time of a clock that jumped forward by `seconds`.
    pub fn with_jump(now: Timestamp, seconds: i64) -> Self {
        Self::new(now, &[SignedDuration::from_secs(seconds)])
    }

    fn new(wall: Timestamp, jumps: &[SignedDuration]) -> Self {
        let mut readings = vec![wall];
        let mut jumped = SignedDuration::ZERO;
        for jump in jumps.iter().rev() {
            jumped = jumped.saturating_add(*jump);
            readings.push(wall.checked_sub(jumped).unwrap_or(wall));
        }
        readings.sort_unstable();
        readings.dedup();
        Self { wall, all: readings }
    }

    /// The present time by which the age of `moment` is measured. It is unknown how the clock was set when `moment` was
    /// recorded. So the setting counts by which the age is smallest, and nothing is deleted too early. `None` if
    /// `moment` is in the future by all settings.
    fn since(&self, moment: Timestamp) -> Option<Timestamp> {
        self.all.iter().copied().find(|reading| *reading >= moment)
    }

    /// The earliest of these times.
    pub fn earliest(&self) -> Timestamp {
        self.all.first().copied().unwrap_or(Timestamp::MIN)
    }

    /// The present time as the wall clock is set now.
    pub fn wall(&self) -> Timestamp {
        self.wall
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
    fn a_resource_ages_by_the_clock_that_it_was_created_by() {
        let clocks = TwoClocks(Mutex::new((1_000_000, 0)));
        let mut time = SteadyTime::new(&clocks);
        for (wall, monotonic) in [(1_000_030, 30), (9_000_060, 60), (9_000_090, 90), (500_120, 120)] {
            *clocks.0.lock().unwrap() = (wall, monotonic);
            let readings = time.read(&clocks);
            // One was created before the first jump, and one by the present setting.
            for created_at in [1_000_000, wall].map(|second| Timestamp::from_second(second).unwrap()) {
                let age = readings.since(created_at).unwrap().duration_since(created_at).as_secs();
                let most = i64::try_from(monotonic).unwrap();
                assert!((0..=most).contains(&age), "{age} s old after {most} s");
            }
            let first = Timestamp::from_second(1_000_000).unwrap();
            let true_age = readings.since(first).unwrap().duration_since(first).as_secs();
            assert_eq!(true_age, i64::try_from(monotonic).unwrap());
        }
    }

    #[test]
    fn small_corrections_are_no_jumps() {
        let clocks = TwoClocks(Mutex::new((1_000_000, 0)));
        let mut time = SteadyTime::new(&clocks);
        *clocks.0.lock().unwrap() = (1_000_059, 0);
        let readings = time.read(&clocks);
        assert_eq!(readings.all.len(), 1);
    }
}
