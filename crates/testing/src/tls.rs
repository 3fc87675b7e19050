//! Certificates for tests, made when needed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// PEM files of a CA and a certificate that it signed, or of a self-signed certificate.
pub struct Pem {
    pub ca: PathBuf,
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// A CA and a certificate for `names` that it signed.
pub fn signed_by_ca(folder: &Path, names: &[&str]) -> Pem {
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.distinguished_name.push(rcgen::DnType::CommonName, "cloakroom test CA");
    let ca_cert = ca.self_signed(&ca_key).unwrap();
    let issuer = Issuer::new(ca, ca_key);
    let key = KeyPair::generate().unwrap();
    let cert = params(names).signed_by(&key, &issuer).unwrap();
    write(folder, &ca_cert.pem(), &cert.pem(), &key.serialize_pem())
}

/// A self-signed certificate that says it is a CA, as `openssl req -x509` makes them.
pub fn self_signed(folder: &Path, names: &[&str]) -> Pem {
    self_signed_until(4096, folder, names)
}

/// The same, until the first day of this year.
pub fn self_signed_until(year: i32, folder: &Path, names: &[&str]) -> Pem {
    let key = KeyPair::generate().unwrap();
    let mut params = params(names);
    params.not_after = rcgen::date_time_ymd(year, 1, 1);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let cert = params.self_signed(&key).unwrap();
    write(folder, &cert.pem(), &cert.pem(), &key.serialize_pem())
}

/// A client configuration without trusted CAs, for clients that speak plain HTTP.
pub fn no_roots() -> ClientConfig {
    client_config(rustls::RootCertStore::empty())
}

/// A client configuration that trusts one CA.
pub fn trusting(ca: &Path) -> ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca).unwrap()).unwrap();
    client_config(roots)
}

fn client_config(roots: rustls::RootCertStore) -> ClientConfig {
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

fn params(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name.push(rcgen::DnType::CommonName, "cloakroom test");
    params
}

fn write(folder: &Path, ca: &str, cert: &str, key: &str) -> Pem {
    let pem = Pem { ca: folder.join("ca.pem"), cert: folder.join("cert.pem"), key: folder.join("key.pem") };
    for (path, text) in [(&pem.ca, ca), (&pem.cert, cert), (&pem.key, key)] {
        std::fs::write(path, text).unwrap();
    }
    pem
}

/// TLS with this certificate. If `clients` is given, clients must show a certificate that this CA signed.
pub fn server_config(pem: &Pem, clients: Option<&Path>) -> ServerConfig {
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

/// A client certificate as `openssl x509 -req` makes it by default, and its CA. It has no extensions, which came with
/// version 3.
pub mod of_version_1 {
    pub const CA: &str = include_str!("../fixtures/client-of-version-1/ca.pem");
    pub const CERTIFICATE: &str = include_str!("../fixtures/client-of-version-1/cert.pem");
    pub const KEY: &str = include_str!("../fixtures/client-of-version-1/key.pem");
}
