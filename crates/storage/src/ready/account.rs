//! Accounts of room. Stored resources and uploads in flight are charged to accounts, and an account may have a limit.

use crate::ledger::Stored;
use cloakroom_core::resource::Holder;

/// An account that room is charged to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Account {
    /// The number of all resources.
    Resources,
    /// The bytes of all resources.
    Bytes,
    /// The number of resources of one holder.
    ResourcesOf(Holder),
    /// The bytes of all resources of one holder.
    BytesOf(Holder),
}

/// What an upload takes of one account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charge {
    /// The account that is charged.
    pub account: Account,
    /// A number of resources, or of bytes.
    pub amount: u64,
    /// The limit of the account, for all uploads and resources together; `None` is no limit.
    pub limit: Option<u64>,
}

/// An account has less room than an upload asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    /// The account that is short.
    pub account: Account,
    /// The limit of the account.
    pub limit: u64,
    /// How much of it the other uploads and resources have.
    pub taken: u64,
}

/// How much room is taken in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Taken {
    /// Number of resources, uploads included.
    pub resources: u64,
    /// Bytes of all resources, uploads and strays included.
    pub bytes: u64,
    /// Bytes of acknowledged resources only.
    pub stored_bytes: u64,
    /// Strays: whole bundles that belong to no row.
    pub strays: Stored,
    /// The largest number of resources that one holder has.
    pub most_resources: u64,
    /// The largest number of bytes that one holder has.
    pub most_bytes: u64,
    /// Memory for owners, in bytes.
    pub owner_bytes: u64,
    /// The largest part of it that the owners of one namespace have.
    pub most_owner_bytes: u64,
}
