//! The server over TLS, with certificates that change.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cloakroom_core::protocol::v1::Ticket;
use cloakroom_core::text::chain;
use cloakroom_server::http::{ServerTls, ServerTlsError};
use cloakroom_testing::logs;
use cloakroom_testing::tls::{Pem, no_roots, self_signed_until, signed_by_ca, trusting};
use cloakroom_testing::wait::{until, until_true};
use cloakroom_testing::wire::{Wire, upload_head};
use reqwest::Client;
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::support::TestApp;
use crate::support::app::{Options, problem};

const NAMES: [&str; 2] = ["127.0.0.1", "localhost"];

struct Secure {
    app: TestApp,
    pem: Pem,
    folder: tempfile::TempDir,
}

async fn secure() -> Secure {
    let folder = tempfile::tempdir().unwrap();
    let pem = signed_by_ca(folder.path(), &NAMES);
    let tls = Some(ServerTls::open(&pem.cert, &pem.key).unwrap());
    let mut options = Options { tls: tls.clone(), ..Options::default() };
    options.settings.tls = tls;
    options.connections.header_timeout = Duration::from_millis(500);
    Secure { app: TestApp::start_with(options).await, pem, folder }
}

impl Secure {
    fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.app.address)
    }

    async fn handshake(&self, config: ClientConfig) -> std::io::Result<TlsStream<TcpStream>> {
        handshake(self.app.address, config).await
    }

    /// The certificate that a new connection is shown, whoever signed it.
    async fn shown(&self, cas: &[&Path]) -> CertificateDer<'static> {
        for ca in cas {
            if let Ok(stream) = self.handshake(trusting(ca)).await {
                return stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned();
            }
        }
        panic!("no handshake succeeds")
    }

    fn said(&self, what: &str) -> bool {
        let folder = self.folder.path().display().to_string();
        logs::lines_with(what).iter().any(|line| line.contains(&folder))
    }
}

async fn handshake(address: SocketAddr, config: ClientConfig) -> std::io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from("localhost").unwrap();
    let socket = TcpStream::connect(address).await?;
    tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, socket).await
}

fn client(config: ClientConfig) -> Client {
    Client::builder().no_proxy().tls_backend_preconfigured(config).build().unwrap()
}

/// A client configuration that speaks one version of TLS only.
fn only(version: &'static rustls::SupportedProtocolVersion, ca: &Path) -> ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca).unwrap()).unwrap();
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

fn certificate(path: &Path) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(path).unwrap()
}

#[tokio::test]
async fn a_bundle_goes_in_and_out_over_tls_1_2_and_1_3() {
    let secure = secure().await;
    let bundle: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 253) as u8).collect();
    for config in [
        trusting(&secure.pem.ca),
        only(&rustls::version::TLS12, &secure.pem.ca),
        only(&rustls::version::TLS13, &secure.pem.ca),
    ] {
        let client = client(config);
        let put = client.put(secure.url("/api/v1/resources/deps.tgz?namespace=demo&label=app=x"));
        let ticket = secure.app.ticket(put.body(bundle.clone()).send().await.unwrap()).await;
        assert_eq!(ticket.url, secure.url(&format!("/api/v1/resources/{}", ticket.resource_id)));
        let get = client.get(&ticket.url).bearer_auth(&ticket.resource_secret);
        assert!(get.send().await.unwrap().bytes().await.unwrap() == bundle, "other bytes came back");
    }
}

#[tokio::test]
async fn only_http_1_1_is_agreed_on() {
    let secure = secure().await;
    let mut config = trusting(&secure.pem.ca);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let stream = secure.handshake(config).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
}

#[tokio::test]
async fn clients_that_do_not_trust_or_do_not_speak_tls_get_nothing() {
    let secure = secure().await;
    assert!(client(no_roots()).get(secure.url("/healthz")).send().await.is_err());
    let mut plain = Wire::connect(secure.app.address).await;
    plain.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let said = plain.rest().await;
    assert!(!said.starts_with(b"HTTP/"), "{}", String::from_utf8_lossy(&said));
    // A handshake that does not begin is not waited for.
    let start = Instant::now();
    let mut silent = Wire::connect(secure.app.address).await;
    assert_eq!(silent.rest().await, b"");
    assert!(start.elapsed() >= Duration::from_millis(450));
}

#[tokio::test]
async fn a_server_that_stops_answers_over_tls_until_its_transfers_are_finished() {
    let mut secure = secure().await;
    let mut upload = secure.handshake(trusting(&secure.pem.ca)).await.unwrap();
    upload.write_all(upload_head("Content-Length: 8\r\n").as_bytes()).await.unwrap();
    upload.write_all(b"half").await.unwrap();
    let incoming = secure.app.data_dir().join("incoming");
    until_true("the upload has begun", || incoming.read_dir().unwrap().count() == 1).await;
    secure.app.shutdown.request();

    let refused = client(trusting(&secure.pem.ca)).get(secure.url("/api/v1")).send().await.unwrap();
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (503, &"1".parse().unwrap()));
    assert_eq!(problem(refused).await.code.as_str(), "shutting-down");

    upload.write_all(b"half").await.unwrap();
    let mut answer = String::new();
    upload.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 201 ") && head.contains("connection: close"), "{head}");
    let ticket: Ticket = serde_json::from_str(body).unwrap();
    secure.app.keep_secret(&ticket.resource_secret);
    assert!(secure.app.stop().await, "something was cut off");
}

#[tokio::test]
async fn a_handshake_that_does_not_end_does_not_hold_up_the_shutdown() {
    let folder = tempfile::tempdir().unwrap();
    let pem = signed_by_ca(folder.path(), &NAMES);
    let options = Options { tls: Some(ServerTls::open(&pem.cert, &pem.key).unwrap()), ..Options::default() };
    let mut app = TestApp::start_with(options).await;
    let _silent = Wire::connect(app.address).await;
    // Connections are taken in order: after this one the silent one is known.
    handshake(app.address, trusting(&pem.ca)).await.unwrap();
    let start = Instant::now();
    assert!(app.stop().await, "something was cut off");
    assert!(start.elapsed() < Duration::from_secs(10), "a silent connection was waited for");
}

#[tokio::test]
async fn a_changed_certificate_is_for_new_connections_and_old_ones_go_on() {
    let secure = secure().await;
    let other = tempfile::tempdir().unwrap();
    let next = signed_by_ca(other.path(), &NAMES);
    let (old_certificate, new_certificate) = (certificate(&secure.pem.cert), certificate(&next.cert));
    let old_ca = other.path().join("old-ca.pem");
    std::fs::copy(&secure.pem.ca, &old_ca).unwrap();
    let cas = [old_ca.as_path(), next.ca.as_path()];
    assert_eq!(secure.shown(&cas).await, old_certificate);
    let old_client = client(trusting(&old_ca));
    assert_eq!(old_client.get(secure.url("/healthz")).send().await.unwrap().status(), 200);

    // Half of the change: a certificate whose key has not come yet.
    std::fs::copy(&next.cert, &secure.pem.cert).unwrap();
    until("the half change was seen", async || {
        assert_eq!(secure.shown(&cas).await, old_certificate);
        secure.said("the TLS certificate stays as it was")
    })
    .await;
    std::fs::copy(&next.key, &secure.pem.key).unwrap();
    until("the new certificate is shown", async || secure.shown(&cas).await == new_certificate).await;
    assert!(secure.said("read the TLS certificate again"));
    assert!(handshake(secure.app.address, trusting(&old_ca)).await.is_err());
}

#[tokio::test]
async fn a_metric_says_when_the_certificate_ends_and_when_a_new_one_does() {
    let secure = secure().await;
    // Its connection outlives the first certificate.
    let client = client(trusting(&secure.pem.ca));
    let ends_in = async |year: i16| {
        let metrics = client.get(secure.url("/metrics")).send().await.unwrap().text().await.unwrap();
        let end = jiff::civil::date(year, 1, 1).to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp();
        let line = format!("\ncloakroom_tls_certificate_expiration_timestamp_seconds {}\n", end.as_second());
        metrics.contains(&line)
    };
    assert!(ends_in(4096).await, "as the tests' certificates do");
    self_signed_until(2040, secure.folder.path(), &NAMES);
    until("the metric is that of the new certificate", async || ends_in(2040).await).await;
}

#[tokio::test]
async fn files_that_cannot_be_used_leave_the_certificate_as_it_was() {
    let secure = secure().await;
    let (good, key) = (std::fs::read(&secure.pem.cert).unwrap(), std::fs::read(&secure.pem.key).unwrap());
    let shown = certificate(&secure.pem.cert);
    let ca = secure.folder.path().join("ca.pem");
    let mut warnings = 0;
    for broken in [Some(&b""[..]), Some(&good[..good.len() / 2]), Some(&key), None] {
        match broken {
            Some(content) => std::fs::write(&secure.pem.cert, content).unwrap(),
            None => std::fs::remove_file(&secure.pem.cert).unwrap(),
        }
        let count = || {
            let folder = secure.folder.path().display().to_string();
            logs::lines_with("stays as it was").iter().filter(|line| line.contains(&folder)).count()
        };
        until("the change was seen", async || {
            assert_eq!(secure.shown(&[&ca]).await, shown);
            count() > warnings
        })
        .await;
        warnings = count();
    }
    std::fs::write(&secure.pem.cert, &good).unwrap();
    until("the files are good again", async || {
        assert_eq!(secure.shown(&[&ca]).await, shown);
        secure.said("read the TLS certificate again")
    })
    .await;
}

#[test]
fn files_that_cannot_be_used_are_refused_by_their_names() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (pem, other) = (signed_by_ca(one.path(), &NAMES), signed_by_ca(two.path(), &NAMES));
    let missing = one.path().join("missing.pem");
    let name = |path: &Path| path.display().to_string();
    let mismatch = format!(
        "the private key in {} does not fit the certificate in {}",
        name(&other.key),
        name(&pem.cert)
    );
    for (cert, key, says) in [
        (&pem.cert, &other.key, mismatch),
        (&pem.cert, &pem.cert, format!("cannot read a private key in PEM form from {}", name(&pem.cert))),
        (&pem.key, &pem.key, format!("there is no certificate in {}", name(&pem.key))),
        (&missing, &pem.key, format!("cannot read a certificate in PEM form from {}", name(&missing))),
        (&pem.cert, &missing, format!("cannot read a private key in PEM form from {}", name(&missing))),
    ] {
        let error: ServerTlsError = ServerTls::open(cert, key).unwrap_err();
        assert!(chain(&error).starts_with(&says), "{}", chain(&error));
    }
}
