//! Builders for the tests of several crates. This crate depends on `core` and on no other room.
//!
//! - the program: [`process`] starts it, [`dist`] finds that of a release, [`logs`] captures the log lines of a test
//! - API servers: [`api_server`] is a fake one, [`control_plane`] a real one, [`cluster`] stands for either of them, and
//!   [`scenarios`] run on both
//! - buckets: [`s3_gateway`] speaks the protocol of S3, [`azurite`] that of Azure,
//!   [`google_storage`] that of Google
//! - [`child`]: programs that end with the test
//! - HTTP: [`scripted`] servers, [`wire`] for invalid requests, [`half`] of an upload, [`tls`]; [`proxy`] is an honest one, [`cable`],
//!   [`checkpoint`] and [`front`] fail as planned
//! - input: [`bundles`], honest and hostile, [`noise`], the [`jobs`] that Spark runs
//! - users: a [`workspace`] with their files, a [`terminal`], and a [`page_shell`] that types the commands of the [`documentation`]
//! - manifests: [`known`] has what tests compare them with
//! - time: a [`clock`] that is moved by hand, [`wait`]
//! - the machine: what a test [`needs`], [`port`], [`control_group`]; [`files`] and [`spread`] for measurements
#![expect(
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::new_without_default,
    reason = "tests are read for what they check"
)]

pub mod api_server;
pub mod azurite;
pub mod bundles;
pub mod cable;
pub mod ceph;
pub mod checkpoint;
pub mod child;
pub mod clock;
pub mod cluster;
pub mod control_group;
pub mod control_plane;
pub mod dist;
pub mod documentation;
pub mod files;
pub mod front;
pub mod google_storage;
pub mod half;
pub mod hdfs;
pub mod jobs;
pub mod known;
pub mod logs;
pub mod minio;
pub mod needs;
pub mod noise;
pub mod page_shell;
pub mod port;
pub mod process;
pub mod proxy;
pub mod s3_gateway;
pub mod scenarios;
pub mod scripted;
pub mod spread;
pub mod terminal;
pub mod tls;
pub mod wait;
pub mod wire;
pub mod workspace;

use std::path::{Path, PathBuf};

/// The folder of the project.
pub fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
