//! Client certificates that are sent as they are. The API server decides about them; rustls would take only those that
//! it can parse itself, which are of version 3, and `openssl x509 -req` makes version 1 unless it is told more.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, KeyProvider, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{Signer, SigningKey};
use rustls::{Error, SignatureAlgorithm, SignatureScheme};

/// Makes the clients of kube send any certificate. kube makes its TLS configuration itself, of this process's provider,
/// and rustls parses a client's certificate only to compare it with the key's public half.
pub(super) fn install() {
    let provider = CryptoProvider { key_provider: &WithoutPublicHalf, ..ring::default_provider() };
    // It is there from the second client on.
    let _ = provider.install_default();
}

/// Reads a private key, and says whether the certificate is of that key.
pub(super) fn belong_together(
    certificate: &CertificateDer<'_>,
    key: PrivateKeyDer<'static>,
) -> Result<bool, Error> {
    let key = ring::default_provider().key_provider.load_private_key(key)?;
    // A certificate has the public half in it as it stands, in whatever version it is (RFC 5280, section 4.1).
    let is_in_it = |public: &[u8]| memchr::memmem::find(certificate, public).is_some();
    Ok(key.public_key().is_none_or(|public| is_in_it(&public)))
}

#[derive(Debug)]
struct WithoutPublicHalf;

impl KeyProvider for WithoutPublicHalf {
    fn load_private_key(&self, key: PrivateKeyDer<'static>) -> Result<Arc<dyn SigningKey>, Error> {
        let key = ring::default_provider().key_provider.load_private_key(key)?;
        Ok(Arc::new(Unnamed(key)))
    }
}

/// A key that does not say what its public half is, so that nothing is compared with it.
#[derive(Debug)]
struct Unnamed(Arc<dyn SigningKey>);

impl SigningKey for Unnamed {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        self.0.choose_scheme(offered)
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.0.algorithm()
    }
}
