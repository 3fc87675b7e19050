//! The kubelet's endpoint from which the API server reads the logs of containers.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path as InPath, Query, State};
use axum::http::StatusCode;
use axum::routing::get;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::{NODE, Node};
use crate::tls::self_signed;

/// Registers the node, and serves the logs of its containers.
pub async fn serve(node: Arc<Node>) -> JoinHandle<()> {
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = tcp.local_addr().unwrap();
    let tls = acceptor(&node.folder);
    register(&node, address).await;
    let router = Router::new().route("/containerLogs/{namespace}/{pod}/{container}", get(log));
    let router = router.with_state(node);
    tokio::spawn(async move { axum::serve(Listener { tcp, tls }, router).await.unwrap() })
}

/// Registers the node with this address, so that the API server can reach it. Pods are bound by its name.
async fn register(node: &Node, address: SocketAddr) {
    let (status, answer) = node.api.post("/api/v1/nodes", &json!({"metadata": {"name": NODE}})).await;
    assert_eq!(status, 201, "{answer}");
    let addresses = json!([{"type": "InternalIP", "address": address.ip()}]);
    let endpoint = json!({"kubeletEndpoint": {"Port": address.port()}});
    let place = json!({"status": {"addresses": addresses, "daemonEndpoints": endpoint}});
    let (status, answer) = node.api.merge(&format!("/api/v1/nodes/{NODE}/status"), &place).await;
    assert_eq!(status, 200, "{answer}");
}

/// TLS with any certificate: this API server has no CA for kubelets, and checks none.
fn acceptor(folder: &Path) -> TlsAcceptor {
    let pem = self_signed(folder, &["127.0.0.1"]);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_file(&pem.cert).unwrap()],
            PrivateKeyDer::from_pem_file(&pem.key).unwrap(),
        )
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// The last `tailLines` lines, and of these the first `limitBytes` bytes, as the kubelet does it.
async fn log(
    State(node): State<Arc<Node>>,
    InPath((namespace, pod, container)): InPath<(String, String, String)>,
    Query(query): Query<HashMap<String, String>>,
) -> Result<Vec<u8>, StatusCode> {
    let log = std::fs::read(node.log(&namespace, &pod, &container)).map_err(|_| StatusCode::NOT_FOUND)?;
    let number = |name: &str| query.get(name).map_or(usize::MAX, |text| text.parse().unwrap());
    let lines: Vec<&[u8]> = log.split_inclusive(|byte| *byte == b'\n').collect();
    let mut shown = lines[lines.len().saturating_sub(number("tailLines"))..].concat();
    shown.truncate(number("limitBytes"));
    Ok(shown)
}

struct Listener {
    tcp: TcpListener,
    tls: TlsAcceptor,
}

impl axum::serve::Listener for Listener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let Ok((stream, address)) = self.tcp.accept().await else { continue };
            if let Ok(stream) = self.tls.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}
