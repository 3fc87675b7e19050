//! What one namespace may have of everything, so that no other goes without.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// In whose name uploads, downloads and resources count.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Holder {
    /// The namespace of the owner.
    Namespace(Arc<str>),
    /// A user, but a service account, whose upload has not told its owner yet.
    User(Arc<str>),
}

impl Holder {
    /// The namespace of an owner.
    pub fn namespace(name: &str) -> Self {
        Self::Namespace(name.into())
    }

    /// A user, as the API server calls them. A service account counts for its namespace, whose admin can make as many as
    /// they like.
    pub fn user(name: &str) -> Self {
        let account = name.strip_prefix("system:serviceaccount:").and_then(|account| account.split_once(':'));
        account.map_or_else(|| Self::User(name.into()), |(namespace, _)| Self::namespace(namespace))
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Namespace(name) => write!(f, "namespace “{name}”"),
            Self::User(name) => write!(f, "user “{name}”"),
        }
    }
}

/// How much of everything one holder may have, in percent: 1 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share(u8);

/// Not a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a share: write a whole number of percent from 1% to 100%")]
pub struct ShareError;

impl Share {
    /// A quarter: four namespaces that take all they can leave nothing, and three leave room.
    pub const DEFAULT: Self = Self(25);

    /// So many of `all`; at least one, or nothing would be possible.
    pub fn of(self, all: u64) -> u64 {
        let part = u128::from(all) * u128::from(self.0) / 100;
        u64::try_from(part).unwrap_or(u64::MAX).max(1)
    }

    /// The number of percent.
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
    fn a_service_account_counts_for_its_namespace_and_any_other_user_for_itself() {
        assert_eq!(Holder::user("system:serviceaccount:spark:submitter"), Holder::namespace("spark"));
        for name in ["jo", "system:serviceaccount:", "system:serviceaccounts:spark:x"] {
            assert_eq!(Holder::user(name), Holder::User(name.into()));
        }
    }

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
