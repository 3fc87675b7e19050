//! Spark's time strings: `30m`, `1800s`, `500ms`, a bare number in the unit of its key.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

use super::quantity::{self, Problem};

/// The longest time that is accepted, [`LONGEST`], for messages.
const LONGEST_TEXT: &str = "106751d";

/// About 292 years: what a signed 64-bit count of nanoseconds holds, so that adding it to a clock cannot overflow.
const LONGEST: Duration = Duration::from_secs(106_751 * SECONDS_PER_DAY);

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

/// The units of Spark's time strings (`JavaUtils.timeStringAs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    /// `us`
    Microseconds,
    /// `ms`
    Milliseconds,
    /// `s`
    Seconds,
    /// `m` or `min`
    Minutes,
    /// `h`
    Hours,
    /// `d`, 24 hours
    Days,
}

impl TimeUnit {
    /// From the longest to the shortest, for the search of the largest unit that divides a time.
    const LONGEST_FIRST: [Self; 6] =
        [Self::Days, Self::Hours, Self::Minutes, Self::Seconds, Self::Milliseconds, Self::Microseconds];

    fn parse(suffix: &str) -> Option<Self> {
        match suffix {
            "us" => Some(Self::Microseconds),
            "ms" => Some(Self::Milliseconds),
            "s" => Some(Self::Seconds),
            "m" | "min" => Some(Self::Minutes),
            "h" => Some(Self::Hours),
            "d" => Some(Self::Days),
            _ => None,
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            Self::Microseconds => "us",
            Self::Milliseconds => "ms",
            Self::Seconds => "s",
            Self::Minutes => "m",
            Self::Hours => "h",
            Self::Days => "d",
        }
    }

    fn microseconds(self) -> u64 {
        match self {
            Self::Microseconds => 1,
            Self::Milliseconds => 1_000,
            Self::Seconds => 1_000_000,
            Self::Minutes => 60 * 1_000_000,
            Self::Hours => 60 * 60 * 1_000_000,
            Self::Days => SECONDS_PER_DAY * 1_000_000,
        }
    }
}

/// A text that is not a time.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{text}` is not a time: {problem}; write a whole number with a unit, such as 30m, 90s or 500ms \
     (units: us, ms, s, m or min, h, d)"
)]
pub struct TimeError {
    text: String,
    problem: Problem,
}

/// Reads a time string; a bare number is counted in `default_unit`.
///
/// The grammar is that of Spark's `JavaUtils.timeStringAs`; times below zero are refused here.
pub fn parse_duration(text: &str, default_unit: TimeUnit) -> Result<Duration, TimeError> {
    parse(text, Some(default_unit)).map_err(|problem| TimeError { text: text.to_owned(), problem })
}

fn parse(text: &str, default_unit: Option<TimeUnit>) -> Result<Duration, Problem> {
    let (number, suffix) = quantity::split(text, LONGEST_TEXT)?;
    let unit = if suffix.is_empty() {
        default_unit.ok_or(Problem::NoUnit)?
    } else {
        TimeUnit::parse(&suffix).ok_or(Problem::UnknownUnit(suffix))?
    };
    number
        .checked_mul(unit.microseconds())
        .map(Duration::from_micros)
        .filter(|duration| *duration <= LONGEST)
        .ok_or(Problem::TooLarge(LONGEST_TEXT))
}

/// The shortest time string that is exact: `30m`, `90s`, `500ms`; fractions of a microsecond are cut off.
pub fn format_duration(duration: Duration) -> String {
    let microseconds = duration.as_micros();
    if microseconds == 0 {
        return "0s".to_owned();
    }
    TimeUnit::LONGEST_FIRST
        .into_iter()
        .find(|unit| microseconds.is_multiple_of(u128::from(unit.microseconds())))
        .map(|unit| {
            let count = microseconds / u128::from(unit.microseconds());
            format!("{count}{}", unit.suffix())
        })
        .unwrap_or_default()
}

/// How long something took, for people: `15ms`, `1.2s`, `95.0s`; cut off and not rounded.
pub fn format_elapsed(elapsed: Duration) -> String {
    match (elapsed.as_secs(), elapsed.subsec_millis()) {
        (0, milliseconds) => format!("{milliseconds}ms"),
        (seconds, milliseconds) => format!("{seconds}.{}s", milliseconds / 100),
    }
}

/// A time as flags take and show it: always with a unit, because a bare number means milliseconds for one of
/// Spark's keys and minutes for the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SparkDuration(Duration);

impl SparkDuration {
    /// Wraps a time, for defaults.
    pub const fn new(duration: Duration) -> Self {
        Self(duration)
    }

    /// The time itself.
    pub const fn get(self) -> Duration {
        self.0
    }
}

impl From<SparkDuration> for Duration {
    fn from(duration: SparkDuration) -> Self {
        duration.0
    }
}

impl FromStr for SparkDuration {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text, None).map(Self).map_err(|problem| TimeError { text: text.to_owned(), problem })
    }
}

impl fmt::Display for SparkDuration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&format_duration(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_unit_of_spark_is_read_whatever_its_case() {
        let cases = [
            ("250us", Duration::from_micros(250)),
            ("500ms", Duration::from_millis(500)),
            ("1800s", Duration::from_mins(30)),
            ("30m", Duration::from_mins(30)),
            ("30min", Duration::from_mins(30)),
            ("30MIN", Duration::from_mins(30)),
            (" 2H ", Duration::from_hours(2)),
            ("7d", Duration::from_hours(7 * 24)),
            ("0", Duration::ZERO),
            ("007", Duration::from_millis(7)),
            ("106751d", LONGEST),
        ];
        for (text, expected) in cases {
            let parsed = parse_duration(text, TimeUnit::Milliseconds);
            assert_eq!(parsed, Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_bare_number_is_in_the_unit_of_its_key() {
        let minutes = parse_duration("5", TimeUnit::Minutes);
        assert_eq!(minutes, Ok(Duration::from_mins(5)));
        let milliseconds = parse_duration("5", TimeUnit::Milliseconds);
        assert_eq!(milliseconds, Ok(Duration::from_millis(5)));
    }

    #[test]
    fn what_is_not_a_time_is_refused_with_the_reason_and_the_way_out() {
        let cases = [
            ("", "it is empty"),
            ("-5s", "it is negative"),
            ("1.5h", "it has a fraction"),
            ("1,5h", "it has a fraction"),
            ("m", "it does not begin with a number"),
            ("-", "it does not begin with a number"),
            ("+5s", "it does not begin with a number"),
            ("5 m", "` m` is not a unit"),
            ("5w", "`w` is not a unit"),
            ("5m5", "`m5` is not a unit"),
            ("106752d", "it is more than 106751d"),
            ("99999999999999999999s", "it is more than 106751d"),
            ("18446744073709551615d", "it is more than 106751d"),
        ];
        for (text, reason) in cases {
            let message = parse_duration(text, TimeUnit::Seconds).unwrap_err().to_string();
            assert!(
                message.starts_with(&format!("`{text}` is not a time: {reason}; write a whole")),
                "{message}"
            );
        }
    }

    #[test]
    fn a_flag_needs_a_unit() {
        let message = "30".parse::<SparkDuration>().unwrap_err().to_string();
        assert!(message.contains("`30` is not a time: it has no unit"), "{message}");
        assert_eq!("30m".parse(), Ok(SparkDuration::new(Duration::from_mins(30))));
    }

    #[test]
    fn what_something_took_is_shown_in_one_unit() {
        for (microseconds, expected) in
            [(0, "0ms"), (999_999, "999ms"), (1_000_000, "1.0s"), (1_290_000, "1.2s"), (95_000_000, "95.0s")]
        {
            assert_eq!(format_elapsed(Duration::from_micros(microseconds)), expected);
        }
    }

    #[test]
    fn a_time_is_shown_in_its_shortest_exact_form() {
        let cases = [
            (Duration::ZERO, "0s"),
            (Duration::from_secs(90), "90s"),
            (Duration::from_mins(30), "30m"),
            (Duration::from_hours(24), "1d"),
            (Duration::from_hours(25), "25h"),
            (Duration::from_millis(500), "500ms"),
            (Duration::from_micros(1_500), "1500us"),
            (Duration::from_nanos(999), "0s"),
        ];
        for (duration, expected) in cases {
            assert_eq!(SparkDuration::new(duration).to_string(), expected);
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(microseconds in 0..=106_751 * SECONDS_PER_DAY * 1_000_000) {
            let duration = SparkDuration::new(Duration::from_micros(microseconds));
            prop_assert_eq!(duration.to_string().parse(), Ok(duration));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".*") {
            let _ = parse_duration(&text, TimeUnit::Days);
        }
    }
}
