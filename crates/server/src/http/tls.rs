//! TLS for the server, with PEM files that are read again when they change.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use cloakroom_core::lock::lock;
use cloakroom_core::reload::{Reload, Seen};
use cloakroom_core::text::chain;

/// The shortest time between two checks whether the files have changed. They are checked at a handshake.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The server's TLS settings, with a certificate that is reloaded. Clones share it.
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
        what: &'static str,
        path: PathBuf,
        /// The error of the operating system, or of the PEM form.
        #[source]
        source: rustls::pki_types::pem::Error,
    },
    /// The file has no certificate.
    #[error("there is no certificate in {}: it must have the server's certificate first, then the chain", path.display())]
    NoCertificate { path: PathBuf },
    /// The kind of the key is not supported, or the key does not belong to the certificate.
    #[error("the private key in {} does not fit the certificate in {}", key.display(), cert.display())]
    Mismatch {
        key: PathBuf,
        cert: PathBuf,
        #[source]
        source: rustls::Error,
    },
    /// The TLS library lacks a protocol version, which means that the build is broken.
    #[error("TLS cannot be set up")]
    Setup(#[source] rustls::Error),
}

impl ServerTls {
    /// Reads both files. Clients may use TLS 1.2 and 1.3, and HTTP/1.1.
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

    /// The file of the certificate.
    pub fn certificate_file(&self) -> &Path {
        &self.certificate.cert
    }

    /// Reads both files again, even if they have not changed. It blocks.
    pub fn read_again(&self) {
        let mut files = lock(&self.certificate.files);
        let now = files.look_anew();
        self.certificate.renew(&mut files, now);
    }

    /// When the certificate ends, in seconds since 1970, after a look whether the files have changed. `None` if it does not
    /// say.
    pub(super) fn ends(&self) -> Option<u64> {
        self.certificate.refresh();
        let current = self.certificate.current.read().unwrap_or_else(PoisonError::into_inner);
        let (_, parsed) = X509Certificate::from_der(current.cert.first()?).ok()?;
        u64::try_from(parsed.validity().not_after.timestamp()).ok()
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
        let mut files = lock(&self.files);
        if !files.is_due(LOOK_AGAIN) {
            return;
        }
        let now = files.look();
        if files.has_changed(&now) {
            self.renew(&mut files, now);
        }
    }

    /// Reads both files. If they cannot be used, for example half-written ones, the old certificate stays.
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
