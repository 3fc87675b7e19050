//! What an API server answers: objects with the fields that only it fills in, and refusals in its words.

use axum::body::Body;
use axum::http::{Method, StatusCode, header};
use axum::response::Response;
use serde_json::{Value, json};

use super::path::ResourcePath;

/// The uid of every object: there is one driver pod in each recording, and the rest hangs on it.
pub const UID: &str = "00000000-0000-4000-8000-000000000001";

/// When everything was created.
pub const CREATED: &str = "2026-01-02T03:04:05Z";

pub fn json(status: StatusCode, body: &Value) -> Response {
    let builder = Response::builder().status(status).header(header::CONTENT_TYPE, "application/json");
    builder.body(Body::from(body.to_string())).unwrap()
}

/// The object as it is stored.
pub fn stored(mut object: Value, path: &ResourcePath) -> Value {
    if !object.is_object() {
        return object;
    }
    let metadata = &mut object["metadata"];
    metadata["uid"] = UID.into();
    metadata["creationTimestamp"] = CREATED.into();
    metadata["resourceVersion"] = "100".into();
    if let Some(namespace) = &path.namespace {
        metadata["namespace"] = namespace.as_str().into();
    }
    object
}

pub fn refusal(status: StatusCode, method: &Method, path: &ResourcePath) -> Response {
    let (reason, message) = words(status, method, path);
    let mut details = json!({"group": path.group, "kind": path.resource});
    if let Some(name) = &path.name {
        details["name"] = name.as_str().into();
    }
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "reason": reason, "message": message, "code": status.as_u16(), "details": details,
    });
    json(status, &body)
}

fn words(status: StatusCode, method: &Method, path: &ResourcePath) -> (&'static str, String) {
    let object = format!("{} \"{}\"", path.resource, path.name.as_deref().unwrap_or("it"));
    match status.as_u16() {
        401 => ("Unauthorized", "Unauthorized".to_owned()),
        403 => {
            let verb = method.as_str().to_lowercase();
            let (resource, group) = (&path.resource, &path.group);
            let namespace = path.namespace.as_deref().unwrap_or_default();
            let what = format!("cannot {verb} resource \"{resource}\" in API group \"{group}\"");
            let user = "User \"system:anonymous\"";
            ("Forbidden", format!("{object} is forbidden: {user} {what} in the namespace \"{namespace}\""))
        }
        404 => ("NotFound", format!("{object} not found")),
        409 => ("AlreadyExists", format!("{object} already exists")),
        422 => ("Invalid", format!("{object} is invalid: spec: Invalid value: made up by the test")),
        429 => ("TooManyRequests", "the server has received too many requests".to_owned()),
        503 => ("ServiceUnavailable", "the server is currently unable to handle the request".to_owned()),
        _ => ("InternalError", "Internal error occurred: made up by the test".to_owned()),
    }
}
