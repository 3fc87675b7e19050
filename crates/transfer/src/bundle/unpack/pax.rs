//! Parses pax records (POSIX `pax`, extended header): lines of `LENGTH KEY=VALUE` before the entry that they describe.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The pax records of an entry that unpacking uses.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Records {
    pub(super) path: Option<Vec<u8>>,
    pub(super) size_bytes: Option<u64>,
    pub(super) modified: Option<SystemTime>,
    /// Whether the file is sparse (GNU and star). Then the content begins with a map of holes, and the header's size is
    /// not the file's.
    pub(super) sparse: bool,
}

impl Records {
    /// Parses all records, or says what is wrong with them. Unknown keys are ignored.
    pub(super) fn parse(mut bytes: &[u8]) -> Result<Records, &'static str> {
        let mut records = Records::default();
        while !bytes.is_empty() {
            let (key, value, rest) = split_record(bytes).ok_or("its pax records are damaged")?;
            match key {
                b"path" => records.path = Some(value.to_vec()),
                b"size" => records.size_bytes = Some(decimal(value).ok_or("its pax size is not a number")?),
                // The header has a time as well, so a record that is none is passed over.
                b"mtime" => records.modified = time(value),
                _ => records.sparse |= key.starts_with(b"GNU.sparse.") || key.starts_with(b"SCHILY.realsize"),
            }
            bytes = rest;
        }
        Ok(records)
    }

    /// Whether no record gives an entry another name or size.
    pub(super) fn is_harmless(&self) -> bool {
        *self == Records { modified: self.modified, ..Records::default() }
    }
}

/// Splits off one record: its key, its value and the rest. The record's length includes the length itself, the space
/// and the line end.
fn split_record(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = bytes.iter().take(8).position(|&byte| byte == b' ')?;
    let length = usize::try_from(decimal(&bytes[..space])?).ok()?;
    let (record, rest) = bytes.split_at_checked(length)?;
    let (&end, record) = record.get(space + 1..)?.split_last()?;
    let equals = record.iter().position(|&byte| byte == b'=').filter(|_| end == b'\n')?;
    Some((&record[..equals], &record[equals + 1..], rest))
}

fn decimal(digits: &[u8]) -> Option<u64> {
    let plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    if plain { str::from_utf8(digits).ok()?.parse().ok() } else { None }
}

/// Seconds since 1970 with a fraction, such as `1350244992.023960108`; negative before 1970.
fn time(value: &[u8]) -> Option<SystemTime> {
    const NANOSECONDS: usize = 9;
    let (is_negative, value) = match value.strip_prefix(b"-") {
        Some(value) => (true, value),
        None => (false, value),
    };
    let point = value.iter().position(|&byte| byte == b'.').unwrap_or(value.len());
    let fraction = value.get(point + 1..).unwrap_or_default();
    if !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = fraction.iter().map(|&digit| u32::from(digit - b'0')).chain(std::iter::repeat(0));
    let nanoseconds = digits.take(NANOSECONDS).fold(0, |all, digit| all * 10 + digit);
    let distance = Duration::new(decimal(&value[..point])?, nanoseconds);
    if is_negative { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn path_size_and_time_are_read_and_the_rest_is_passed_over() {
        let records =
            Records::parse(b"30 mtime=1350244992.023960108\n14 path=a/b=c\n11 size=77\n9 uid=77\n").unwrap();
        let modified = Some(UNIX_EPOCH + Duration::new(1_350_244_992, 23_960_108));
        let expected =
            Records { path: Some(b"a/b=c".to_vec()), size_bytes: Some(77), modified, sparse: false };
        assert_eq!(records, expected);
    }

    #[test]
    fn times_are_seconds_with_a_fraction_before_and_after_1970() {
        let after = |seconds, nanoseconds| Some(UNIX_EPOCH + Duration::new(seconds, nanoseconds));
        let before = |seconds, nanoseconds| Some(UNIX_EPOCH - Duration::new(seconds, nanoseconds));
        for (text, expected) in [
            ("0", after(0, 0)),
            ("1.5", after(1, 500_000_000)),
            ("1.", after(1, 0)),
            ("1.0000000019", after(1, 1)),
            ("9000000000", after(9_000_000_000, 0)),
            ("-1.25", before(1, 250_000_000)),
            ("", None),
            (".5", None),
            ("-", None),
            ("1.x", None),
            ("1e3", None),
            ("99999999999999999999", None),
            ("18446744073709551615", None),
        ] {
            assert_eq!(time(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn sparse_files_show_themselves() {
        assert!(Records::parse(b"22 GNU.sparse.major=1\n").unwrap().sparse);
        assert!(!Records::parse(b"22 GNU.sparse.major=1\n").unwrap().is_harmless());
    }

    #[test]
    fn damaged_records_are_refused() {
        for bad in [
            &b"x"[..],
            b"5 a=b",
            b"99 a=b\n",
            b"0 a=b\n",
            b"1 a=b\n",
            b"6 a=bc",
            b"6 abc\n",
            b"-6 a=b\n",
            b"13 size=1e10\n\n",
            b"10 size=-1\n",
        ] {
            assert!(Records::parse(bad).is_err(), "{}", String::from_utf8_lossy(bad));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            bytes in prop::collection::vec(
                prop_oneof![Just(b'1'), Just(b' '), Just(b'='), Just(b'\n'), any::<u8>()], 0..40)
        ) {
            let _ = Records::parse(&bytes);
        }
    }
}
