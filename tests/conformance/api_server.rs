//! The fake API server of all tests, and a clerk before it who writes down what is asked.

mod pods;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Json;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Query, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use cloakroom_testing::api_server::{self as fake, FakeApiServer, NETWORK_POLICY, POD_GROUP, SECRET, Verb};
use cloakroom_testing::cluster::{CLAIM, CONFIG_MAP, Cluster as _, Kind, POD, SERVICE};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::sets::{Fault, Life};

/// What a submission creates.
const KINDS: [Kind; 7] = [POD, SERVICE, CONFIG_MAP, CLAIM, SECRET, NETWORK_POLICY, POD_GROUP];

/// One request, as it came, and the status that answered it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    pub method: String,
    pub path: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub query: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization: Option<String>,
    /// The headers of an impersonation, such as `impersonate-user: ann`, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub impersonation: Vec<String>,
    /// Tried as a WebSocket, which is refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub websocket: bool,
    pub status: u16,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub body: Value,
}

/// A running server; it stops when it is dropped.
pub struct ApiServer {
    server: FakeApiServer,
    clerk: Arc<Clerk>,
}

struct Clerk {
    calls: Mutex<Vec<Call>>,
    life: Life,
    /// The driver pod and its path, until the first look at it.
    unseen: Mutex<Option<(String, Value)>>,
}

impl ApiServer {
    /// Starts one where a caller without credentials may do everything, but for the faults.
    pub fn start(faults: &[Fault], life: Life) -> Self {
        let clerk = Arc::new(Clerk { calls: Mutex::default(), life, unseen: Mutex::default() });
        let layer = from_fn_with_state(Arc::clone(&clerk), answer);
        let server = FakeApiServer::behind(move |server| server.layer(layer.clone()));
        server.know_token("", "system:anonymous", &["system:masters"]);
        KINDS[1..].iter().for_each(|kind| server.define(*kind));
        pods::others().into_iter().for_each(|(namespace, pod)| server.keep(POD, namespace, pod));
        for Fault { method, resource, status, times } in faults {
            let verbs = match method.as_str() {
                "POST" => &[Verb::Create][..],
                "PATCH" => &[Verb::Patch],
                "DELETE" => &[Verb::Delete],
                _ => &[Verb::Get, Verb::List, Verb::Watch],
            };
            let kind = KINDS.into_iter().find(|kind| kind.plural == resource).unwrap();
            let fault = if *status == 403 { fake::Fault::Forbidden } else { fake::Fault::Status(*status) };
            let times = times.unwrap_or(usize::MAX);
            verbs.iter().for_each(|verb| server.fail_some(kind, *verb, 0, times, fault));
        }
        Self { server, clerk }
    }

    pub fn address(&self) -> String {
        self.server.address().to_string()
    }

    /// What was asked so far.
    pub fn calls(&self) -> Vec<Call> {
        self.clerk.calls.lock().unwrap().clone()
    }
}

async fn answer(State(clerk): State<Arc<Clerk>>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let mut call = Call::new(&parts, &bytes);
    let response = match clerk.echo(&call) {
        Some(status) => {
            let mut echo = call.body.clone();
            echo["metadata"]["uid"] = pods::UID.into();
            (status, Json(echo)).into_response()
        }
        None => clerk.pass_on(&call, parts, bytes, next).await,
    };
    call.status = response.status().as_u16();
    clerk.calls.lock().unwrap().push(call);
    response
}

impl Clerk {
    /// The status of a call whose answer is its own body: a trial, for which no fault is meant, a question about rights,
    /// which stays open, and what leads to no path of the API.
    fn echo(&self, call: &Call) -> Option<StatusCode> {
        let is_echoed = call.query.contains_key("dryRun")
            || call.path.ends_with("/localsubjectaccessreviews")
            || !call.path.contains("/api");
        let is_again = |earlier: &Call| (&earlier.method, &earlier.path) == (&call.method, &call.path);
        let is_known = is_echoed && self.calls.lock().unwrap().iter().any(is_again);
        is_echoed.then_some(if is_known { StatusCode::OK } else { StatusCode::CREATED })
    }

    /// Every namespace is there, all credentials are good, and the API may be below a path.
    async fn pass_on(&self, call: &Call, mut parts: Parts, bytes: Bytes, next: Next) -> Response {
        let target = parts.uri.to_string();
        parts.uri = target[target.find("/api").unwrap()..].parse().unwrap();
        let path = parts.uri.path().to_owned();
        if let Some(namespace) = path.split("/namespaces/").nth(1).and_then(|rest| rest.split('/').next()) {
            let namespace = json!({"metadata": {"name": namespace}});
            ask(&next, Method::POST, "/api/v1/namespaces", &namespace).await;
        }
        parts.headers.remove(header::AUTHORIZATION);
        let response = next.clone().run(Request::from_parts(parts, Body::from(bytes))).await;
        let is_done = response.status().is_success();
        match (call.method.as_str(), path.ends_with("/pods")) {
            ("GET", _) if is_done && call.websocket => Json(json!({})).into_response(),
            ("GET", true) if is_done && !call.query.contains_key("watch") => {
                Json(pods::in_order(read(response).await)).into_response()
            }
            ("POST", true) if is_done => {
                let (path, pod) = pods::settle(&next, &path, read(response).await).await;
                *self.unseen.lock().unwrap() = Some((path, pod.clone()));
                (StatusCode::CREATED, Json(pod)).into_response()
            }
            ("GET", _) => {
                if let Some((path, pod)) = self.unseen.lock().unwrap().take() {
                    tokio::spawn(pods::live(next, path, pod, self.life.clone()));
                }
                response
            }
            _ => response,
        }
    }
}

/// Asks the server as its own parts do.
async fn ask(next: &Next, method: Method, path: &str, body: &Value) {
    let request = Request::builder().method(method).uri(path).body(Body::from(body.to_string()));
    next.clone().run(request.unwrap()).await;
}

async fn read(response: Response) -> Value {
    parse(&to_bytes(response.into_body(), usize::MAX).await.unwrap())
}

fn parse(body: &Bytes) -> Value {
    if body.is_empty() {
        return Value::Null;
    }
    serde_json::from_slice(body).unwrap_or_else(|_| String::from_utf8_lossy(body).into())
}

impl Call {
    fn new(parts: &Parts, body: &Bytes) -> Self {
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let header = |name: HeaderName| parts.headers.get(name).map(text);
        let named = parts.headers.iter().filter(|(name, _)| name.as_str().starts_with("impersonate-"));
        let mut impersonation: Vec<_> =
            named.map(|(name, value)| format!("{name}: {}", text(value))).collect();
        impersonation.sort_unstable();
        Self {
            method: parts.method.to_string(),
            path: parts.uri.path().to_owned(),
            query: Query::try_from_uri(&parts.uri).unwrap().0,
            content_type: header(header::CONTENT_TYPE),
            authorization: header(header::AUTHORIZATION),
            impersonation,
            websocket: parts.headers.contains_key(header::UPGRADE),
            status: 0,
            body: parse(body),
        }
    }
}
