//! Both ends of a transfer, without the server between them.
//!
//! - [`bundle`]: packs files into bundles, and unpacks bundles safely
//! - [`client`]: the HTTP client of the server, which packs while it uploads
//! - [`fetch`]: the init-container

pub mod bundle;
pub mod client;
pub mod fetch;
mod modes;
