//! The HTTP server. Only this room uses axum.

mod auth;
mod body;
mod connection;
mod error;
mod framing;
mod head_timer;
mod in_flight;
mod linger;
mod listen;
mod measure;
mod pace;
mod phase;
mod proxies;
mod refusals;
mod request_id;
mod router;
mod routes;
mod seats;
mod socket;
mod splices;
mod state;
mod tls;
mod tokens;

pub use auth::UploadAuth;
pub use connection::KEEP_ALIVE;
pub use error::ApiError;
pub use linger::LINGER;
pub use listen::{Connections, Edge, Listener};
pub use pace::PaceLimits;
pub use proxies::{TrustedProxies, TrustedProxiesError};
pub use router::Serves;
pub use routes::{Parameters as UploadParameters, Requested as RequestedRange, openapi, parse_range};
pub use splices::Splices;
pub use state::{Admin, AppState, Lifetimes, PublicUrl, PublicUrlError, Settings};
pub use tls::{ServerTls, ServerTlsError};
pub use tokens::{TokenFile, TokenFileError, TokenUse};
