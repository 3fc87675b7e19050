//! The wire format that server and clients share: paths, header names, bodies, error codes.

pub mod admin;
pub mod digest;
pub mod multipart;
pub mod problem;
pub mod status;
pub mod token_line;
pub mod v0;
pub mod v1;
mod word;

pub use word::Word;

/// Liveness: `200` as long as the process serves at all.
pub const HEALTHZ: &str = "/healthz";
/// Readiness: `200` while downloads can be served.
pub const READYZ: &str = "/readyz";
/// The metrics that Prometheus scrapes.
pub const METRICS: &str = "/metrics";
/// The OpenAPI document of this server.
pub const OPENAPI: &str = "/api/openapi.json";

/// Names one request in the log and in every answer. If the caller sends one, the server keeps it.
pub const REQUEST_ID: &str = "x-request-id";
/// The digest of the whole representation (RFC 9530).
pub const REPR_DIGEST: &str = "repr-digest";
/// The digest of the content of one message (RFC 9530).
pub const CONTENT_DIGEST: &str = "content-digest";

/// The content type of a bundle: to the server it is opaque bytes.
pub const BUNDLE_CONTENT_TYPE: &str = "application/octet-stream";
