//! The calls of clients to the API server, in one namespace. They send and receive plain JSON, so that no field of
//! a pod template is lost.

mod path;
mod retry;

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::Method;
use hyper::header::{ACCEPT, CONTENT_TYPE, LOCATION, WARNING};
use hyper::http::{HeaderValue, Request, Uri};
use k8s_openapi::List;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::client::Body;
use kube::core::response::Status;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{ApiFailure, ApiServer};
use cloakroom_core::text::in_one_line;

pub use path::{ObjectPath, PathError, encoded};
pub use retry::{Patience, is_ambiguous, retried, retried_with_doubt, said, unreachable};

/// The field manager of applies. Spark's client has the same name, so each of the two can apply objects of the other.
const FIELD_MANAGER: &str = "fabric8";

/// The field manager of dry runs that only look.
const LOOKING: &str = "cloakroom-look";

/// The pods in one page of a list. A page has a few hundred KiB.
const PAGE: usize = 100;

/// The most bytes of a log that are read.
pub const LONGEST_LOG_BYTES: usize = 1 << 20;

/// The API server ends a watch after this time. Some load balancers drop quiet connections after 240 s.
const WATCH_SECONDS: u32 = 200;

/// An API server and a namespace.
#[derive(Clone)]
pub struct Calls {
    server: ApiServer,
    namespace: String,
}

/// The answer to a call that succeeded.
pub struct Answer {
    /// HTTP status. An apply answers 201 if it has created the object, else 200.
    pub code: u16,
    /// Warnings of the API server, such as that it does not know a field.
    pub warnings: Vec<String>,
    pub body: Value,
}

impl Answer {
    /// The unique id of the object in the body, or an empty text.
    pub fn uid(&self) -> &str {
        self.body["metadata"]["uid"].as_str().unwrap_or_default()
    }

    /// Who else than these applies has set fields of the object in the body.
    pub fn other_managers(&self) -> impl Iterator<Item = &str> {
        let managers = self.body["metadata"]["managedFields"].as_array().into_iter().flatten();
        let names = managers.filter_map(|fields| fields["manager"].as_str());
        names.filter(|manager| ![FIELD_MANAGER, LOOKING].contains(manager))
    }
}

/// The log of a container.
pub struct ContainerLog {
    pub text: String,
    /// Whether the end is missing, because the log is longer than [`LONGEST_LOG_BYTES`].
    pub is_cut: bool,
}

/// The pods to watch or to list.
#[derive(Debug, Clone)]
pub enum Select {
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
    pub fn new(server: &ApiServer, namespace: &str) -> Self {
        Self { server: server.clone(), namespace: namespace.to_owned() }
    }

    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    fn pods(&self) -> String {
        format!("/api/v1/namespaces/{}/pods", encoded(&self.namespace))
    }

    fn pod(&self, name: &str) -> String {
        format!("{}/{}", self.pods(), encoded(name))
    }

    /// Creates the pod by a plain POST, as Spark does.
    pub async fn create_pod(&self, pod: &Value) -> Result<Answer, ApiFailure> {
        self.send(Method::POST, &self.pods(), Some(("application/json", pod))).await
    }

    /// The same as a dry run: the pod is not stored.
    pub async fn try_pod(&self, pod: &Value) -> Result<Answer, ApiFailure> {
        self.send(Method::POST, &format!("{}?dryRun=All", self.pods()), Some(("application/json", pod))).await
    }

    /// Applies an object on the server, as Spark's client does. `force` takes over fields of other managers.
    pub async fn apply(&self, path: &ObjectPath, object: &Value) -> Result<Answer, ApiFailure> {
        let path = format!("{path}?fieldManager={FIELD_MANAGER}&force=true");
        self.send(Method::PATCH, &path, Some(("application/apply-patch+yaml", object))).await
    }

    /// The same as a dry run: the object is not stored.
    pub async fn try_apply(&self, path: &ObjectPath, object: &Value) -> Result<Answer, ApiFailure> {
        let path = format!("{path}?dryRun=All&fieldManager={FIELD_MANAGER}&force=true");
        self.send(Method::PATCH, &path, Some(("application/apply-patch+yaml", object))).await
    }

    /// Reads an object without the right to get it. It is a dry run of an apply that has only the object's name. The
    /// status is 201 if the object does not exist.
    pub async fn look(&self, path: &ObjectPath, object: &Value) -> Result<Answer, ApiFailure> {
        let bare = json!({
            "apiVersion": object["apiVersion"],
            "kind": object["kind"],
            "metadata": {"name": object["metadata"]["name"]},
        });
        let path = format!("{path}?dryRun=All&fieldManager={LOOKING}");
        self.send(Method::PATCH, &path, Some(("application/apply-patch+yaml", &bare))).await
    }

    pub async fn get_pod(&self, name: &str) -> Result<Answer, ApiFailure> {
        self.send(Method::GET, &self.pod(name), None).await
    }

    pub async fn get(&self, path: &ObjectPath) -> Result<Answer, ApiFailure> {
        self.send(Method::GET, &path.to_string(), None).await
    }

    pub async fn delete_pod(&self, name: &str, options: &Value) -> Result<Answer, ApiFailure> {
        self.send(Method::DELETE, &self.pod(name), Some(("application/json", options))).await
    }

    /// Deletes an object. With `uid`, it is deleted only if it has this unique id.
    pub async fn delete(&self, path: &ObjectPath, uid: Option<&str>) -> Result<Answer, ApiFailure> {
        let options = delete_options(uid, None);
        self.send(Method::DELETE, &path.to_string(), Some(("application/json", &options))).await
    }

    /// The pod of this name. It is `None` if there is none.
    pub async fn pod_named(&self, name: &str) -> Result<Option<Pod>, ApiFailure> {
        match self.read(&self.pod(name)).await {
            Err(ApiFailure::NotFound { .. }) => Ok(None),
            found => found.map(Some),
        }
    }

    /// Passes all selected pods to `each`, page by page.
    pub async fn list_pods(&self, select: &Select, mut each: impl FnMut(Pod)) -> Result<(), ApiFailure> {
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

    /// All pods with these labels in one list, as Spark requests them.
    pub async fn all_pods(&self, labels: &str) -> Result<Vec<Pod>, ApiFailure> {
        let path = format!("{}?labelSelector={}", self.pods(), encoded(labels));
        Ok(self.read::<List<Pod>>(&path).await?.items)
    }

    /// The events of the object with this unique id.
    pub async fn events_of(&self, uid: &str) -> Result<Vec<Event>, ApiFailure> {
        let namespace = encoded(&self.namespace);
        let path = format!(
            "/api/v1/namespaces/{namespace}/events?fieldSelector=involvedObject.uid%3D{}&limit={PAGE}",
            encoded(uid)
        );
        Ok(self.read::<List<Event>>(&path).await?.items)
    }

    /// The objects of one kind with these labels, at most `most` of them.
    pub async fn list(&self, plural: &str, labels: &str, most: usize) -> Result<Vec<Value>, ApiFailure> {
        let (namespace, labels) = (encoded(&self.namespace), encoded(labels));
        let path = format!("/api/v1/namespaces/{namespace}/{plural}?labelSelector={labels}&limit={most}");
        let mut list = self.send(Method::GET, &path, None).await?.body;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            _ => Err(ApiFailure::Unreadable { why: "it is no list".to_owned() }),
        }
    }

    /// The last `lines` lines of a container's log. If they are longer than [`LONGEST_LOG_BYTES`], their end is
    /// missing.
    pub async fn log(&self, pod: &str, container: &str, lines: usize) -> Result<ContainerLog, ApiFailure> {
        let path = format!(
            "{}/log?container={}&limitBytes={LONGEST_LOG_BYTES}&tailLines={lines}",
            self.pod(pod),
            encoded(container)
        );
        let Received { code, is_text, bytes, .. } = self.exchange(Method::GET, &path, None).await?;
        if code != 200 {
            return Err(refusal(code, &bytes));
        }
        if !is_text {
            return Err(ApiFailure::Unreadable { why: "it is no log".to_owned() });
        }
        let is_cut = bytes.len() >= LONGEST_LOG_BYTES;
        Ok(ContainerLog { text: String::from_utf8_lossy(&bytes).into_owned(), is_cut })
    }

    /// Requests a token of a service account of the namespace.
    pub async fn request_token(
        &self,
        account: &str,
        audience: &str,
        lifetime: Duration,
    ) -> Result<Answer, ApiFailure> {
        let (namespace, account) = (encoded(&self.namespace), encoded(account));
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"audiences": [audience], "expirationSeconds": lifetime.as_secs()},
        });
        self.send(Method::POST, &path, Some(("application/json", &request))).await
    }

    /// The user whom the API server takes this client for. API servers before Kubernetes 1.28 cannot tell it.
    pub async fn own_name(&self) -> Option<String> {
        let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let answer = self.send(Method::POST, path, Some(("application/json", &review))).await.ok()?;
        answer.body["status"]["userInfo"]["username"].as_str().map(str::to_owned)
    }

    /// Whether a service account of the namespace may create pods there. It is `None` if the answer is not certain.
    pub async fn may_create_pods(&self, account: &str) -> Result<Option<bool>, ApiFailure> {
        let namespace = &self.namespace;
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "LocalSubjectAccessReview",
            "metadata": {"namespace": namespace},
            "spec": {
                "user": format!("system:serviceaccount:{namespace}:{account}"),
                "groups": [
                    "system:serviceaccounts",
                    format!("system:serviceaccounts:{namespace}"),
                    "system:authenticated",
                ],
                "resourceAttributes": {"namespace": namespace, "verb": "create", "resource": "pods"},
            },
        });
        let path = format!(
            "/apis/authorization.k8s.io/v1/namespaces/{}/localsubjectaccessreviews",
            encoded(namespace)
        );
        let status = self.send(Method::POST, &path, Some(("application/json", &review))).await?.body;
        let status = &status["status"];
        // If an authorizer failed, it might have allowed the call.
        let is_sure = status["evaluationError"].as_str().is_none_or(str::is_empty);
        Ok(status["allowed"].as_bool().filter(|is_allowed| *is_allowed || is_sure))
    }

    /// The request of a watch, from a resource version on. Without one, it begins with the current state.
    pub fn watch_pods(&self, select: &Select, since: Option<&str>) -> Result<Request<Vec<u8>>, ApiFailure> {
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
        let Received { code, location, warnings, bytes, .. } = self.exchange(method, path, body).await?;
        if (200..300).contains(&code) {
            let body = serde_json::from_slice(&bytes).map_err(|error| unreadable(&error))?;
            return Ok(Answer { code, warnings, body });
        }
        if (300..400).contains(&code) {
            return Err(ApiFailure::Refused { code, message: redirection(location.as_ref()) });
        }
        Err(refusal(code, &bytes))
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, &Value)>,
    ) -> Result<Received, ApiFailure> {
        let mut request = Request::builder().method(method).uri(path).header(ACCEPT, "application/json");
        let mut bytes = Vec::new();
        if let Some((content_type, value)) = body {
            request = request.header(CONTENT_TYPE, content_type);
            bytes = value.to_string().into_bytes();
        }
        let request = request.body(Body::from(bytes)).map_err(|error| unsendable(&error))?;
        let client = self.server.client();
        let receive = async {
            let answer = client.send(request).await?;
            let (code, headers) = (answer.status().as_u16(), answer.headers());
            let location = headers.get(LOCATION).cloned();
            let warnings = headers.get_all(WARNING).iter().filter_map(warning_text).collect();
            let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
            let is_text = content_type.starts_with(b"text/plain");
            let bytes = answer.into_body().collect().await?.to_bytes();
            Ok(Received { code, location, warnings, is_text, bytes })
        };
        self.server.call(receive).await
    }
}

/// An answer with any status.
struct Received {
    code: u16,
    location: Option<HeaderValue>,
    warnings: Vec<String>,
    is_text: bool,
    bytes: Bytes,
}

/// The text of a warning, which an API server writes as `299 - "TEXT"` with escapes in it (RFC 7234 section 5.5). A field that
/// it does not know, or that a policy would refuse, is one.
fn warning_text(header: &HeaderValue) -> Option<String> {
    let quoted = str::from_utf8(header.as_bytes()).ok()?.strip_prefix("299 ")?.split_once('"')?.1;
    let mut text = String::new();
    let mut letters = quoted.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => return Some(in_one_line(&text)),
            '\\' => text.extend(letters.next()),
            letter => text.push(letter),
        }
    }
    None
}

/// The target of a redirect, as a proxy with a login page sends it. Only the host is shown: the rest may have secrets.
fn redirection(location: Option<&HeaderValue>) -> String {
    let uri = location.and_then(|location| location.to_str().ok()?.parse::<Uri>().ok());
    let host = uri.as_ref().and_then(Uri::host);
    host.map_or_else(|| "it redirects elsewhere".to_owned(), |host| format!("it redirects to {host}"))
}

/// The body of a DELETE. Kubernetes deletes in the background what the object owns, as with Spark. With `uid`, the
/// object is deleted only if it has this unique id.
pub fn delete_options(uid: Option<&str>, grace_period_seconds: Option<u64>) -> Value {
    let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"});
    if let Some(uid) = uid {
        options["preconditions"] = json!({"uid": uid});
    }
    if let Some(seconds) = grace_period_seconds {
        options["gracePeriodSeconds"] = seconds.into();
    }
    options
}

/// The failure of an answer without success. Its body is a `Status`, or the text of a proxy.
fn refusal(code: u16, body: &[u8]) -> ApiFailure {
    let mut status: Status = serde_json::from_slice(body)
        .unwrap_or_else(|_| Status::failure(&String::from_utf8_lossy(body), "Unknown"));
    status.message = in_one_line(&status.message);
    ApiFailure::from_status(&status.with_code(code))
}

/// An answer that cannot be parsed. The message has the position only, because objects may have secrets.
fn unreadable(error: &serde_json::Error) -> ApiFailure {
    let why = format!("it is not what was asked for, at line {} column {}", error.line(), error.column());
    ApiFailure::Unreadable { why }
}

fn unsendable(error: &hyper::http::Error) -> ApiFailure {
    ApiFailure::Unreadable { why: format!("the call cannot be written: {error}") }
}
