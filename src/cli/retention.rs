//! How long a finished pod still counts as an owner.

use std::str::FromStr;
use std::time::Duration;

use cloakroom_core::time::{SparkDuration, TimeError};

/// A time, or for ever, as in kubespark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention(Option<SparkDuration>);

/// The word for no end.
const FOREVER: &str = "forever";

impl Retention {
    /// The time; `None` means for ever.
    pub fn get(self) -> Option<Duration> {
        self.0.map(SparkDuration::get)
    }
}

impl FromStr for Retention {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        if text == FOREVER { Ok(Self(None)) } else { text.parse().map(|time| Self(Some(time))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retention_is_a_time_or_for_ever() {
        assert_eq!("24h".parse::<Retention>().unwrap().get(), Some(Duration::from_hours(24)));
        assert_eq!("forever".parse::<Retention>().unwrap().get(), None);
        for text in ["", "24", "always", "-1h"] {
            assert!(text.parse::<Retention>().is_err(), "{text}");
        }
    }
}
