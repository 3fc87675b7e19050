//! The secret half of a ticket, and the hash that the ledger keeps of it.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use rand::CryptoRng;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Gives the right to download the bundle. This server makes secrets of 256 random bits, as 43 URL-safe characters. A
/// client may hold any text that another server made: kubespark's secrets have about 1,400 characters.
#[derive(Clone, PartialEq, Eq)]
pub struct ResourceSecret(String);

impl ResourceSecret {
    /// Makes a new secret from 256 bits of `random`, which must be a cryptographic generator.
    pub fn generate(random: &mut impl CryptoRng) -> Self {
        let mut bytes = [0; 32];
        random.fill_bytes(&mut bytes);
        Self(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Takes the text of a ticket as a client presented it.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for the one answer and the one header that carry it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The hash that the ledger keeps.
    pub fn hash(&self) -> SecretHash {
        SecretHash(Sha256::digest(self.0.as_bytes()).into())
    }
}

/// Shows a placeholder in place of the secret.
impl fmt::Debug for ResourceSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResourceSecret(…)")
    }
}

/// SHA-256 of a resource secret. A fast hash is enough, because the secret has 256 bits of entropy.
#[derive(Clone, Copy)]
pub struct SecretHash([u8; 32]);

impl SecretHash {
    /// Takes a stored hash; `None` unless it has 32 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The 32 bytes to store.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Whether `presented` is the secret. The time that this takes does not depend on where the two differ.
    pub fn matches(&self, presented: &ResourceSecret) -> bool {
        self.0.ct_eq(&presented.hash().0).into()
    }
}

/// Shows a placeholder in place of the hash.
impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash(…)")
    }
}

/// A read key, as the ledger has it: a secret that gives the right to download one resource for a time.
#[derive(Debug, Clone, Copy)]
pub struct ReadKey {
    /// Hash of the key; the key itself is never stored.
    pub hash: SecretHash,
    /// When the right ends.
    pub ends_at: Timestamp,
}

impl ReadKey {
    /// Whether `presented` is the key, and has not ended. The time that this takes does not depend on where the two differ.
    pub fn opens(&self, presented: &ResourceSecret, now: Timestamp) -> bool {
        self.hash.matches(presented) && now < self.ends_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_43_url_safe_characters_and_matches_only_its_own_hash() {
        let secret = ResourceSecret::generate(&mut rand::rng());
        let other = ResourceSecret::generate(&mut rand::rng());
        assert_eq!(secret.expose().len(), 43);
        assert!(secret.expose().chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_'));
        assert!(secret.hash().matches(&secret));
        assert!(!secret.hash().matches(&other));
    }

    // Invariant: no debug output shows secrets or hashes.
    #[test]
    fn debug_output_shows_neither_secret_nor_hash() {
        let secret = ResourceSecret::from_text("hunter2");
        assert_eq!(format!("{secret:?} {:?}", secret.hash()), "ResourceSecret(…) SecretHash(…)");
    }
}
