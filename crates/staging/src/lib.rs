//! Staged resources: their bytes and their ledger, and the order in which both become durable.
//!
//! - [`store`]: bundles' bytes
//! - [`ledger`]: the ownership table
//! - `place`: whether the open files are still the ones at their paths
//! - `staging`: stage, open, release, recover: joins ledger and store. What it has stands right here.

mod inodes;
pub mod ledger;
mod place;
mod staging;
pub mod store;

pub use place::{Place, Replaced};
pub use staging::{
    AccessError, CapacityLimits, Download, Forgotten, LEAST_CHARGE, Limits, NewUpload, NoRoom, Recovered,
    Share, ShareError, Staged, Staging, StraysGo, TOMBSTONE_LIFE, TOMBSTONES_FOR_EACH, Terms, Upload,
    UploadError, owner_memory_bytes,
};
