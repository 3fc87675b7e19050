//! The certificates that clients trust: the system's roots and given PEM files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::pem::{self, PemError};

/// The message if the system has no root certificates to check a certificate against.
pub(super) const NO_ROOTS: &str = "no trusted root certificates were found on this system";

/// The reason why a TLS configuration cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// A PEM file is not usable.
    #[error(transparent)]
    Pem(#[from] PemError),
    /// rustls refused its settings.
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
    /// The certificate verifier could not be built.
    #[error("cannot set up TLS")]
    Verifier(#[from] rustls::client::VerifierBuilderError),
}

/// Allows TLS 1.2 and 1.3 and only HTTP/1.1. Trusts the system's roots and the given certificates.
pub(super) fn client_config(given: &TrustedCertificates) -> Result<ClientConfig, TrustError> {
    config(system_roots(), given.0.clone())
}

/// Trusted certificates from PEM files, without any keys of these files. Each one was checked to be usable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedCertificates(Vec<CertificateDer<'static>>);

impl TrustedCertificates {
    /// Reads the certificates of all `files`.
    pub fn read(files: &[PathBuf]) -> Result<Self, PemError> {
        let mut all = Vec::new();
        for path in files {
            let certificates = pem::read_certificates(path)?;
            check_anchors(path, &certificates)?;
            all.extend(certificates);
        }
        Ok(Self(all))
    }

    /// The certificates of the file at `path`, which was read before.
    pub fn of_file(bytes: &[u8], path: &Path) -> Result<Self, PemError> {
        let certificates = pem::certificates_of(bytes, path)?;
        check_anchors(path, &certificates)?;
        Ok(Self(certificates))
    }

    /// The certificates as PEM.
    #[must_use]
    pub fn to_pem(&self) -> String {
        pem::to_pem(&self.0)
    }
}

/// The system's roots. There may be none, which matters only for an `https` address.
fn system_roots() -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::debug!(%error, "some of the system's root certificates cannot be read");
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    roots
}

fn check_anchors(path: &Path, certificates: &[CertificateDer<'static>]) -> Result<(), PemError> {
    let mut roots = RootCertStore::empty();
    certificates.iter().try_for_each(|certificate| {
        roots
            .add(certificate.clone())
            .map_err(|error| PemError::Malformed { path: path.to_owned(), why: error.to_string() })
    })
}

fn config(mut roots: RootCertStore, given: Vec<CertificateDer<'static>>) -> Result<ClientConfig, TrustError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    roots.add_parsable_certificates(given.iter().cloned());
    let verifier = Verifier::new(roots, given, &provider)?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Makes the usual checks, with one difference: it accepts a server whose certificate is itself one of the given ones.
/// Java's trust managers accept this too, but webpki refuses a self-signed certificate that calls itself a CA
/// (`CaUsedAsEndEntity`). kubespark's `clientCertPem` was often such a certificate.
#[derive(Debug)]
struct Verifier {
    usual: Option<Arc<WebPkiServerVerifier>>,
    given: Vec<CertificateDer<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    fn new(
        roots: RootCertStore,
        given: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, TrustError> {
        let usual = if roots.is_empty() {
            None
        } else {
            Some(WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build()?)
        };
        Ok(Self { usual, given, algorithms: provider.signature_verification_algorithms })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.given.iter().any(|given| given.as_ref() == end_entity.as_ref()) {
            rustls::client::verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
            return Ok(ServerCertVerified::assertion());
        }
        match &self.usual {
            Some(usual) => {
                usual.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            }
            None => Err(rustls::Error::General(NO_ROOTS.to_owned())),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

    use super::*;

    fn self_signed_ca(name: &str) -> CertificateDer<'static> {
        let mut parameters = CertificateParams::new([name.to_owned()]).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    fn verifier(given: Vec<CertificateDer<'static>>) -> Verifier {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(given.iter().cloned());
        Verifier::new(roots, given, &provider).unwrap()
    }

    fn verify(
        verifier: &Verifier,
        certificate: &CertificateDer<'_>,
        host: &str,
    ) -> Result<(), rustls::Error> {
        let host = ServerName::try_from(host.to_owned()).unwrap();
        verifier.verify_server_cert(certificate, &[], &host, &[], UnixTime::now()).map(|_| ())
    }

    #[test]
    fn a_given_self_signed_ca_certificate_is_accepted_from_the_server_itself() {
        let certificate = self_signed_ca("staging.example");
        let verifier = verifier(vec![certificate.clone()]);
        verify(&verifier, &certificate, "staging.example").unwrap();
    }

    #[test]
    fn the_host_name_is_checked_even_then() {
        let certificate = self_signed_ca("staging.example");
        let verifier = verifier(vec![certificate.clone()]);
        assert!(verify(&verifier, &certificate, "other.example").is_err());
    }

    #[test]
    fn another_self_signed_certificate_is_refused() {
        let verifier = verifier(vec![self_signed_ca("staging.example")]);
        assert!(verify(&verifier, &self_signed_ca("staging.example"), "staging.example").is_err());
    }

    #[test]
    fn without_any_root_the_configuration_is_built_and_every_certificate_refused() {
        config(RootCertStore::empty(), Vec::new()).unwrap();
        let refusal = verify(&verifier(Vec::new()), &self_signed_ca("a.example"), "a.example").unwrap_err();
        assert_eq!(refusal, rustls::Error::General(NO_ROOTS.to_owned()));
    }
}
