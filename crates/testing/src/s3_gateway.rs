//! The Versity S3 Gateway: a store that speaks the protocol of S3, and keeps objects in a folder.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::child::Program;
use crate::needs::{Need, path};
use crate::port::ReservedPort;
use crate::tls::Pem;
use crate::wait::until_true;

/// The variable that names the folder with the program.
const PROGRAM: &str = "CLOAKROOM_TEST_VERSITYGW";

/// The bucket that it has from the start.
pub const BUCKET: &str = "team";

pub const ACCESS_KEY: &str = "AKIATESTEXAMPLE";
pub const SECRET_KEY: &str = "secret-key-of-the-gateway";

/// A running gateway. It ends when this is dropped.
pub struct S3Gateway {
    program: Program,
    port: ReservedPort,
    folder: TempDir,
    bucket: &'static str,
    has_tls: bool,
}

impl S3Gateway {
    pub fn needs() -> Vec<Need> {
        vec![Need::Below(PROGRAM, "versitygw".to_owned()), Need::Program("curl")]
    }

    /// Starts it with an empty bucket. It is ready when this returns.
    pub async fn start() -> Self {
        Self::start_with(BUCKET, ReservedPort::new(), None).await
    }

    /// The same with a bucket of this name.
    pub async fn start_with_bucket(bucket: &'static str) -> Self {
        Self::start_with(bucket, ReservedPort::new(), None).await
    }

    /// The same with TLS. The certificate must be for `localhost`.
    pub async fn start_with_tls(certificate: &Pem) -> Self {
        Self::start_with(BUCKET, ReservedPort::new(), Some(certificate)).await
    }

    /// The same on another interface, for which the certificate must be.
    pub async fn start_with_tls_on(address: Ipv4Addr, certificate: &Pem) -> Self {
        Self::start_with(BUCKET, ReservedPort::on(address), Some(certificate)).await
    }

    async fn start_with(bucket: &'static str, port: ReservedPort, certificate: Option<&Pem>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("objects").join(bucket)).unwrap();
        let program = start(folder.path(), &port, certificate);
        let gateway = Self { program, port, folder, bucket, has_tls: certificate.is_some() };
        until_true("the gateway is ready", || {
            gateway.program.assert_running();
            TcpStream::connect(gateway.port.address()).is_ok()
        })
        .await;
        gateway
    }

    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Where it is.
    pub fn url(&self) -> String {
        let address = self.port.address();
        match self.has_tls {
            true if address.ip().is_loopback() => format!("https://localhost:{}", address.port()),
            true => format!("https://{address}"),
            false => format!("http://{address}"),
        }
    }

    /// The folder with the objects of the bucket.
    pub fn objects(&self) -> PathBuf {
        self.folder.path().join("objects").join(self.bucket)
    }

    /// The keys of the uploads in parts that were begun, and neither completed nor aborted.
    pub fn uploads(&self) -> Vec<String> {
        uploads(&self.url(), self.bucket, "")
    }
}

/// The keys with this prefix of the uploads in parts that were begun, and neither completed nor aborted.
pub fn uploads(url: &str, bucket: &str, prefix: &str) -> Vec<String> {
    let text = signed("GET", &format!("{url}/{bucket}?prefix={prefix}&uploads="));
    let keys = text.split("<Key>").skip(1).filter_map(|rest| rest.split_once("</Key>"));
    keys.map(|(key, _)| key.to_owned()).collect()
}

/// The answer to a request without a body that is signed with the keys of these tests.
pub fn signed(method: &str, url: &str) -> String {
    signed_with(method, url, "Accept: */*")
}

/// The same with one more header.
pub fn signed_with(method: &str, url: &str, header: &str) -> String {
    let answer = Command::new("curl")
        .args(["--silent", "--show-error", "--fail-with-body", "--request", method])
        .args(["--aws-sigv4", "aws:amz:us-east-1:s3", "--user"])
        .arg(format!("{ACCESS_KEY}:{SECRET_KEY}"))
        .args(["--header", "x-amz-content-sha256: UNSIGNED-PAYLOAD", "--header", header, url])
        .args(if method == "PUT" { &["--header", "Content-Length: 0"][..] } else { &[] })
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&answer.stdout).into_owned();
    assert!(answer.status.success(), "{text}{}", String::from_utf8_lossy(&answer.stderr));
    text
}

fn start(folder: &Path, port: &ReservedPort, certificate: Option<&Pem>) -> Program {
    let text = |path: PathBuf| path.to_str().unwrap().to_owned();
    let args = [
        "--access",
        ACCESS_KEY,
        "--secret",
        SECRET_KEY,
        "--region",
        "us-east-1",
        "--port",
        &port.address().to_string(),
        "--quiet",
    ];
    let mut args = args.map(str::to_owned).to_vec();
    if let Some(Pem { cert, key, .. }) = certificate {
        args.extend(["--cert".to_owned(), text(cert.clone()), "--key".to_owned(), text(key.clone())]);
    }
    // Versions are in extended attributes. In a folder of their own they would not change together with an object.
    args.extend(["posix".to_owned(), text(folder.join("objects"))]);
    Program::start(&path(PROGRAM).join("versitygw"), &args, folder.join("log"))
}
