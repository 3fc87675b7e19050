//! An API server with as many pods as a test wants, on which nothing happens.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::response::Response;
use axum::routing::get;
use futures_util::stream;
use serde_json::{Value, json};

/// Namespace and labels of each pod.
type Pods = Arc<Vec<(String, String)>>;

/// Serves pods with these namespaces and labels as long as the runtime is there, and writes a kubeconfig into `folder`.
pub async fn serve(folder: &Path, pods: Vec<(String, String)>) -> PathBuf {
    let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let router = Router::new().route("/api/v1/pods", get(list_or_watch)).with_state(Pods::new(pods));
    tokio::spawn(async move { axum::serve(socket, router).await });
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        "clusters": [{"name": "here", "cluster": {"server": format!("http://{address}")}}],
        "users": [{"name": "here", "user": {}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "here"}}],
    });
    let path = folder.join("kubeconfig");
    std::fs::write(&path, kubeconfig.to_string()).unwrap();
    path
}

/// A list in pages, or a watch on which nothing comes.
async fn list_or_watch(State(pods): State<Pods>, RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    let value = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    if value("watch").is_some() {
        return Response::new(Body::from_stream(stream::pending::<Result<Bytes, Infallible>>()));
    }
    let from: usize = value("continue").map_or(0, |token| token.parse().unwrap());
    let limit = value("limit").map_or(pods.len(), |limit| limit.parse().unwrap());
    let to = pods.len().min(from + limit);
    let items: Vec<Value> = (from..to).map(|number| pod(number, &pods[number])).collect();
    let more = if to < pods.len() { to.to_string() } else { String::new() };
    let list = json!({
        "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "1000", "continue": more}, "items": items,
    });
    Response::builder().header("content-type", "application/json").body(list.to_string().into()).unwrap()
}

fn pod(number: usize, (namespace, labels): &(String, String)) -> Value {
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": {
            "name": format!("driver-{number}"), "namespace": namespace, "resourceVersion": number.to_string(),
            "labels": serde_json::from_str::<Value>(labels).unwrap(),
        },
    })
}
