//! A resource staging server for Kubernetes, and both ends of its wire.
//!
//! The map, from the top floor down; each room uses only rooms below it:
//!
//! - [`server`]: the HTTP edge, the only room that knows axum
//! - [`cleaner`]: what is due for deletion, and its deletion
//! - [`fetch`]: the init-container
//! - [`submit`]: spark-submit without a JVM
//! - [`staging`]: stage, open, release, recover: joins ledger and store
//! - [`store`]: bundles' bytes
//! - [`ledger`]: the ownership table
//! - [`kubernetes`]: how the API server is reached
//! - [`owners`]: who exists, by watches and fresh reads
//! - [`client`]: the HTTP client of the server, packing while uploading
//! - [`resource`]: ids, secrets, owners, states
//! - [`protocol`]: what goes over the wire
//! - [`bundle`]: packing, and unpacking without harm
//! - [`spark`]: what Spark's users write: properties, sizes, times, URIs
//!
//! [`clock`], [`descriptors`], [`metrics`], [`shutdown`], [`telemetry`] and [`text`] are used from anywhere. The binary adds the command line.

pub mod bundle;
pub mod cleaner;
pub mod client;
pub mod clock;
pub mod descriptors;
pub mod fetch;
pub mod kubernetes;
pub mod ledger;
pub mod metrics;
pub mod owners;
pub mod protocol;
pub mod resource;
pub mod server;
pub mod shutdown;
pub mod spark;
pub mod staging;
pub mod store;
pub mod submit;
pub mod telemetry;
pub mod text;
