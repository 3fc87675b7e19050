//! Client certificates that are sent unparsed, because the API server is what decides about them. rustls by itself
//! accepts only certificates of version 3, but `openssl x509 -req` makes version 1 by default.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, KeyProvider, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{Signer, SigningKey};
use rustls::{Error, SignatureAlgorithm, SignatureScheme};

/// Lets a client send any certificate. rustls parses a client's certificate only to compare it with the public half of
/// the key, and the keys of this provider have no public half.
pub(super) fn provider() -> CryptoProvider {
    CryptoProvider { key_provider: &WithoutPublicHalf, ..ring::default_provider() }
}

/// Loads a private key, and checks whether the certificate belongs to it.
pub(super) fn belong_together(
    certificate: &CertificateDer<'_>,
    key: PrivateKeyDer<'static>,
) -> Result<bool, Error> {
    let key = ring::default_provider().key_provider.load_private_key(key)?;
    // A certificate of any version contains the bytes of its public key unchanged (RFC 5280, section 4.1).
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

/// A key that hides its public half, so that rustls compares nothing with it.
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
