//! The stores and ledgers that a server can use. Each is a folder that implements a port of `cloakroom-storage`.
//!
//! - [`bucket`]: bundles as objects
//! - [`disk`]: bundles as files
//! - [`sqlite`]: the ledger in a SQLite file
//! - `place`: whether the open files are still the ones at their paths

pub mod bucket;
pub mod disk;
mod inodes;
mod place;
pub mod sqlite;

pub use place::Place;
