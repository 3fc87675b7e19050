//! A ledger whose log and copies are in a bucket, here one in memory.
#![expect(clippy::unwrap_used, reason = "tests are read for what they check")]

mod crash_points;
mod logged;
mod requests;
mod takeover;
