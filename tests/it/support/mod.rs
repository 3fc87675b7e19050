//! What tests are made of.

pub mod api_server;
pub mod app;
pub mod bundles;
pub mod cable;
pub mod checkpoint;
pub mod clock;
pub mod cluster;
pub mod fake_stager;
pub mod faults;
pub mod front;
pub mod kept;
pub mod logs;
pub mod noise;
pub mod owners;
pub mod pod;
pub mod port;
pub mod process;
pub mod requests;
pub mod scripted;
pub mod submitter;
pub mod terminal;
pub mod tls;
pub mod wait;
pub mod watched;
pub mod wire;

pub use app::TestApp;
pub use process::Cloakroom;
pub use watched::WatchedApp;
