//! What every store and every ledger must do, written against the traits. A second implementation adds a module
//! with one line: its rules are the same.
#![expect(clippy::pedantic, clippy::unwrap_used, reason = "tests are read for what they check")]

mod leases;
mod ledger;
mod rooms;
mod store;
