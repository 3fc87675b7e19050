//! Copies of the ledger in the bucket of its bundles: how they are named, and which of them stay.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// How many of the newest copies are kept.
const NEWEST: usize = 7;

/// From how many days one copy is kept.
const DAYS: usize = 7;

/// A time to the second, in UTC, without the colons that some programs do not take in names.
const FORM: &str = "%Y-%m-%dT%H-%M-%SZ";

/// The name of a copy: the time when it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CopyName(Timestamp);

/// A text is not the name of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not the name of a copy, such as 2026-01-31T12-00-00Z")]
pub struct NotACopyName;

impl CopyName {
    /// The name of a copy that is made at `now`, after the one of the name `newest`.
    pub fn after(newest: Option<Self>, now: Timestamp) -> Self {
        let second = Timestamp::from_second(now.as_second()).unwrap_or(now);
        // Two in one second, or a clock that went back, do not change the order.
        let next = newest.and_then(|newest| newest.0.checked_add(SignedDuration::from_secs(1)).ok());
        Self(next.map_or(second, |next| second.max(next)))
    }

    /// When the copy was made.
    pub fn made_at(self) -> Timestamp {
        self.0
    }
}

impl Display for CopyName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.strftime(FORM).fmt(f)
    }
}

impl FromStr for CopyName {
    type Err = NotACopyName;

    fn from_str(text: &str) -> Result<Self, NotACopyName> {
        let time = DateTime::strptime(FORM, text).map_err(|_| NotACopyName)?;
        TimeZone::UTC.to_timestamp(time).map(Self).map_err(|_| NotACopyName)
    }
}

/// Which of `copies`, the oldest first, can go: all but the newest seven, and the first one of each of the last seven days that
/// have any. So a server that is stopped again and again does not push out the copies of the days before.
pub fn superfluous(copies: &[CopyName]) -> Vec<CopyName> {
    let day = |copy: &CopyName| copy.0.to_zoned(TimeZone::UTC).date();
    let days: BTreeSet<_> = copies.iter().map(day).collect();
    let mut days: BTreeSet<_> = days.into_iter().rev().take(DAYS).collect();
    let mut others = copies.to_vec();
    others.truncate(copies.len().saturating_sub(NEWEST));
    // The first one of a day takes it out of the set.
    others.retain(|copy| !days.remove(&day(copy)));
    others
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copies(names: &[&str]) -> Vec<CopyName> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn a_name_is_a_time() {
        let now = "2026-01-31T12:00:00.9Z".parse().unwrap();
        let name = CopyName::after(None, now);
        assert_eq!(name.to_string(), "2026-01-31T12-00-00Z");
        let next = CopyName::after(Some(name), now);
        assert_eq!(next.to_string(), "2026-01-31T12-00-01Z");
        assert_eq!(CopyName::after(Some(next), now).to_string(), "2026-01-31T12-00-02Z");
        assert_eq!(name.to_string().parse(), Ok(name));
        for text in [
            "",
            "latest",
            "2026-01-31",
            "2026-01-31T12:00:00Z",
            "2026-13-31T12-00-00Z",
            "2026-01-31T12-00-00Z.db",
        ] {
            assert_eq!(text.parse::<CopyName>(), Err(NotACopyName), "{text}");
        }
    }

    #[test]
    fn the_newest_copies_stay_and_the_first_of_each_of_seven_days() {
        let mut names: Vec<String> = (1..=9).map(|day| format!("2026-01-{day:02}T10-00-00Z")).collect();
        names.extend((0..10).map(|minute| format!("2026-01-09T11-{minute:02}-00Z")));
        let all = copies(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let old = [&names[..2], &names[9..12]].concat();
        assert_eq!(superfluous(&all), copies(&old.iter().map(String::as_str).collect::<Vec<_>>()));
        assert_eq!(superfluous(&all[12..]), []);
        assert_eq!(superfluous(&[]), []);
    }
}
