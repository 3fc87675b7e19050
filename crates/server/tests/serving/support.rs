//! What tests are made of.

pub mod app;
pub mod faults;
pub mod faulty_ledger;
pub mod one_server;
pub mod owners;
pub mod points;
pub mod watched;

pub use app::TestApp;
pub use watched::WatchedApp;
