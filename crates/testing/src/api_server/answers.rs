//! Answers of the API server: objects in full or only their metadata, lists, and errors.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

use crate::cluster::Kind;

/// A call that failed, as a `Status` object.
#[derive(Debug, Clone)]
pub struct Refusal {
    pub code: u16,
    pub message: String,
    pub retry_after_seconds: Option<u64>,
}

impl Refusal {
    pub fn new(code: u16, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retry_after_seconds: None }
    }

    pub fn not_found(kind: &Kind, name: &str) -> Self {
        Self::new(404, format!("{} \"{name}\" not found", qualified(kind)))
    }

    pub fn expired(version: u64, oldest: u64) -> Self {
        Self::new(410, format!("too old resource version: {version} ({oldest})"))
    }

    pub fn status(&self) -> Value {
        let mut details = json!({});
        if let Some(seconds) = self.retry_after_seconds {
            details["retryAfterSeconds"] = seconds.into();
        }
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": reason(self.code, &self.message), "details": details,
            "code": self.code,
        })
    }

    pub fn response(&self) -> Response {
        let mut response = json_response(self.code, &self.status());
        if let Some(seconds) = self.retry_after_seconds {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// The reasons of k8s.io/apimachinery/pkg/apis/meta/v1.
fn reason(code: u16, message: &str) -> &'static str {
    match code {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        409 if message.ends_with("already exists") => "AlreadyExists",
        409 => "Conflict",
        410 => "Expired",
        415 => "UnsupportedMediaType",
        422 => "Invalid",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "InternalError",
    }
}

/// `pods`, `deployments.apps`.
pub fn qualified(kind: &Kind) -> String {
    if kind.group.is_empty() { kind.plural.to_owned() } else { format!("{}.{}", kind.plural, kind.group) }
}

pub fn json_response(code: u16, body: &Value) -> Response {
    let status = StatusCode::from_u16(code).unwrap();
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

pub fn no_such_path() -> Response {
    (StatusCode::NOT_FOUND, "404 page not found\n").into_response()
}

pub fn stream(body: Body) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// How much of an object a client asks for in `Accept`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Full,
    Metadata,
}

impl Form {
    /// The first of several media types decides, because clients put the preferred one first.
    pub fn of(accept: &str) -> Self {
        let first = accept.split(',').next().unwrap_or_default();
        if first.contains("as=PartialObjectMetadata") { Self::Metadata } else { Self::Full }
    }

    pub fn object(self, object: &Value) -> Value {
        match self {
            Self::Full => object.clone(),
            Self::Metadata => json!({
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                "metadata": object["metadata"],
            }),
        }
    }

    pub fn list(self, kind: &Kind, items: &[std::sync::Arc<Value>], metadata: &Value) -> Value {
        let (list, version) = match self {
            Self::Full => (format!("{}List", kind.kind), kind.group_version()),
            Self::Metadata => ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned()),
        };
        let items: Value = match self {
            // Go encodes an empty (nil) list as null.
            Self::Metadata if items.is_empty() => Value::Null,
            _ => items.iter().map(|item| self.item(kind, item)).collect(),
        };
        json!({"kind": list, "apiVersion": version, "metadata": metadata, "items": items})
    }

    /// An item of a list. Items of built-in kinds do not name their kind.
    fn item(self, kind: &Kind, item: &Value) -> Value {
        let mut item = self.object(item);
        if self == Self::Full && kind.is_built_in() {
            let fields = item.as_object_mut().unwrap();
            fields.remove("kind");
            fields.remove("apiVersion");
        }
        item
    }

    /// A bookmark: an object with nothing but a resource version.
    pub fn bookmark(self, kind: &Kind, version: u64, ends_initial_events: bool) -> Value {
        let mut metadata = json!({"resourceVersion": version.to_string(), "creationTimestamp": null});
        if ends_initial_events {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        self.object(&json!({"kind": kind.kind, "apiVersion": kind.group_version(), "metadata": metadata}))
    }
}
