//! `Range` (RFC 9110, section 14), as far as resumed downloads need it.

use std::ops::Range;

/// The part that a `Range` header asks for, in a representation of known length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requested {
    /// There is no range, or one that a server may ignore: another unit, several ranges, a malformed one.
    Whole,
    /// The header asks for these bytes.
    Part(Range<u64>),
    /// The header asks only for bytes that do not exist.
    Unsatisfiable,
}

/// Parses the header's value; `length` is that of the representation in bytes. A server may ignore a `Range` that it
/// does not support (section 14.2).
pub fn parse(value: &str, length: u64) -> Requested {
    let Some((unit, set)) = value.split_once('=') else { return Requested::Whole };
    if !unit.trim().eq_ignore_ascii_case("bytes") || set.contains(',') {
        return Requested::Whole;
    }
    let Some((first, last)) = set.trim().split_once('-') else { return Requested::Whole };
    match (number(first), number(last)) {
        (Number::Absent, Number::Given(suffix)) => {
            part(length.saturating_sub(suffix), length, length, suffix > 0)
        }
        (Number::Given(first), Number::Absent) => part(first, length, length, true),
        (Number::Given(first), Number::Given(last)) if first <= last => {
            part(first, last.saturating_add(1).min(length), length, true)
        }
        _ => Requested::Whole,
    }
}

fn part(from: u64, to: u64, length: u64, is_some: bool) -> Requested {
    if is_some && from < length { Requested::Part(from..to) } else { Requested::Unsatisfiable }
}

enum Number {
    Absent,
    Given(u64),
    Malformed,
}

/// Parses a number that has only digits. A number beyond 64 bits is larger than any length, so `u64::MAX` stands for
/// it.
fn number(text: &str) -> Number {
    if text.is_empty() {
        Number::Absent
    } else if text.bytes().all(|byte| byte.is_ascii_digit()) {
        Number::Given(text.parse().unwrap_or(u64::MAX))
    } else {
        Number::Malformed
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Requested::{Part, Unsatisfiable, Whole};
    use super::*;

    #[test]
    fn ranges_are_read_as_the_rfc_says() {
        for (value, expected) in [
            ("bytes=0-0", Part(0..1)),
            ("bytes=2-4", Part(2..5)),
            ("bytes=2-", Part(2..10)),
            ("bytes=2-99", Part(2..10)),
            ("bytes=-3", Part(7..10)),
            ("bytes=-99", Part(0..10)),
            ("Bytes=9-9", Part(9..10)),
            ("bytes=0-99999999999999999999", Part(0..10)),
            ("bytes=10-", Unsatisfiable),
            ("bytes=99999999999999999999-", Unsatisfiable),
            ("bytes=-0", Unsatisfiable),
            ("bytes=4-2", Whole),
            ("bytes=0-1,3-4", Whole),
            ("bytes=a-b", Whole),
            ("bytes=-", Whole),
            ("lines=1-2", Whole),
            ("bytes", Whole),
        ] {
            assert_eq!(parse(value, 10), expected, "{value}");
        }
    }

    #[test]
    fn no_range_of_an_empty_bundle_can_be_satisfied() {
        for value in ["bytes=0-", "bytes=-1", "bytes=0-0"] {
            assert_eq!(parse(value, 0), Unsatisfiable, "{value}");
        }
    }

    proptest! {
        #[test]
        fn a_range_is_what_its_numbers_say_and_inside_the_bundle(
            first in prop_oneof![0_u64..12, any::<u64>()],
            last in prop_oneof![0_u64..12, any::<u64>()],
            length in prop_oneof![0_u64..12, any::<u64>()],
        ) {
            let all = 0..u128::from(length);
            let (from, to) = (u128::from(first), u128::from(last));
            let suffix = all.end.saturating_sub(to);
            for (value, expected) in [
                (format!("bytes={first}-{last}"), (from <= to).then_some(from..all.end.min(to + 1))),
                (format!("bytes={first}-"), Some(from..all.end)),
                (format!("bytes=-{last}"), Some(suffix..all.end)),
            ] {
                match parse(&value, length) {
                    Whole => prop_assert_eq!(expected, None, "{} of {}", value, length),
                    Unsatisfiable => prop_assert!(expected.is_some_and(|range| range.is_empty()), "{} of {}", value, length),
                    Part(part) => {
                        prop_assert!(part.start < part.end && part.end <= length, "{} of {}", value, length);
                        prop_assert_eq!(Some(u128::from(part.start)..u128::from(part.end)), expected, "{} of {}", value, length);
                    }
                }
            }
        }

        #[test]
        fn any_text_is_no_range_or_one_inside_the_bundle(
            value in prop_oneof!["bytes=[0-9]{0,2}-[0-9]{0,2}", "(bytes|Bytes|lines)?=?[ 0-9,-]{0,8}"],
            length in 0_u64..40,
        ) {
            if let Part(part) = parse(&value, length) {
                prop_assert!(part.start < part.end && part.end <= length, "{} of {}", value, length);
            }
        }
    }
}
