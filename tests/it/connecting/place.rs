//! A folder with credentials, and servers that look at them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cloakroom_cluster::{Access, ApiFailure, ApiServer, Timeouts};
use cloakroom_spark::{ApiServerProperties, Properties, StagingServerProperties};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tempfile::TempDir;

use crate::support::scripted::{Answer, Scripted};
use crate::support::tls::{self, Pem};

pub struct Place(TempDir);

impl Place {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Puts a file in the place of another, as Kubernetes does with what it mounts.
    pub fn replace(&self, name: &str, text: &str) {
        let new = self.write(&format!("{name}.new"), text);
        std::fs::rename(new, self.path(name)).unwrap();
    }

    /// A mounted service account: the folder `account`.
    pub fn account(&self, token: &str, ca: Option<&Path>) {
        self.write("account/token", token);
        if let Some(ca) = ca {
            std::fs::copy(ca, self.path("account/ca.crt")).unwrap();
        }
    }

    /// A certificate for this machine, signed by a CA of its own, in a folder of this name.
    pub fn certificate(&self, name: &str) -> Pem {
        std::fs::create_dir_all(self.path(name)).unwrap();
        tls::signed_by_ca(&self.path(name), &["127.0.0.1", "localhost"])
    }

    /// A server over plain HTTP on this machine, without credentials.
    pub fn in_clear(&self, server: &Scripted) -> Access {
        let properties = ApiServerProperties { use_service_account_credentials: false, ..properties() };
        Access::Properties { url: server.url(), properties, folder: self.path("account") }
    }
}

/// No property is set.
pub fn properties() -> ApiServerProperties {
    parsed("")
}

/// The token stands in the properties file.
pub fn with_token(token: &str) -> ApiServerProperties {
    parsed(&format!("spark.kubernetes.authenticate.resourceStagingServer.oauthToken={token}\n"))
}

fn parsed(text: &str) -> ApiServerProperties {
    let properties = Properties::parse(Path::new("server.properties"), text).unwrap();
    StagingServerProperties::from(&properties).unwrap().api_server
}

/// Files are looked at again before every call.
pub fn quick() -> Timeouts {
    Timeouts { look_again: Duration::ZERO, ..Timeouts::default() }
}

pub fn answer(status: u16, body: &str) -> Answer {
    Answer::new(status, body).header("content-type", "application/json")
}

/// Asks for the version: the simplest call there is.
pub async fn version(server: &ApiServer) -> Result<(), ApiFailure> {
    let client = server.client();
    server.call(client.apiserver_version()).await.map(drop)
}

/// TLS with this certificate; clients must show one that `clients` signed, if that is given.
pub fn tls_config(pem: &Pem, clients: Option<&Path>) -> ServerConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(ca) => {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_file(ca).unwrap()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let chain = vec![CertificateDer::from_pem_file(&pem.cert).unwrap()];
    builder.with_single_cert(chain, PrivateKeyDer::from_pem_file(&pem.key).unwrap()).unwrap()
}
