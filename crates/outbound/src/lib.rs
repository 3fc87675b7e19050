//! The parts that all outgoing connections share: to the staging server, to the web, and to the API server.
//!
//! - [`proxies`]: the proxies that the environment names
//! - [`trust`]: whose certificates are accepted

pub mod proxies;
pub mod trust;
