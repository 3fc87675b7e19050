//! Room: what is stored and what uploads may still bring is charged to accounts, and each account has so much.

use std::fmt;

use cloakroom_core::resource::Holder;

/// What room is charged to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Account {
    /// The number of all resources.
    Resources,
    /// The bytes of all of them.
    Bytes,
    /// The number of resources of one holder.
    ResourcesOf(Holder),
    /// The bytes of one holder.
    BytesOf(Holder),
}

/// What an upload takes of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charge {
    /// Of which.
    pub account: Account,
    /// How much.
    pub amount: u64,
    /// How much may be taken of it, by all together; `None` is no limit.
    pub limit: Option<u64>,
}

/// An account does not have as much as an upload asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    /// Which one.
    pub account: Account,
    /// How much there may be.
    pub limit: u64,
    /// How much of that others have.
    pub taken: u64,
    /// How much too little there is.
    pub missing: u64,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { account, limit, taken, missing } = self;
        match account {
            Account::Resources => f.write_str("all resources")?,
            Account::Bytes => f.write_str("the bytes of all resources")?,
            Account::ResourcesOf(holder) => write!(f, "the resources of {holder}")?,
            Account::BytesOf(holder) => write!(f, "the bytes of {holder}")?,
        }
        write!(f, ": {taken} of {limit} are taken, and {missing} are missing")
    }
}

/// How much is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Taken {
    /// Number of resources, uploads included.
    pub resources: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The bytes of those that are acknowledged.
    pub stored_bytes: u64,
    /// The most resources that one holder has.
    pub most_resources: u64,
    /// The most bytes that one holder has.
    pub most_bytes: u64,
    /// Memory that owners take, in bytes.
    pub owner_bytes: u64,
}
