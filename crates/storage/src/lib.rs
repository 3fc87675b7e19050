//! Staged resources: the rules for their bytes and their ledger, and the order in which both become durable.
//!
//! - [`store`]: the port for bundles' bytes
//! - [`ledger`]: the port for the ownership table
//! - [`ready`]: what is known of the ready resources without a query
//! - [`log`]: the log of the ledger in a bucket
//! - [`stamp`]: the stamps by which a ledger and its store know each other
//! - [`turns`]: whose work is done next
//! - `rules`: stage, open, release, recover: joins ledger and store. What it has stands right here.

#![deny(missing_docs)]

pub mod ledger;
pub mod log;
pub mod ready;
mod replaced;
mod rules;
pub mod stamp;
pub mod store;
pub mod turns;

pub use replaced::Replaced;
pub use rules::{
    AccessError, Authority, CapacityLimits, ClaimError, DELETIONS_AT_ONCE, Download, LEAST_CHARGE, Limits,
    NewUpload, NoRoom, Ownership, Recovered, Share, ShareError, Staged, Staging, StraysGo, TOMBSTONE_LIFE,
    TOMBSTONES_FOR_EACH, Terms, Upload, UploadError, check_new_ledger, owner_memory_bytes,
};
