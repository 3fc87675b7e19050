//! `Range` headers. The input is the length of the content in eight bytes, then the header's value.
#![no_main]

use cloakroom_server::http::{RequestedRange, parse_range};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u64, &str)| {
    let (length, value) = input;
    // Edge cases occur at small lengths.
    for length in [length, length % 100] {
        let requested = parse_range(value, length);
        if let RequestedRange::Part(range) = &requested {
            assert!(range.start < range.end && range.end <= length, "{value:?} of {length}: {range:?}");
        }
        assert_eq!(requested, plain_reading(value, length), "{value:?} of {length}");
    }
});

/// RFC 9110, section 14.1.2, in numbers that no header can exceed.
fn plain_reading(value: &str, length: u64) -> RequestedRange {
    let Some((first, last)) = positions(value) else { return RequestedRange::Whole };
    let length = u128::from(length);
    let (from, to) = match (first, last) {
        (None, None) => return RequestedRange::Whole,
        (None, Some(suffix)) => (length.saturating_sub(suffix), length),
        (Some(first), None) => (first, length),
        (Some(first), Some(last)) if last < first => return RequestedRange::Whole,
        (Some(first), Some(last)) => (first, length.min(last + 1)),
    };
    if from >= to {
        return RequestedRange::Unsatisfiable;
    }
    RequestedRange::Part(
        u64::try_from(from).expect("below the length")..u64::try_from(to).expect("the length"),
    )
}

/// The numbers around the dash; beyond 64 bits they are all the same.
fn positions(value: &str) -> Option<(Option<u128>, Option<u128>)> {
    let (unit, set) = value.split_once('=')?;
    let (first, last) = set.trim().split_once('-')?;
    let number = |text: &str| match text {
        "" => Some(None),
        text if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            let digits = text.bytes().map(|digit| u128::from(digit - b'0'));
            Some(Some(digits.fold(0, |sum, digit| (sum * 10 + digit).min(u128::from(u64::MAX)))))
        }
        _ => None,
    };
    unit.trim().eq_ignore_ascii_case("bytes").then_some(())?;
    Some((number(first)?, number(last)?))
}
