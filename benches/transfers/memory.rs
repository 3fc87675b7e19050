//! Peak memory of the server with 32 uploads and 32 downloads of 256 MiB at once.

use bytes::Bytes;
use cloakroom_testing::process::Cloakroom;
use futures_util::{StreamExt as _, stream};
use reqwest::{Body, Client};

const AT_ONCE: usize = 32;
/// Of each bundle, in most scenarios.
pub const BUNDLE_BYTES: usize = 256 << 20;
const CHUNK: &[u8] = &[7; 64 << 10];

pub fn run() {
    for (uploads, downloads) in [(0, 0), (AT_ONCE, 0), (0, AT_ONCE), (AT_ONCE, AT_ONCE)] {
        let folder = tempfile::tempdir().unwrap();
        let server = Cloakroom::serve(folder.path(), &["--min-free-space", "0b"]);
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(load(&server, uploads, downloads, BUNDLE_BYTES));
        println!("peak memory with {uploads} uploads and {downloads} downloads at once: {}", peak(&server));
    }
}

pub async fn load(server: &Cloakroom, uploads: usize, downloads: usize, bundle_bytes: usize) {
    let client = Client::builder().no_proxy().tls_backend_preconfigured(no_roots()).build().unwrap();
    let (id, secret) =
        if downloads > 0 { upload(&client, server, bundle_bytes).await } else { Default::default() };
    let uploads = (0..uploads).map(|_| async {
        let (id, secret) = upload(&client, server, bundle_bytes).await;
        let url = server.url(&format!("/api/v1/resources/{id}"));
        client.delete(url).bearer_auth(secret).send().await.unwrap().error_for_status().unwrap();
    });
    let downloads = (0..downloads).map(|_| download(&client, server, (&id, &secret), bundle_bytes));
    futures_util::future::join(
        futures_util::future::join_all(uploads),
        futures_util::future::join_all(downloads),
    )
    .await;
}

async fn upload(client: &Client, server: &Cloakroom, bundle_bytes: usize) -> (String, String) {
    let chunks = stream::iter(std::iter::repeat_n(Bytes::from_static(CHUNK), bundle_bytes / CHUNK.len()));
    let body = Body::wrap_stream(chunks.map(Ok::<_, std::io::Error>));
    let url = server.url("/api/v1/resources?namespace=demo&label=app%3Ddemo");
    let answer = client.post(url).body(body).send().await.unwrap().error_for_status().unwrap();
    let ticket: serde_json::Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
    let text = |name: &str| ticket[name].as_str().unwrap().to_owned();
    (text("resourceId"), text("resourceSecret"))
}

async fn download(client: &Client, server: &Cloakroom, (id, secret): (&str, &str), bundle_bytes: usize) {
    let url = server.url(&format!("/api/v1/resources/{id}"));
    let answer = client.get(url).bearer_auth(secret).send().await.unwrap().error_for_status().unwrap();
    let mut bytes = answer.bytes_stream();
    let mut received = 0;
    while let Some(chunk) = bytes.next().await {
        received += chunk.unwrap().len();
    }
    assert_eq!(received, bundle_bytes);
}

/// The peak of resident memory (VmHWM).
pub fn peak(server: &Cloakroom) -> String {
    status(server, "VmHWM")
}

/// The present resident memory (VmRSS).
pub fn resident(server: &Cloakroom) -> String {
    status(server, "VmRSS")
}

fn status(server: &Cloakroom, which: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with(which)).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    format!("{:.1} MiB", kib as f64 / 1024.0)
}

pub fn no_roots() -> rustls::ClientConfig {
    rustls::ClientConfig::builder_with_provider(std::sync::Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth()
}
