//! The wire format that server and clients share: paths, header names, bodies, error codes.

pub mod admin;
pub mod digest;
pub mod problem;
pub mod recipe;
pub mod status;
pub mod token_line;
pub mod v1;
pub mod webhdfs;
mod wire_name;

pub use wire_name::WireName;

/// Liveness: `200` as long as the process serves at all.
pub const HEALTHZ: &str = "/healthz";
/// Readiness: `200` while downloads can be served.
pub const READYZ: &str = "/readyz";
/// The metrics that Prometheus scrapes.
pub const METRICS: &str = "/metrics";
/// The OpenAPI document of this server.
pub const OPENAPI: &str = "/api/openapi.json";

/// Takes the place of `Authorization` on the way through Kubernetes' API server, which keeps that header for itself.
pub const PROXIED_AUTHORIZATION: &str = "x-cloakroom-authorization";

/// `WWW-Authenticate` of an answer to a request without a secret.
pub const CHALLENGE: &str = "Bearer realm=\"cloakroom\"";

/// The same for a request with a wrong secret (RFC 6750, section 3.1).
pub const WRONG_SECRET: &str = "Bearer realm=\"cloakroom\", error=\"invalid_token\"";

/// The path that the client asked for, which Kubernetes' API server adds to what it passes on to a Service.
pub const FORWARDED_URI: &str = "x-forwarded-uri";

/// The user for whom an account of several users uploads. It is only for the log, because the server cannot verify it.
pub const CLAIMED_USER: &str = "x-cloakroom-claimed-user";
/// The longest value of [`CLAIMED_USER`], in bytes of UTF-8.
pub const LONGEST_CLAIMED_USER: usize = 256;

/// The API group of [`BUNDLES`].
pub const BUNDLES_GROUP: &str = "cloakroom.dev";
/// The right to `create` this resource in a namespace is the right to stage for owners there. Only rules of RBAC name it:
/// the API server has no such objects.
pub const BUNDLES: &str = "bundles";

/// The namespace where clients look for a server if nothing names one, and the name of the Service there.
pub const USUAL_PLACE: &str = "cloakroom";

/// The audience of tokens that are good for uploads to the servers in `namespace`, and for nothing else.
pub fn upload_audience(namespace: &str) -> String {
    format!("cloakroom.{namespace}")
}

/// Names one request in the log and in every answer. If the caller sends one, the server keeps it.
pub const REQUEST_ID: &str = "x-request-id";
/// The digest of the whole representation (RFC 9530).
pub const REPR_DIGEST: &str = "repr-digest";
/// The digest of the content of one message (RFC 9530).
pub const CONTENT_DIGEST: &str = "content-digest";

/// The content type of a bundle: to the server it is opaque bytes.
pub const BUNDLE_CONTENT_TYPE: &str = "application/octet-stream";
