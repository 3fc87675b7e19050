//! Certificates and keys, which are checked before a client is built with them.

use kube::config::AuthInfo;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::client_keys::belong_together;
use super::connect_error::ConnectError;
use super::files::Content;

/// The CA certificates in a PEM file, as DER. There is at least one.
pub(super) fn roots(content: &Content) -> Result<Vec<Vec<u8>>, ConnectError> {
    let mut store = RootCertStore::empty();
    let certificates = certificates(content)?;
    for certificate in &certificates {
        store
            .add(certificate.clone())
            .map_err(|error| content.refuse(format!("has a certificate that cannot be trusted: {error}")))?;
    }
    Ok(certificates.into_iter().map(|certificate| certificate.to_vec()).collect())
}

/// Puts a client certificate and its key into `auth`, if they belong together. Whether the certificate is valid is left
/// to the API server.
pub(super) fn present(auth: &mut AuthInfo, certificate: &Content, key: &Content) -> Result<(), ConnectError> {
    let chain = certificates(certificate)?;
    let private = PrivateKeyDer::from_pem_slice(&key.bytes)
        .map_err(|_| key.refuse("has no private key in PEM form (without a password)"))?;
    let fits = belong_together(&chain[0], private)
        .map_err(|error| key.refuse(format!("has a private key that cannot be used: {error}")))?;
    if !fits {
        return Err(key.refuse(format!("does not fit the certificate in {}", certificate.place)));
    }
    auth.client_certificate = None;
    auth.client_certificate_data = Some(STANDARD.encode(&certificate.bytes));
    auth.client_key = None;
    auth.client_key_data = Some(STANDARD.encode(&key.bytes).into());
    Ok(())
}

fn certificates(content: &Content) -> Result<Vec<CertificateDer<'static>>, ConnectError> {
    let certificates = CertificateDer::pem_slice_iter(&content.bytes)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| content.refuse(format!("has a certificate that cannot be read: {error}")))?;
    if certificates.is_empty() {
        return Err(content.refuse("has no certificate in PEM form (“-----BEGIN CERTIFICATE-----”)"));
    }
    Ok(certificates)
}
