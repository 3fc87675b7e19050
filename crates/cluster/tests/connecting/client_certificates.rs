//! Client certificates that rustls could not parse: they are sent, and the server decides about them.

use std::sync::{Arc, Mutex};

use cloakroom_cluster::{Access, ApiServer, Credentials};
use cloakroom_testing::scripted::Scripted;
use cloakroom_testing::tls::of_version_1::{CERTIFICATE, KEY};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme};

use super::folder::{CredentialFolder, answer, ca, certificate, quick, version};
use super::refused;

fn access(folder: &CredentialFolder, url: &str) -> Access {
    let of_client = certificate(folder.path("client.pem"), folder.path("client.key"));
    let credentials = Credentials { ca_cert: ca(folder.path("server/ca.pem")).ca_cert, ..of_client };
    folder.access_without_account(url, credentials)
}

#[tokio::test]
async fn a_client_certificate_of_version_1_is_sent_as_it_is() {
    let folder = CredentialFolder::new();
    let pem = folder.certificate("server");
    let shown = Arc::new(Shown::default());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(Arc::clone(&shown) as Arc<dyn ClientCertVerifier>)
        .with_single_cert(
            vec![CertificateDer::from_pem_file(&pem.cert).unwrap()],
            PrivateKeyDer::from_pem_file(&pem.key).unwrap(),
        )
        .unwrap();
    let server = Scripted::start_tls(config, |_, _| answer(200, "{}").into()).await;
    folder.write("client.pem", CERTIFICATE);
    folder.write("client.key", KEY);
    version(&ApiServer::connect_with(&access(&folder, &server.url()), quick()).unwrap()).await.unwrap();
    let sent = shown.0.lock().unwrap().clone();
    assert_eq!(sent, [CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap().to_vec()]);
}

#[tokio::test]
async fn a_key_that_is_not_of_the_certificate_is_refused_whatever_its_version() {
    let folder = CredentialFolder::new();
    let pem = folder.certificate("server");
    folder.write("client.pem", CERTIFICATE);
    folder.write("client.key", &std::fs::read_to_string(&pem.key).unwrap());
    let said = refused(&access(&folder, "https://192.0.2.1"));
    assert!(said.contains("clientKeyFile") && said.contains("does not fit the certificate in"), "{said}");
}

/// Takes any certificate, and remembers it: webpki would parse it.
#[derive(Debug, Default)]
struct Shown(Mutex<Vec<Vec<u8>>>);

impl ClientCertVerifier for Shown {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.0.lock().unwrap().push(certificate.to_vec());
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}
