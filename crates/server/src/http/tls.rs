//! TLS for the server: PEM files that are read again when they change.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use cloakroom_core::reload::{Reload, Seen};
use cloakroom_core::text::chain;

/// The files are looked at again at a handshake, at most this often.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The server's certificate and key.
#[derive(Debug, Clone)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
    certificate: Arc<ReloadingCertificate>,
}

/// The certificate or its key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ServerTlsError {
    /// A file cannot be read as PEM.
    #[error("cannot read a {what} in PEM form from {}", path.display())]
    Unreadable {
        /// Certificate or private key.
        what: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: rustls::pki_types::pem::Error,
    },
    /// No certificate in the file.
    #[error("there is no certificate in {}: it must have the server's certificate first, then the chain", path.display())]
    NoCertificate {
        /// Which file.
        path: PathBuf,
    },
    /// The key is of no supported kind, or does not belong to the certificate.
    #[error("the private key in {} does not fit the certificate in {}", key.display(), cert.display())]
    Mismatch {
        /// The key's file.
        key: PathBuf,
        /// The certificate's file.
        cert: PathBuf,
        /// Why.
        #[source]
        source: rustls::Error,
    },
    /// The protocol versions are not available: the build is broken.
    #[error("TLS cannot be set up")]
    Setup(#[source] rustls::Error),
}

impl ServerTls {
    /// Reads both files; TLS 1.2 and 1.3, HTTP/1.1.
    pub fn open(cert: &Path, key: &Path) -> Result<Self, ServerTlsError> {
        let certificate = Arc::new(ReloadingCertificate::open(cert, key)?);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(ServerTlsError::Setup)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&certificate) as _);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config), certificate })
    }

    /// Reads both files again, changed or not. It blocks.
    pub fn read_again(&self) {
        let mut files = self.certificate.files.lock().unwrap_or_else(PoisonError::into_inner);
        let now = files.look_anew();
        self.certificate.renew(&mut files, now);
    }

    pub(super) fn acceptor(&self) -> tokio_rustls::TlsAcceptor {
        Arc::clone(&self.config).into()
    }
}

#[derive(Debug)]
struct ReloadingCertificate {
    cert: PathBuf,
    key: PathBuf,
    current: RwLock<Arc<CertifiedKey>>,
    files: Mutex<Reload>,
}

impl ReloadingCertificate {
    fn open(cert: &Path, key: &Path) -> Result<Self, ServerTlsError> {
        let (certificate, seen) = read(cert, key)?;
        let (current, files) = (RwLock::new(Arc::new(certificate)), Mutex::new(Reload::new(seen)));
        Ok(Self { cert: cert.to_owned(), key: key.to_owned(), current, files })
    }

    fn refresh(&self) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if !files.is_due(LOOK_AGAIN) {
            return;
        }
        let now = files.look();
        if files.has_changed(&now) {
            self.renew(&mut files, now);
        }
    }

    /// Files that cannot be used (half written, say) leave the certificate as it was.
    fn renew(&self, files: &mut Reload, now: Seen) {
        match files.take(now, read(&self.cert, &self.key)) {
            Some(Ok(certificate)) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(certificate);
                tracing::info!(path = %self.cert.display(), "read the TLS certificate again");
            }
            Some(Err(error)) => {
                tracing::warn!(error = %chain(&error), "the TLS certificate stays as it was");
            }
            None => {}
        }
    }
}

impl ResolvesServerCert for ReloadingCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.refresh();
        Some(Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn read(cert: &Path, key: &Path) -> Result<(CertifiedKey, Seen), ServerTlsError> {
    let seen = Seen::from_iter([cert, key]);
    let unreadable = |what, path: &Path| {
        let path = path.to_owned();
        move |source| ServerTlsError::Unreadable { what, path, source }
    };
    let chain = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(unreadable("certificate", cert))?;
    if chain.is_empty() {
        return Err(ServerTlsError::NoCertificate { path: cert.to_owned() });
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(unreadable("private key", key))?;
    let certified = CertifiedKey::from_der(chain, private, &rustls::crypto::ring::default_provider());
    let mismatch = |source| ServerTlsError::Mismatch { key: key.to_owned(), cert: cert.to_owned(), source };
    Ok((certified.map_err(mismatch)?, seen))
}
