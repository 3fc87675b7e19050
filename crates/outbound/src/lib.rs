//! The parts that all outgoing connections share: to the staging server, to the web, and to the API server.
//!
//! - [`causes`]: what is behind an error of a library
//! - [`certificates`]: the certificates of given files
//! - [`proxies`]: the proxies that the environment names
//! - [`refusal`]: the reasons why a proxy opens no connection
//! - [`through`]: the way through the proxies
//! - [`tls`]: failures of TLS, in words for users
//! - [`trust`]: whose certificates are accepted

pub mod causes;
pub mod certificates;
mod pem;
pub mod proxies;
pub mod refusal;
pub mod through;
pub mod tls;
pub mod trust;
