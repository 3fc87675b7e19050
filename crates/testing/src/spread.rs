//! The median and the spread of several runs.

use std::fmt;
use std::time::Duration;

/// The times of several runs.
#[derive(Default)]
pub struct Spread(Vec<Duration>);

impl Spread {
    pub fn add(&mut self, time: Duration) {
        self.0.push(time);
        self.0.sort();
    }

    pub fn median(&self) -> Duration {
        let middle = self.0.len() / 2;
        if self.0.len() % 2 == 1 { self.0[middle] } else { (self.0[middle - 1] + self.0[middle]) / 2 }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |time: Duration| time.as_secs_f64();
        let (first, last) = (self.0[0], self.0[self.0.len() - 1]);
        write!(
            f,
            "median {:.3} s ({:.3} to {:.3}, {} runs)",
            seconds(self.median()),
            seconds(first),
            seconds(last),
            self.0.len()
        )
    }
}

/// How many times faster `ours` is, by medians.
pub fn ratio(ours: &Spread, theirs: &Spread) -> f64 {
    theirs.median().as_secs_f64() / ours.median().as_secs_f64()
}
