//! A hundred thousand resources, and as many pods: memory, the time of a sweep, and the calls to the API server.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::response::Response;
use cloakroom_adapters::disk::DataDirectory;
use cloakroom_adapters::sqlite::SqliteLedger;
use cloakroom_core::resource::{Bundle, Lifetime, Owner, OwnerKind, ResourceId, ResourceSecret};
use cloakroom_storage::ledger::{Completion, Ledger as _, PendingResource};
use cloakroom_testing::process::Cloakroom;
use futures_util::stream;
use jiff::Timestamp;
use serde_json::json;

use crate::memory::{no_roots, peak};

const COUNT: usize = 100_000;
const NAMESPACES: usize = 100;
/// How many sweeps are measured once all owners are known.
const SWEEPS: u64 = 30;
const LOOK: Duration = Duration::from_secs(2);

pub fn run() {
    mean_sweep(Cloakroom::serve);
}

/// The mean time of many sweeps in seconds. `serve` starts the server on a folder with flags.
pub fn mean_sweep(serve: impl Fn(&Path, &[&str]) -> Cloakroom) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(fill(folder.path()));
    let calls = Arc::new(Calls::default());
    let address = runtime.block_on(serve_pods(Arc::clone(&calls)));
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, kubeconfig_of(&address)).unwrap();
    let flags = ["--kubeconfig", kubeconfig.to_str().unwrap(), "--cleanup-interval", "500ms"];
    let server = serve(folder.path(), &flags);
    println!("started, all rows read: peak memory {}", peak(&server));
    runtime.block_on(measure(&server, &calls))
}

async fn measure(server: &Cloakroom, calls: &Calls) -> f64 {
    let present = format!("cloakroom_resources_kept{{why=\"owner-present\"}} {COUNT}");
    until(async || metrics(server).await.contains(&present)).await;
    // The first sweep that saw the owners wrote to the ledger.
    tokio::time::sleep(LOOK * 3).await;
    let before = sweeps(&metrics(server).await);
    let (lists, watches) = calls.seen();
    until(async || sweeps(&metrics(server).await).0 >= before.0 + SWEEPS).await;
    let after = sweeps(&metrics(server).await);
    let mean = (after.1 - before.1) / (after.0 - before.0) as f64;
    println!(
        "a sweep of {COUNT} resources whose {COUNT} pods are there: {:.0} ms (mean of {})",
        mean * 1000.0,
        after.0 - before.0
    );
    println!("calls meanwhile: {} lists, {} watches", calls.seen().0 - lists, calls.seen().1 - watches);
    println!("peak memory: {}", peak(server));
    mean
}

/// Waits, and looks rarely, because each look costs time too.
async fn until(condition: impl AsyncFn() -> bool) {
    while !condition().await {
        tokio::time::sleep(LOOK).await;
    }
}

/// Number and seconds of all sweeps so far.
fn sweeps(metrics: &str) -> (u64, f64) {
    let value = |name: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse::<f64>().unwrap())
    };
    (value("cloakroom_sweep_duration_seconds_count") as u64, value("cloakroom_sweep_duration_seconds_sum"))
}

async fn metrics(server: &Cloakroom) -> String {
    let client = reqwest::Client::builder().no_proxy().tls_backend_preconfigured(no_roots()).build().unwrap();
    client.get(server.url("/metrics")).send().await.unwrap().text().await.unwrap()
}

fn app(number: usize) -> String {
    format!("spark-{number:032x}")
}

fn namespace(number: usize) -> String {
    format!("team-{}", number % NAMESPACES)
}

/// A ledger like that of a busy server: one resource for each pod, half of them used.
pub async fn fill(folder: &Path) {
    let data = DataDirectory::open(folder).unwrap();
    let ledger = SqliteLedger::open(&data.ledger()).await.unwrap();
    let numbers: Vec<usize> = (0..COUNT).collect();
    for part in numbers.chunks(2000) {
        futures_util::future::join_all(part.iter().map(|number| stage(&ledger, *number))).await;
    }
    ledger.close().await;
}

async fn stage(ledger: &SqliteLedger, number: usize) {
    let created_at = Timestamp::from_millisecond(Timestamp::now().as_millisecond()).unwrap();
    let id = ResourceId::generate(&mut rand::rng());
    let secret_hash = ResourceSecret::from_text("secret").hash();
    let pending = PendingResource { id, secret_hash, file_name: None, created_at, uploaded_by: None };
    ledger.begin(pending).await.unwrap();
    let labels =
        [("spark-app-selector".to_owned(), app(number)), ("spark-role".to_owned(), "driver".to_owned())];
    let owner = Owner::new(OwnerKind::default(), &namespace(number), labels, None).unwrap();
    let lifetime = Lifetime { unused_timeout: Duration::from_mins(30), ttl: None };
    let bundle = Bundle { size_bytes: 1 << 20, sha256: [7; 32] };
    ledger.complete(Completion { id, owner, bundle, lifetime, created_at }).await.unwrap();
    if number.is_multiple_of(2) {
        ledger.mark_used(id, created_at).await.unwrap();
    }
}

/// The calls to the API server.
#[derive(Default)]
struct Calls {
    lists: AtomicUsize,
    watches: AtomicUsize,
}

impl Calls {
    fn seen(&self) -> (usize, usize) {
        (self.lists.load(Ordering::Relaxed), self.watches.load(Ordering::Relaxed))
    }
}

/// An API server that lists as many pods in pages, with a watch that stays silent.
async fn serve_pods(calls: Arc<Calls>) -> String {
    let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let router = Router::new().route("/api/v1/pods", axum::routing::get(pods)).with_state(calls);
    tokio::spawn(async move { axum::serve(socket, router).await });
    format!("http://{address}")
}

async fn pods(State(calls): State<Arc<Calls>>, RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    let value = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    if value("watch").is_some() {
        calls.watches.fetch_add(1, Ordering::Relaxed);
        return Response::new(Body::from_stream(stream::pending::<Result<Bytes, Infallible>>()));
    }
    calls.lists.fetch_add(1, Ordering::Relaxed);
    let from: usize = value("continue").map_or(0, |token| token.parse().unwrap());
    let to = COUNT.min(from + value("limit").map_or(COUNT, |limit| limit.parse::<usize>().unwrap()));
    let items: Vec<_> = (from..to).map(pod).collect();
    let more = if to < COUNT { to.to_string() } else { String::new() };
    let list = json!({
        "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "1000", "continue": more}, "items": items,
    });
    Response::builder().header("content-type", "application/json").body(list.to_string().into()).unwrap()
}

/// The metadata of a Spark driver as in a real cluster.
fn pod(number: usize) -> serde_json::Value {
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": {
            "name": format!("application-{number:08x}-driver"), "namespace": namespace(number),
            "uid": format!("4c1a3c44-54d9-4a1f-9a6e-{number:012x}"), "resourceVersion": number.to_string(),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {
                "spark-app-selector": app(number), "spark-role": "driver", "spark-version": "4.3.0",
                "spark-app-name": format!("application-{number}"), "team": namespace(number), "tier": "batch",
            },
            "annotations": {"example.com/note": "x".repeat(500)},
            "managedFields": [{
                "manager": "kubelet", "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z",
                "fieldsType": "FieldsV1", "subresource": "status",
                "fieldsV1": {"f:status": {"f:conditions": {"f:note": "y".repeat(1500)}}},
            }],
        },
    })
}

fn kubeconfig_of(address: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "bench",
        "clusters": [{"name": "bench", "cluster": {"server": address}}],
        "users": [{"name": "bench", "user": {}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
    })
    .to_string()
}
