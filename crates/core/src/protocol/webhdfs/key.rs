//! Upload keys: who has one may upload for its namespace.

use std::fmt;

use sha2::{Digest as _, Sha256};

use super::super::digest;
use crate::resource::is_dns_label;

/// The least number of characters behind [`UploadKey::BEGINNING`]. A shorter key could be guessed.
const SHORTEST: usize = 32;

/// How a line begins that has the hash of a key.
const HASH: &str = "sha256:";

/// A key, as it stands in a path.
#[derive(Clone, PartialEq, Eq)]
pub struct UploadKey(String);

impl UploadKey {
    /// How each key begins. Spark's redaction hides what has this word.
    pub const BEGINNING: &str = "token-";

    /// How the name of a header begins that stands for a key, in lower case. The key in hexadecimal digits follows.
    pub const HEADER: &str = "x-cloakroom-key-";

    /// Accepts `token-` and 32 or more letters, digits, `-` and `_`; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let random = text.strip_prefix(Self::BEGINNING)?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (random.len() >= SHORTEST && random.bytes().all(is_plain)).then(|| Self(text.to_owned()))
    }

    /// Reads the name of a header that stands for a key: Hadoop's client can be told to send a header of any name, but not of
    /// any value. The key is in hexadecimal digits, because names of headers have no case.
    pub fn from_header_name(name: &str) -> Option<Self> {
        let key = digest::bytes_of_hex(name.strip_prefix(Self::HEADER)?)?;
        Self::parse(&String::from_utf8(key).ok()?)
    }

    /// The text, to be compared with known keys.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// Hidden, because it gives the right to upload.
impl fmt::Debug for UploadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UploadKey(…)")
    }
}

/// A line of a file with keys: `NAMESPACE KEY`, or `NAMESPACE sha256:HEX` with the hash of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyLine<'a> {
    /// For which the key is good.
    pub namespace: &'a str,
    /// SHA-256 of the key.
    pub sha256: [u8; 32],
}

/// A line that has another form. The error holds no part of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a line is NAMESPACE token-…, with {SHORTEST} or more of the characters A-Z a-z 0-9 _ - behind the first hyphen, or \
     NAMESPACE sha256:HEX with the SHA-256 of such a key in 64 digits"
)]
pub struct KeyLineError;

impl<'a> KeyLine<'a> {
    /// Reads a line; `None` if it is blank.
    pub fn parse(line: &'a str) -> Result<Option<Self>, KeyLineError> {
        let mut words = line.split_whitespace();
        let Some(namespace) = words.next() else { return Ok(None) };
        let key = words.next().filter(|_| words.next().is_none() && is_dns_label(namespace));
        let sha256 = key.and_then(|key| match key.strip_prefix(HASH) {
            Some(hex) => digest::from_hex(hex),
            None => Some(Sha256::digest(UploadKey::parse(key)?.expose()).into()),
        });
        sha256.map(|sha256| Some(Self { namespace, sha256 })).ok_or(KeyLineError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "token-0123456789abcdefghijABCDEFGHIJ_-";

    #[test]
    fn a_key_is_long_and_has_only_plain_characters() {
        assert_eq!(UploadKey::parse(KEY).unwrap().expose(), KEY);
        for text in
            ["", "token-", &KEY[6..], &KEY[..37], &format!("{KEY}."), &format!("{KEY}é"), &KEY.to_uppercase()]
        {
            assert_eq!(UploadKey::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_name_of_a_header_can_stand_for_a_key() {
        let hex = "746f6b656e2d303132333435363738396162636465666768696a4142434445464748494a5f2d";
        let read = |name: &str| UploadKey::from_header_name(name);
        assert_eq!(read(&format!("x-cloakroom-key-{hex}")).unwrap().expose(), KEY);
        for name in [
            "x-cloakroom-key-",
            "x-cloakroom-key-00",
            &format!("x-cloakroom-key-{hex}0"),
            &format!("x-{hex}"),
            "x-cloakroom-key-é",
        ] {
            assert_eq!(read(name), None, "{name}");
        }
    }

    #[test]
    fn a_line_has_a_namespace_and_a_key_or_its_hash() {
        let sha256: [u8; 32] = Sha256::digest(KEY).into();
        let expected = Ok(Some(KeyLine { namespace: "spark", sha256 }));
        assert_eq!(KeyLine::parse(&format!(" spark\t{KEY}\r")), expected);
        assert_eq!(KeyLine::parse(&format!("spark sha256:{}", digest::to_hex(&sha256))), expected);
        assert_eq!(KeyLine::parse("  "), Ok(None));
        for line in [
            "spark",
            KEY,
            "spark token-short",
            "spark sha256:00",
            &format!("Spark {KEY}"),
            &format!("a {KEY} b"),
        ] {
            assert_eq!(KeyLine::parse(line), Err(KeyLineError), "{line}");
        }
    }
}
