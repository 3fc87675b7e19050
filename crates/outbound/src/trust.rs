//! The certificates that a client accepts.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{VerifierBuilderError, WebPkiServerVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// The message if there are no root certificates to check a certificate against.
pub const NO_ROOTS: &str = "no trusted root certificates were found on this system";

/// Makes the usual checks, with one difference: it accepts a server whose certificate is itself one of the given ones.
/// Go and Java's trust managers accept this too, but webpki refuses a self-signed certificate that calls itself a CA
/// (`CaUsedAsEndEntity`). kubespark's `clientCertPem` was often such a certificate, and so is that of a small cluster's
/// API server.
#[derive(Debug)]
pub struct Verifier {
    trust: Trust,
    algorithms: WebPkiSupportedAlgorithms,
}

#[derive(Debug)]
enum Trust {
    Anybody,
    Certificates {
        /// `None` if there are no roots.
        usual: Option<Arc<WebPkiServerVerifier>>,
        given: Vec<CertificateDer<'static>>,
    },
}

impl Verifier {
    /// Trusts the system's roots and the given certificates.
    pub fn system_and(
        given: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, VerifierBuilderError> {
        Self::with_roots(system_roots(), given, provider)
    }

    /// Trusts only the given certificates.
    pub fn only(
        given: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, VerifierBuilderError> {
        Self::with_roots(RootCertStore::empty(), given, provider)
    }

    /// Trusts every server. It is for connections on which nothing secret is sent.
    pub fn anybody(provider: &Arc<CryptoProvider>) -> Self {
        Self { trust: Trust::Anybody, algorithms: provider.signature_verification_algorithms }
    }

    fn with_roots(
        mut roots: RootCertStore,
        given: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, VerifierBuilderError> {
        roots.add_parsable_certificates(given.iter().cloned());
        let usual = if roots.is_empty() {
            None
        } else {
            Some(WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build()?)
        };
        let trust = Trust::Certificates { usual, given };
        Ok(Self { trust, algorithms: provider.signature_verification_algorithms })
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

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Trust::Certificates { usual, given } = &self.trust else {
            return Ok(ServerCertVerified::assertion());
        };
        if given.iter().any(|given| given.as_ref() == end_entity.as_ref()) {
            rustls::client::verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
            return Ok(ServerCertVerified::assertion());
        }
        match usual {
            Some(usual) => usual
                .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
                .map_err(plain),
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

/// Replaces webpki's special error for a self-signed CA certificate by the usual one: the issuer is unknown.
fn plain(error: rustls::Error) -> rustls::Error {
    match error {
        rustls::Error::InvalidCertificate(CertificateError::Other(other))
            if other.to_string().contains("CaUsedAsEndEntity") =>
        {
            CertificateError::UnknownIssuer.into()
        }
        error => error,
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

    fn trusting(given: Vec<CertificateDer<'static>>) -> Verifier {
        Verifier::only(given, &Arc::new(rustls::crypto::ring::default_provider())).unwrap()
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
        verify(&trusting(vec![certificate.clone()]), &certificate, "staging.example").unwrap();
    }

    #[test]
    fn the_host_name_is_checked_even_then() {
        let certificate = self_signed_ca("staging.example");
        assert!(verify(&trusting(vec![certificate.clone()]), &certificate, "other.example").is_err());
    }

    #[test]
    fn another_self_signed_certificate_has_an_unknown_issuer() {
        let verifier = trusting(vec![self_signed_ca("staging.example")]);
        let refusal = verify(&verifier, &self_signed_ca("staging.example"), "staging.example").unwrap_err();
        assert_eq!(refusal, CertificateError::UnknownIssuer.into());
    }

    #[test]
    fn without_roots_every_certificate_is_refused_unless_all_are_trusted() {
        let refusal = verify(&trusting(Vec::new()), &self_signed_ca("a.example"), "a.example").unwrap_err();
        assert_eq!(refusal, rustls::Error::General(NO_ROOTS.to_owned()));
        let anybody = Verifier::anybody(&Arc::new(rustls::crypto::ring::default_provider()));
        verify(&anybody, &self_signed_ca("a.example"), "b.example").unwrap();
    }
}
