//! The parts that all outgoing connections share: to the staging server, to the web, and to the API server.
//!
//! - [`proxies`]: the proxies that the environment names
//! - [`refusal`]: the reasons why a proxy opens no connection
//! - [`trust`]: whose certificates are accepted

pub mod proxies;
pub mod refusal;
pub mod trust;
