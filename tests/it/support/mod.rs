//! What tests are made of.

pub mod app;
pub mod fake_stager;
pub mod faults;
pub mod kept;
pub mod owners;
pub mod pod;
pub mod requests;
pub mod submitter;
pub mod two_servers;
pub mod watched;

pub use app::TestApp;
pub use watched::WatchedApp;
