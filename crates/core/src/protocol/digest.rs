//! `Content-Digest` and `Repr-Digest` (RFC 9530), with `sha-256` as the only algorithm.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// A digest header that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DigestError {
    /// The header has only other algorithms.
    #[error("the digest header has no sha-256 entry: write sha-256=:BASE64: (RFC 9530)")]
    NoSha256,
    /// The header is not in the form of the RFC.
    #[error(
        "the digest header is malformed: write sha-256=:BASE64:, with 44 characters of base64 (RFC 9530)"
    )]
    Malformed,
}

/// The header's value for a SHA-256 digest.
pub fn format(sha256: &[u8; 32]) -> String {
    format!("sha-256=:{}:", STANDARD.encode(sha256))
}

/// Reads the `sha-256` entry from the value of a header, which may list several algorithms (a dictionary of byte
/// sequences, RFC 8941). If there are several `sha-256` entries, the last one counts, as the RFC says.
pub fn parse(value: &str) -> Result<[u8; 32], DigestError> {
    let mut found = Err(DigestError::NoSha256);
    for entry in value.split(',') {
        let (algorithm, digest) = entry.trim().split_once('=').ok_or(DigestError::Malformed)?;
        if algorithm.trim() == "sha-256" {
            found = Ok(decode(digest.trim())?);
        }
    }
    found
}

/// Sixty-four hexadecimal digits, as `sha256sum` prints them.
pub fn to_hex(sha256: &[u8; 32]) -> String {
    use std::fmt::Write as _;
    sha256.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Reads what [`to_hex`] writes, with letters of either case. `None` for any other text.
pub fn from_hex(text: &str) -> Option<[u8; 32]> {
    bytes_of_hex(text)?.try_into().ok()
}

/// The bytes that are written as two hexadecimal digits each.
pub(super) fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |c: char| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let digits: Vec<u8> = text.chars().map(digit).collect::<Option<_>>()?;
    let (pairs, odd) = digits.as_chunks::<2>();
    odd.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

fn decode(text: &str) -> Result<[u8; 32], DigestError> {
    let base64 =
        text.strip_prefix(':').and_then(|text| text.strip_suffix(':')).ok_or(DigestError::Malformed)?;
    let bytes = STANDARD.decode(base64).map_err(|_| DigestError::Malformed)?;
    bytes.try_into().map_err(|_| DigestError::Malformed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_digest_reads_back() {
        let digest = [7; 32];
        assert_eq!(parse(&format(&digest)), Ok(digest));
        assert_eq!(parse(&format!("sha-512=:AAAA:, {}", format(&digest))), Ok(digest));
    }

    #[test]
    fn other_algorithms_and_malformed_values_are_told_apart() {
        assert_eq!(parse("sha-512=:AAAA:"), Err(DigestError::NoSha256));
        for value in ["", "sha-256", "sha-256=abc", "sha-256=:abc:", "sha-256=:AAAA:"] {
            assert_eq!(parse(value), Err(DigestError::Malformed), "{value}");
        }
    }

    proptest! {
        #[test]
        fn every_digest_reads_back_wherever_it_stands_and_the_last_one_counts(
            first: [u8; 32],
            last: [u8; 32],
            others in prop::collection::vec("(sha-512|unixsum|x)=[:A-Za-z0-9+/]{0,20}", 0..3),
        ) {
            prop_assert_eq!(parse(&format(&last)), Ok(last));
            let mut entries = others.clone();
            entries.insert(others.len() / 2, format(&first));
            prop_assert_eq!(parse(&entries.join(", ")), Ok(first));
            entries.push(format(&last));
            prop_assert_eq!(parse(&entries.join(",")), Ok(last));
            let hex = to_hex(&last);
            prop_assert_eq!(from_hex(&hex), Some(last));
            prop_assert_eq!(from_hex(&hex.to_uppercase()), Some(last));
            prop_assert_eq!(from_hex(&hex[1..]), None);
            prop_assert_eq!(from_hex(&format!("{hex}0")), None);
            prop_assert_eq!(from_hex(&hex.replacen(|_| true, "g", 1)), None);
        }

        #[test]
        fn a_digest_that_is_read_from_a_damaged_header_is_written_in_it(digest: [u8; 32], at in 0_usize..54, byte in b' '..=b'~') {
            let mut value = format(&digest).into_bytes();
            value[at] = byte;
            let value = String::from_utf8(value).unwrap();
            if let Ok(read) = parse(&value) {
                prop_assert!(value.trim().ends_with(format(&read).trim_start_matches("sha-256=")), "{}", value);
            }
        }
    }
}
