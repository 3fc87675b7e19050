//! The share that one holder may have of each limit, so that something is left for the others.

use std::fmt;
use std::str::FromStr;

/// The part of each limit that one holder may have, in percent: 1 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share(u8);

/// The text is not a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a share: write a whole number of percent from 1% to 100%")]
pub struct ShareError;

impl Share {
    /// A quarter: three namespaces that take all they can still leave room for others.
    pub const DEFAULT: Self = Self(25);

    /// This share of `all`, rounded down, but at least 1. Otherwise a small limit would allow nothing.
    pub fn of(self, all: u64) -> u64 {
        let part = u128::from(all) * u128::from(self.0) / 100;
        u64::try_from(part).unwrap_or(u64::MAX).max(1)
    }

    /// The share in percent.
    pub fn percent(self) -> u8 {
        self.0
    }
}

impl FromStr for Share {
    type Err = ShareError;

    fn from_str(text: &str) -> Result<Self, ShareError> {
        let percent = text.strip_suffix('%').unwrap_or(text).parse().map_err(|_| ShareError)?;
        if (1..=100).contains(&percent) { Ok(Self(percent)) } else { Err(ShareError) }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_part_of_everything_and_never_nothing() {
        let share: Share = "25%".parse().unwrap();
        assert_eq!([100_000, 64, 3, 0].map(|all| share.of(all)), [25_000, 16, 1, 1]);
        assert_eq!(share.of(u64::MAX), u64::MAX / 4);
        assert_eq!("100".parse::<Share>().unwrap().of(7), 7);
        assert_eq!(share.to_string().parse(), Ok(share));
        for wrong in ["", "%", "0%", "101%", "2.5%", "-1%", "a quarter", "256"] {
            assert_eq!(wrong.parse::<Share>(), Err(ShareError), "{wrong}");
        }
    }
}
