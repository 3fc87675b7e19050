//! What a load measured, in numbers.

use std::fmt;
use std::time::Duration;

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Upload,
    Download,
}

/// One request of the honest load.
pub struct Record {
    pub direction: Direction,
    /// When it was due, from the beginning of the round.
    pub due: Duration,
    /// From the time that it was due, so that waiting counts.
    pub result: Result<Duration, String>,
    /// How often it was told to come again, or its connection broke.
    pub retries: u32,
}

/// Middle and tail of one direction in one round.
#[derive(Debug, Clone, Copy)]
pub struct Figures {
    pub median: Duration,
    pub p99: Duration,
}

/// Of one round.
pub struct Measured(pub Vec<Record>);

impl Measured {
    /// Why requests failed.
    pub fn failures(&self) -> Vec<&str> {
        self.0.iter().filter_map(|record| record.result.as_ref().err().map(String::as_str)).collect()
    }

    /// The request that took longest: it tells a stall at the beginning from one in the middle.
    fn slowest(&self, direction: Direction) -> Option<(Duration, Duration)> {
        let of_it = self.0.iter().filter(|record| record.direction == direction);
        let times = of_it.filter_map(|record| Some((*record.result.as_ref().ok()?, record.due)));
        times.max_by_key(|(took, _)| *took)
    }

    pub fn retries(&self) -> u32 {
        self.0.iter().map(|record| record.retries).sum()
    }

    /// Of the requests that succeeded; nothing where none did.
    pub fn figures(&self, direction: Direction) -> Option<Figures> {
        let of_it = self.0.iter().filter(|record| record.direction == direction);
        let mut times: Vec<Duration> = of_it.filter_map(|record| record.result.clone().ok()).collect();
        times.sort_unstable();
        Some(Figures { median: percentile(&times, 50)?, p99: percentile(&times, 99)? })
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p50 {} p99 {} ms", self.median.as_millis(), self.p99.as_millis())
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, direction) in [("uploads", Direction::Upload), ("downloads", Direction::Download)] {
            match self.figures(direction).zip(self.slowest(direction)) {
                Some((figures, (took, due))) => write!(
                    f,
                    "{name} {figures} (at most {} ms, of one that was due after {:.1} s), ",
                    took.as_millis(),
                    due.as_secs_f64()
                )?,
                None => write!(f, "{name} none, ")?,
            }
        }
        write!(f, "{} of {} failed, {} retries", self.failures().len(), self.0.len(), self.retries())
    }
}

/// The smallest value that is not below `percent` of all of them (nearest rank).
fn percentile(sorted: &[Duration], percent: usize) -> Option<Duration> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.checked_sub(1)?).copied()
}

/// The middle one of an odd number of values.
pub fn median(mut values: Vec<Duration>) -> Option<Duration> {
    values.sort_unstable();
    percentile(&values, 50)
}

/// By nearest rank, of what succeeded.
pub fn figures_are_those_of_the_requests_that_succeeded() {
    let record = |ms| Record {
        direction: Direction::Upload,
        due: Duration::ZERO,
        result: Ok(Duration::from_millis(ms)),
        retries: 1,
    };
    let mut measured = Measured((1..=200).rev().map(record).collect());
    measured.0.push(Record {
        direction: Direction::Upload,
        due: Duration::ZERO,
        result: Err("why".to_owned()),
        retries: 0,
    });
    let figures = measured.figures(Direction::Upload).unwrap();
    assert_eq!((figures.median.as_millis(), figures.p99.as_millis()), (100, 198));
    assert_eq!((measured.failures(), measured.retries()), (vec!["why"], 200));
    assert!(measured.figures(Direction::Download).is_none());
    assert_eq!(median([3, 1, 2].map(Duration::from_secs).to_vec()), Some(Duration::from_secs(2)));
}
