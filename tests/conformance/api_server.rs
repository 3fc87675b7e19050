//! An API server that writes down what it is asked and answers by a script.

mod answers;
mod path;
mod pods;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::sets::{Fault, Life};
use path::ResourcePath;
use pods::Pods;

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
    address: SocketAddr,
    script: Arc<Script>,
    serving: JoinHandle<()>,
}

struct Script {
    calls: Mutex<Vec<Call>>,
    faults: Mutex<Vec<Fault>>,
    /// What was applied.
    applied: Mutex<BTreeSet<ResourcePath>>,
    pods: Arc<Pods>,
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::new().unwrap())
}

impl ApiServer {
    /// Starts one on a free port of the loopback interface.
    pub fn start(faults: Vec<Fault>, life: Life) -> Self {
        let script = Arc::new(Script {
            calls: Mutex::default(),
            faults: Mutex::new(faults),
            applied: Mutex::default(),
            pods: Arc::new(Pods::new(life)),
        });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&script));
        let listener = runtime().block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let serving = runtime().spawn(async move {
            let _ = axum::serve(listener, router).await;
        });
        Self { address, script, serving }
    }

    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// What was asked so far.
    pub fn calls(&self) -> Vec<Call> {
        self.script.calls.lock().unwrap().clone()
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(State(script): State<Arc<Script>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let path = ResourcePath::parse(parts.uri.path());
    let query = query(&parts.uri);
    let websocket = parts.headers.contains_key(header::UPGRADE);
    let response = match script.fault(&parts.method, &path, &query) {
        Some(status) => answers::refusal(status, &parts.method, &path),
        None if websocket => answers::json(StatusCode::OK, &json!({})),
        None => script.respond(&parts.method, &path, &query, &body),
    };
    script.write_down(Call {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        query,
        content_type: text(&parts.headers, &header::CONTENT_TYPE),
        authorization: text(&parts.headers, &header::AUTHORIZATION),
        impersonation: impersonation(&parts.headers),
        websocket,
        status: response.status().as_u16(),
        body: parse(&body),
    });
    response
}

impl Script {
    fn write_down(&self, call: Call) {
        self.calls.lock().unwrap().push(call);
    }

    /// The status that a fault answers with. A server-side dry run passes: what is under test is how the real
    /// request is taken.
    fn fault(
        &self,
        method: &Method,
        path: &ResourcePath,
        query: &BTreeMap<String, String>,
    ) -> Option<StatusCode> {
        let mut faults = self.faults.lock().unwrap();
        let fault = faults.iter_mut().find(|fault| {
            fault.method == method.as_str()
                && fault.resource == path.resource
                && fault.times != Some(0)
                && !query.contains_key("dryRun")
        })?;
        fault.times = fault.times.map(|times| times - 1);
        Some(StatusCode::from_u16(fault.status).unwrap())
    }

    fn respond(
        &self,
        method: &Method,
        path: &ResourcePath,
        query: &BTreeMap<String, String>,
        body: &Bytes,
    ) -> Response {
        let object = answers::stored(parse(body), path);
        let is_driver = path.resource == "pods";
        match method.as_str() {
            "POST" => {
                if is_driver && !query.contains_key("dryRun") {
                    self.pods.create(object.clone());
                }
                answers::json(StatusCode::CREATED, &object)
            }
            // What is applied for the first time is created.
            "PATCH" => {
                let is_new = self.applied.lock().unwrap().insert(path.clone());
                answers::json(if is_new { StatusCode::CREATED } else { StatusCode::OK }, &object)
            }
            "DELETE" => self.pods.delete(path).map_or_else(
                || answers::refusal(StatusCode::NOT_FOUND, method, path),
                |pod| answers::json(StatusCode::OK, &pod),
            ),
            "GET" if query.get("watch").is_some_and(|watch| watch != "false") => {
                let stream = Arc::clone(&self.pods).watch(path, query);
                Response::builder()
                    .header(header::CONTENT_TYPE, "application/json")
                    .body(Body::from_stream(stream))
                    .unwrap()
            }
            "GET" if path.name.is_some() => self.pods.get(path).map_or_else(
                || answers::refusal(StatusCode::NOT_FOUND, method, path),
                |pod| answers::json(StatusCode::OK, &pod),
            ),
            "GET" => answers::json(StatusCode::OK, &self.pods.list(path, query)),
            _ => answers::refusal(StatusCode::METHOD_NOT_ALLOWED, method, path),
        }
    }
}

fn query(uri: &Uri) -> BTreeMap<String, String> {
    let decode = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    let pairs = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(k, v)| (decode(k), decode(v)))
        .collect()
}

fn impersonation(headers: &HeaderMap) -> Vec<String> {
    let named = headers.iter().filter(|(name, _)| name.as_str().starts_with("impersonate-"));
    let lines = named.map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value.as_bytes())));
    lines.collect::<BTreeSet<_>>().into_iter().collect()
}

fn text(headers: &HeaderMap, name: &header::HeaderName) -> Option<String> {
    let value = headers.get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn parse(body: &Bytes) -> Value {
    if body.is_empty() {
        return Value::Null;
    }
    serde_json::from_slice(body).unwrap_or_else(|_| String::from_utf8_lossy(body).into())
}
