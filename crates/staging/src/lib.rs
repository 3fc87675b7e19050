//! Staged resources: their bytes and their ledger, and the order in which both become durable.
//!
//! - [`store`]: bundles' bytes
//! - [`ledger`]: the ownership table
//! - `staging`: stage, open, release, recover: joins ledger and store. What it has stands right here.

pub mod ledger;
mod staging;
pub mod store;

pub use staging::{
    AccessError, CapacityLimits, Download, Forgotten, LEAST_CHARGE, Limits, NewUpload, NoRoom,
    OWNER_MEMORY_BYTES, Recovered, Share, ShareError, Staged, Staging, TOMBSTONE_LIFE, TOMBSTONES_FOR_EACH,
    Terms, Upload, UploadError,
};
