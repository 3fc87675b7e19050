//! The calls that a submission makes to the API server, in one namespace: plain HTTP with JSON, so that no field of a
//! pod template is lost on the way.

mod path;
mod retry;

use http_body_util::BodyExt as _;
use hyper::Method;
use hyper::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use hyper::http::{HeaderValue, Request, Uri};
use k8s_openapi::List;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::client::Body;
use kube::core::response::Status;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::log::in_one_line;
use crate::kubernetes::{ApiFailure, ApiServer};

pub(super) use path::{ObjectPath, PathError, encoded};
pub(super) use retry::{Patience, is_ambiguous, is_untrusted, retried, said};

/// Whose fields these are: the name under which Spark's client applies, so that either may apply after the other.
const FIELD_MANAGER: &str = "fabric8";

/// Pods of one page of a list: a few hundred KiB.
const PAGE: usize = 100;

/// After so many seconds the API server ends a watch: load balancers drop quiet connections at 240 s.
const WATCH_SECONDS: u32 = 200;

/// Calls in one namespace.
#[derive(Clone)]
pub(super) struct Calls {
    server: ApiServer,
    namespace: String,
}

/// A success.
pub(super) struct Answer {
    /// HTTP status: an apply says 201 where the object was not there before.
    pub(super) code: u16,
    pub(super) body: Value,
}

impl Answer {
    /// The object's unique id.
    pub(super) fn uid(&self) -> &str {
        self.body["metadata"]["uid"].as_str().unwrap_or_default()
    }
}

/// What to watch or to list, and nothing else.
#[derive(Debug, Clone)]
pub(super) enum Select {
    /// The pod of this name.
    Name(String),
    /// The pods with these labels.
    Labels(String),
}

impl Select {
    fn query(&self) -> String {
        match self {
            Self::Name(name) => format!("fieldSelector=metadata.name%3D{}", encoded(name)),
            Self::Labels(labels) => format!("labelSelector={}", encoded(labels)),
        }
    }
}

impl Calls {
    pub(super) fn new(server: &ApiServer, namespace: &str) -> Self {
        Self { server: server.clone(), namespace: namespace.to_owned() }
    }

    pub(super) fn server(&self) -> &ApiServer {
        &self.server
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    fn pods(&self) -> String {
        format!("/api/v1/namespaces/{}/pods", encoded(&self.namespace))
    }

    fn pod(&self, name: &str) -> String {
        format!("{}/{}", self.pods(), encoded(name))
    }

    /// The plain create that Spark makes.
    pub(super) async fn create_pod(&self, pod: &Value) -> Result<Answer, ApiFailure> {
        self.send(Method::POST, &self.pods(), Some(("application/json", pod))).await
    }

    /// The same up to where the pod would be stored.
    pub(super) async fn try_pod(&self, pod: &Value) -> Result<Answer, ApiFailure> {
        self.send(Method::POST, &format!("{}?dryRun=All", self.pods()), Some(("application/json", pod))).await
    }

    /// Server-side apply, as Spark's client does it: fields of others are taken over.
    pub(super) async fn apply(&self, path: &ObjectPath, object: &Value) -> Result<Answer, ApiFailure> {
        let path = format!("{path}?fieldManager={FIELD_MANAGER}&force=true");
        self.send(Method::PATCH, &path, Some(("application/apply-patch+yaml", object))).await
    }

    /// The same up to where the object would be stored.
    pub(super) async fn try_apply(&self, path: &ObjectPath, object: &Value) -> Result<Answer, ApiFailure> {
        let path = format!("{path}?dryRun=All&fieldManager={FIELD_MANAGER}&force=true");
        self.send(Method::PATCH, &path, Some(("application/apply-patch+yaml", object))).await
    }

    pub(super) async fn get_pod(&self, name: &str) -> Result<Answer, ApiFailure> {
        self.send(Method::GET, &self.pod(name), None).await
    }

    pub(super) async fn get(&self, path: &ObjectPath) -> Result<Answer, ApiFailure> {
        self.send(Method::GET, &path.to_string(), None).await
    }

    pub(super) async fn delete_pod(&self, name: &str, options: &Value) -> Result<Answer, ApiFailure> {
        self.send(Method::DELETE, &self.pod(name), Some(("application/json", options))).await
    }

    /// Deletes an object, with `uid` if it is still the one with this unique id.
    pub(super) async fn delete(&self, path: &ObjectPath, uid: Option<&str>) -> Result<Answer, ApiFailure> {
        let options = delete_options(uid, None);
        self.send(Method::DELETE, &path.to_string(), Some(("application/json", &options))).await
    }

    /// The pod of this name, if there is one.
    pub(super) async fn pod_named(&self, name: &str) -> Result<Option<Pod>, ApiFailure> {
        match self.read(&self.pod(name)).await {
            Err(ApiFailure::NotFound { .. }) => Ok(None),
            found => found.map(Some),
        }
    }

    /// Hands all pods that are selected to `each`, page by page.
    pub(super) async fn list_pods(
        &self,
        select: &Select,
        mut each: impl FnMut(Pod),
    ) -> Result<(), ApiFailure> {
        let mut next = String::new();
        loop {
            let path = format!("{}?{}&limit={PAGE}{next}", self.pods(), select.query());
            let page: List<Pod> = self.read(&path).await?;
            page.items.into_iter().for_each(&mut each);
            match page.metadata.continue_ {
                Some(token) if !token.is_empty() => next = format!("&continue={}", encoded(&token)),
                _ => return Ok(()),
            }
        }
    }

    /// All pods that are selected in one list, as Spark asks for them.
    pub(super) async fn all_pods(&self, labels: &str) -> Result<Vec<Pod>, ApiFailure> {
        let path = format!("{}?labelSelector={}", self.pods(), encoded(labels));
        Ok(self.read::<List<Pod>>(&path).await?.items)
    }

    /// The events of the object with this unique id.
    pub(super) async fn events_of(&self, uid: &str) -> Result<Vec<Event>, ApiFailure> {
        let namespace = encoded(&self.namespace);
        let path = format!(
            "/api/v1/namespaces/{namespace}/events?fieldSelector=involvedObject.uid%3D{}&limit={PAGE}",
            encoded(uid)
        );
        Ok(self.read::<List<Event>>(&path).await?.items)
    }

    /// All objects of one kind that have these labels, up to `most` of them.
    pub(super) async fn list(
        &self,
        plural: &str,
        labels: &str,
        most: usize,
    ) -> Result<Vec<Value>, ApiFailure> {
        let (namespace, labels) = (encoded(&self.namespace), encoded(labels));
        let path = format!("/api/v1/namespaces/{namespace}/{plural}?labelSelector={labels}&limit={most}");
        let mut list = self.send(Method::GET, &path, None).await?.body;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            _ => Err(ApiFailure::Unreadable { why: "it is no list".to_owned() }),
        }
    }

    /// The request of a watch: since a version, or without one from what there is now.
    pub(super) fn watch_pods(
        &self,
        select: &Select,
        since: Option<&str>,
    ) -> Result<Request<Vec<u8>>, ApiFailure> {
        let since = since.map(|version| format!("&resourceVersion={}", encoded(version))).unwrap_or_default();
        let path = format!(
            "{}?allowWatchBookmarks=true&{}{since}&timeoutSeconds={WATCH_SECONDS}&watch=true",
            self.pods(),
            select.query()
        );
        Request::get(path)
            .header(ACCEPT, "application/json")
            .body(Vec::new())
            .map_err(|error| unsendable(&error))
    }

    async fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, ApiFailure> {
        let answer = self.send(Method::GET, path, None).await?;
        serde_json::from_value(answer.body).map_err(|error| unreadable(&error))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, &Value)>,
    ) -> Result<Answer, ApiFailure> {
        let mut request = Request::builder().method(method).uri(path).header(ACCEPT, "application/json");
        let mut bytes = Vec::new();
        if let Some((content_type, value)) = body {
            request = request.header(CONTENT_TYPE, content_type);
            bytes = value.to_string().into_bytes();
        }
        let request = request.body(Body::from(bytes)).map_err(|error| unsendable(&error))?;
        let client = self.server.client();
        let (code, location, bytes) = self
            .server
            .call(async {
                let answer = client.send(request).await?;
                let (code, location) = (answer.status().as_u16(), answer.headers().get(LOCATION).cloned());
                Ok((code, location, answer.into_body().collect().await?.to_bytes()))
            })
            .await?;
        if (200..300).contains(&code) {
            let body = serde_json::from_slice(&bytes).map_err(|error| unreadable(&error))?;
            return Ok(Answer { code, body });
        }
        if (300..400).contains(&code) {
            return Err(ApiFailure::Refused { code, message: redirection(location.as_ref()) });
        }
        Err(refusal(code, &bytes))
    }
}

/// Where a proxy in front of the API server sends a browser: the host alone, for the rest may have secrets in it.
fn redirection(location: Option<&HeaderValue>) -> String {
    let uri = location.and_then(|location| location.to_str().ok()?.parse::<Uri>().ok());
    let host = uri.as_ref().and_then(Uri::host);
    host.map_or_else(|| "it redirects elsewhere".to_owned(), |host| format!("it redirects to {host}"))
}

/// What a DELETE is told: everything that the object owns goes after it. With `uid` it is that object or none.
pub(super) fn delete_options(uid: Option<&str>, grace_period_seconds: Option<u64>) -> Value {
    let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"});
    if let Some(uid) = uid {
        options["preconditions"] = json!({"uid": uid});
    }
    if let Some(seconds) = grace_period_seconds {
        options["gracePeriodSeconds"] = seconds.into();
    }
    options
}

/// An answer that is no success is a `Status`, or a line of text of something in between.
fn refusal(code: u16, body: &[u8]) -> ApiFailure {
    let mut status: Status = serde_json::from_slice(body)
        .unwrap_or_else(|_| Status::failure(&String::from_utf8_lossy(body), "Unknown"));
    status.message = in_one_line(&status.message);
    ApiFailure::from_status(&status.with_code(code))
}

/// Says where, and not what is there: objects have secrets in them.
fn unreadable(error: &serde_json::Error) -> ApiFailure {
    let why = format!("it is not what was asked for, at line {} column {}", error.line(), error.column());
    ApiFailure::Unreadable { why }
}

fn unsendable(error: &hyper::http::Error) -> ApiFailure {
    ApiFailure::Unreadable { why: format!("the call cannot be written: {error}") }
}
