//! The certificates that clients trust: the system's roots and given PEM files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

use crate::pem;
use crate::trust::Verifier;

pub use crate::pem::{PemError, read_certificates};

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
pub fn client_config(given: &TrustedCertificates) -> Result<ClientConfig, TrustError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Verifier::system_and(given.0.clone(), &provider)?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
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
    pub fn to_pem(&self) -> String {
        pem::to_pem(&self.0)
    }
}

fn check_anchors(path: &Path, certificates: &[CertificateDer<'static>]) -> Result<(), PemError> {
    let mut roots = RootCertStore::empty();
    certificates.iter().try_for_each(|certificate| {
        roots
            .add(certificate.clone())
            .map_err(|error| PemError::Malformed { path: path.to_owned(), why: error.to_string() })
    })
}
