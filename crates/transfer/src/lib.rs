//! What the machines at both ends of a transfer do, the server left out.
//!
//! - [`bundle`]: packing, and unpacking without harm
//! - [`client`]: the HTTP client of the server, packing while uploading
//! - [`fetch`]: the init-container

pub mod bundle;
pub mod client;
pub mod fetch;
