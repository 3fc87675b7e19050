//! The credentials of a client of the API server, and the CAs that it trusts. Certificates and keys are checked before a
//! client is built with them.

use kube::config::AuthInfo;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::client_keys::belong_together;
use super::connect_error::ConnectError;
use super::files::Content;
use super::plugin::Plugin;

/// The credentials that a client shows to the API server.
#[derive(Default)]
pub(super) struct ClientIdentity {
    /// The token, or user name and password, and who is impersonated.
    pub(super) auth: AuthInfo,
    pub(super) certificate: Option<ClientCertificate>,
    /// The program that gives a token or a certificate.
    pub(super) plugin: Option<Plugin>,
    /// The setting with the secret that is sent along; `None` if no secret is sent. A certificate is none: its key stays
    /// here.
    pub(super) secret: Option<String>,
}

/// A client certificate with its chain, and its key.
pub(super) struct ClientCertificate {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
}

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

impl ClientCertificate {
    /// Reads a client certificate and its key, which must belong together. Whether the certificate is valid is left to
    /// the API server.
    pub(super) fn read(certificate: &Content, key: &Content) -> Result<Self, ConnectError> {
        let chain = certificates(certificate)?;
        let private = PrivateKeyDer::from_pem_slice(&key.bytes)
            .map_err(|_| key.refuse("has no private key in PEM form (without a password)"))?;
        let fits = belong_together(&chain[0], private.clone_key())
            .map_err(|error| key.refuse(format!("has a private key that cannot be used: {error}")))?;
        if !fits {
            return Err(key.refuse(format!("does not fit the certificate in {}", certificate.place)));
        }
        Ok(Self { chain, key: private })
    }
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
