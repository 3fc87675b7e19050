//! The holder of a share: uploads, downloads and resources count for it.

use std::fmt;
use std::sync::Arc;

/// For whom uploads, downloads and resources count.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Holder {
    /// The namespace of the owner.
    Namespace(Arc<str>),
    /// A user whose upload has not told its owner yet. A service account counts as its namespace.
    User(Arc<str>),
}

impl Holder {
    /// The namespace of an owner.
    pub fn namespace(name: &str) -> Self {
        Self::Namespace(name.into())
    }

    /// Takes the user name that the API server gives. A service account counts for its namespace, because the admin of
    /// a namespace can make any number of accounts.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_account_counts_for_its_namespace_and_a_user_for_itself() {
        assert_eq!(Holder::user("system:serviceaccount:spark:submitter"), Holder::namespace("spark"));
        for name in ["jo", "system:serviceaccount:", "system:serviceaccounts:spark:x"] {
            assert_eq!(Holder::user(name), Holder::User(name.into()));
        }
    }
}
