//! The connection to the Kubernetes API server: addresses, credentials, calls, reviews, and the meaning of
//! failures.

mod access;
mod address;
mod api_server;
pub mod calls;
mod client_keys;
mod connect_error;
mod connection;
mod counted;
mod failure;
mod files;
mod identity;
mod plugin;
mod pod_stream;
mod program;
mod reviews;
mod service_proxy;
mod throttled;
mod transport;

pub use access::{
    Access, Basic, ContentSource, Credentials, Given, Impersonation, KubeconfigContext, PropertiesAccess,
    SERVICE_ACCOUNT_FOLDER, SubmissionAccess,
};
pub use api_server::{ApiServer, CALL_TIMEOUT, Timeouts};
pub use cloakroom_outbound::proxies::Proxies;
pub use connect_error::ConnectError;
pub use failure::{ApiFailure, within};
pub use pod_stream::{NoPodStream, PodStream};
pub use reviews::{AcceptedTokens, ReviewError, Reviews, User};
pub use service_proxy::{Body, ServicePort, ServiceProxy, Unanswered};
