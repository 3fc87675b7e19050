//! `Content-Digest` and `Repr-Digest` (RFC 9530).
#![no_main]

use cloakroom_core::protocol::digest::{DigestError, format, parse, to_hex};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|value: &str| {
    let Ok(digest) = parse(value) else {
        let error = parse(value).expect_err("the same again");
        // If a header begins with a SHA-256 entry, the error is not that it has none.
        assert!(error != DigestError::NoSha256 || !value.starts_with("sha-256="), "{value:?}");
        return;
    };
    let printed = format(&digest);
    assert_eq!(parse(&printed), Ok(digest));
    assert_eq!(parse(&format!("sha-512=:AAAA:, {printed} ")), Ok(digest));
    let base64 = printed.trim_start_matches("sha-256=");
    assert!(value.contains(base64), "{value:?} was read as {printed}");
    // The last entry counts (RFC 8941, section 3.2).
    assert_eq!(parse(&format!("{value}, {}", format(&[7; 32]))), Ok([7; 32]));
    let hex = to_hex(&digest);
    assert!(hex.len() == 64 && hex.bytes().all(|digit| digit.is_ascii_hexdigit()));
});
