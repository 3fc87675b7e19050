//! What tests are made of.

pub mod app;
pub mod bundles;
pub mod clock;
pub mod faults;
pub mod logs;
pub mod pod;
pub mod process;
pub mod scripted;
pub mod tls;
pub mod wait;
pub mod wire;

pub use app::TestApp;
pub use process::Cloakroom;
