//! Error answers: `application/problem+json` (RFC 9457) with a code that does not change.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::WireName;
use crate::resource::{DeletionReason, named};

/// The content type of every error answer.
pub const CONTENT_TYPE: &str = "application/problem+json";

/// An error answer.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// Always `about:blank`. The code says what kind of problem it is.
    #[serde(rename = "type", default = "about_blank")]
    #[schema(required = true)]
    pub kind: String,
    /// The standard phrase of the HTTP status.
    #[serde(default)]
    #[schema(required = true)]
    pub title: String,
    /// The HTTP status.
    #[serde(default)]
    #[schema(required = true)]
    pub status: u16,
    /// The stable name of the problem.
    #[serde(default = "no_code")]
    #[schema(value_type = Code, required = true)]
    pub code: WireName<Code>,
    /// What failed, on what, why, and what to do next.
    #[serde(default)]
    #[schema(required = true)]
    pub detail: String,
    /// The id of the request, which the server's log has as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Why the resource was deleted, if it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub deletion_reason: Option<WireName<DeletionReason>>,
    /// When the resource was deleted, if it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<jiff::Timestamp>,
}

fn about_blank() -> String {
    "about:blank".to_owned()
}

fn no_code() -> WireName<Code> {
    WireName::Other(String::new())
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident => ($name:literal, $status:literal)),+ $(,)?) => {
        /// The stable names of problems. Each belongs to one HTTP status.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Code { $($(#[doc = $doc])+ $variant),+ }

        /// The schema of the name that stands in the body.
        impl utoipa::PartialSchema for Code {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                let described = [$(($name, [$($doc),+].concat(), $status)),+]
                    .map(|(name, doc, status): (&str, String, u16)| format!("- `{name}` ({status}):{doc}"));
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::Type::String)
                    .enum_values(Some(Self::ALL.iter().map(|code| code.as_str())))
                    .description(Some(described.join("\n")))
                    .into()
            }
        }

        impl ToSchema for Code {}

        named!(Code { $($variant => $name),+ });

        impl Code {
            /// The HTTP status that it has in v1.
            pub fn status(self) -> u16 {
                match self { $(Self::$variant => $status),+ }
            }
        }
    };
}

codes! {
    /// The owner is missing, or Kubernetes would refuse it.
    InvalidOwner => ("invalid-owner", 400),
    /// A query parameter is unknown, given twice, or malformed.
    InvalidParameter => ("invalid-parameter", 400),
    /// A header is malformed.
    InvalidHeader => ("invalid-header", 400),
    /// The recipe of a spliced bundle cannot be read, or does not hold together.
    InvalidRecipe => ("invalid-recipe", 400),
    /// The bytes do not have the digest that was announced.
    DigestMismatch => ("digest-mismatch", 400),
    /// The body does not have the announced length, or it broke off.
    IncompleteBody => ("incomplete-body", 400),
    /// The v0 multipart body does not follow the protocol.
    InvalidMultipart => ("invalid-multipart", 400),
    /// No ticket, no upload token, or no admin token.
    Unauthorized => ("unauthorized", 401),
    /// The user is known, but may not run pods in the owner's namespace.
    Forbidden => ("forbidden", 403),
    /// No admin token was given to this server, so it takes no admin's requests.
    AdminOff => ("admin-off", 403),
    /// There is no such resource, or the ticket is not for it.
    NotFound => ("not-found", 404),
    /// There is nothing at this path.
    NoSuchPath => ("no-such-path", 404),
    /// This path does not allow this method.
    MethodNotAllowed => ("method-not-allowed", 405),
    /// The body came too slowly, or stopped coming.
    TooSlow => ("too-slow", 408),
    /// The resource was to be removed only if it is unused, and it is in use.
    InUse => ("in-use", 409),
    /// The resource has as many read keys as it may have.
    TooManyKeys => ("too-many-keys", 409),
    /// The resource was deleted.
    Gone => ("gone", 410),
    /// The bundle is not the one that `If-Match` names.
    PreconditionFailed => ("precondition-failed", 412),
    /// The bundle is larger than the server accepts.
    TooLarge => ("too-large", 413),
    /// The content type of the body is wrong.
    UnsupportedMediaType => ("unsupported-media-type", 415),
    /// None of the requested bytes exist.
    RangeNotSatisfiable => ("range-not-satisfiable", 416),
    /// The server failed. Its log has the cause.
    Internal => ("internal", 500),
    /// The body has a transfer coding other than `chunked`.
    UnsupportedTransferCoding => ("unsupported-transfer-coding", 501),
    /// The server has reached its limit of simultaneous work.
    Overloaded => ("overloaded", 503),
    /// The API server does not answer the question who may upload.
    AuthorizationUnavailable => ("authorization-unavailable", 503),
    /// The API server does not answer the question which cluster it is.
    ClusterUnavailable => ("cluster-unavailable", 503),
    /// Downloads cannot be served: the ledger or the data directory cannot be read.
    NotReady => ("not-ready", 503),
    /// The change cannot be stored: the disk is read-only, or fails.
    NotWritable => ("not-writable", 503),
    /// The server is starting, and does not serve requests yet.
    Starting => ("starting", 503),
    /// The server is about to stop.
    ShuttingDown => ("shutting-down", 503),
    /// There is no room for the bundle, or for storing a deletion.
    InsufficientStorage => ("insufficient-storage", 507),
}
