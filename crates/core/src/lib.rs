//! Words that the server and its clients share. Nothing here asks the network, and only [`reload`] looks at files.
//!
//! - [`resource`]: ids, secrets, owners, states
//! - [`protocol`]: what goes over the wire
//! - [`size`], [`time`]: sizes and times, as people write and read them
//! - [`image`]: names of container images
//! - [`suggestions`]: the word that was probably meant by a mistyped one
//! - [`text`]: what comes from elsewhere, made fit to be shown, and what is never shown
//! - [`retry`]: waits between attempts, and what is told of them
//! - [`reload`]: files that are read again when they change
//! - [`clock`]: what time it is, as a parameter
//! - [`metrics`]: what Prometheus is told
//! - [`lock`]: locks that a panic elsewhere does not close
//! - [`client`], [`waiting`]: clients, their hosts, and how they take turns

#![deny(missing_docs)]

pub mod client;
pub mod clock;
pub mod image;
pub mod lock;
pub mod metrics;
pub mod protocol;
mod quantity;
pub mod reload;
pub mod resource;
pub mod retry;
pub mod size;
pub mod suggestions;
pub mod text;
pub mod time;
pub mod waiting;
