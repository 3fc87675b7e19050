//! Sizes and times.
#![no_main]

use std::time::Duration;

use cloakroom_core::resource::is_quantity;
use cloakroom_core::size::{ByteSize, SizeUnit, format_size, parse_size};
use cloakroom_core::time::{SparkDuration, TimeUnit, format_duration, parse_duration};
use libfuzzer_sys::fuzz_target;

const SIZES: [(&str, u32); 21] = [
    ("b", 0),
    ("k", 10),
    ("kb", 10),
    ("ki", 10),
    ("kib", 10),
    ("m", 20),
    ("mb", 20),
    ("mi", 20),
    ("mib", 20),
    ("g", 30),
    ("gb", 30),
    ("gi", 30),
    ("gib", 30),
    ("t", 40),
    ("tb", 40),
    ("ti", 40),
    ("tib", 40),
    ("p", 50),
    ("pb", 50),
    ("pi", 50),
    ("pib", 50),
];
const TIMES: [(&str, u64); 7] = [
    ("us", 1),
    ("ms", 1_000),
    ("s", 1_000_000),
    ("m", 60_000_000),
    ("min", 60_000_000),
    ("h", 3_600_000_000),
    ("d", 86_400_000_000),
];

fuzz_target!(|text: &str| {
    sizes(text);
    times(text);
    let _ = is_quantity(text);
    let number = text.bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(257).wrapping_add(u64::from(byte)));
    assert!(!format_size(number).is_empty());
});

/// The number and the unit of Spark's grammar, `-?[0-9]+[a-z]*`, after Java's `trim`.
fn split(text: &str) -> Option<(u128, String)> {
    let text = text.trim_matches(|character| character <= ' ');
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    Some((text[..digits].parse().ok()?, text[digits..].to_ascii_lowercase()))
}

fn sizes(text: &str) {
    let read = parse_size(text, SizeUnit::Mebibytes).map(ByteSize::bytes).ok();
    let expected = split(text).and_then(|(number, unit)| {
        let shift = if unit.is_empty() { 20 } else { SIZES.iter().find(|(name, _)| *name == unit)?.1 };
        let bytes = number.checked_mul(1 << shift)?;
        u64::try_from(bytes).ok().filter(|bytes| *bytes <= 8191 << 50)
    });
    assert_eq!(read, expected, "{text:?}");
    let printed: Result<ByteSize, _> = text.parse();
    if let Ok(size) = printed {
        assert_eq!(size.to_string().parse(), Ok(size), "{text:?}");
    }
}

fn times(text: &str) {
    let read = parse_duration(text, TimeUnit::Minutes).ok();
    let expected = split(text).and_then(|(number, unit)| {
        let factor =
            if unit.is_empty() { 60_000_000 } else { TIMES.iter().find(|(name, _)| *name == unit)?.1 };
        let time = Duration::from_micros(u64::try_from(number.checked_mul(u128::from(factor))?).ok()?);
        (time <= Duration::from_secs(106_751 * 86_400)).then_some(time)
    });
    assert_eq!(read, expected, "{text:?}");
    let with_unit: Result<SparkDuration, _> = text.parse();
    if let Ok(time) = with_unit {
        assert_eq!(Some(time.get()), expected, "{text:?}");
        assert_eq!(format_duration(time.get()).parse(), Ok(time), "{text:?}");
    }
}
