//! Sizes in bytes, always binary: `8GiB`, Spark's `8g` and `8gb`, Kubernetes' `8Gi`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::quantity::{self, Problem};

/// The largest accepted size, `i64::MAX` bytes in whole PiB: SQL integers and file offsets are signed.
const LARGEST: u64 = 8191 << 50;
const LARGEST_TEXT: &str = "8191PiB";

/// The units of size strings. Spark's `k`, `m`, `g` are powers of 1024 (`JavaUtils.byteStringAs`), so all are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeUnit {
    /// `b`
    Bytes,
    /// `k`, `kb`, `Ki`, `KiB`
    Kibibytes,
    /// `m`, `mb`, `Mi`, `MiB`
    Mebibytes,
    /// `g`, `gb`, `Gi`, `GiB`
    Gibibytes,
    /// `t`, `tb`, `Ti`, `TiB`
    Tebibytes,
    /// `p`, `pb`, `Pi`, `PiB`
    Pebibytes,
}

impl SizeUnit {
    const LARGEST_FIRST: [Self; 5] =
        [Self::Pebibytes, Self::Tebibytes, Self::Gibibytes, Self::Mebibytes, Self::Kibibytes];

    fn parse(suffix: &str) -> Option<Self> {
        match suffix {
            "b" => Some(Self::Bytes),
            "k" | "kb" | "ki" | "kib" => Some(Self::Kibibytes),
            "m" | "mb" | "mi" | "mib" => Some(Self::Mebibytes),
            "g" | "gb" | "gi" | "gib" => Some(Self::Gibibytes),
            "t" | "tb" | "ti" | "tib" => Some(Self::Tebibytes),
            "p" | "pb" | "pi" | "pib" => Some(Self::Pebibytes),
            _ => None,
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            Self::Bytes => "B",
            Self::Kibibytes => "KiB",
            Self::Mebibytes => "MiB",
            Self::Gibibytes => "GiB",
            Self::Tebibytes => "TiB",
            Self::Pebibytes => "PiB",
        }
    }

    fn bytes(self) -> u64 {
        match self {
            Self::Bytes => 1,
            Self::Kibibytes => 1 << 10,
            Self::Mebibytes => 1 << 20,
            Self::Gibibytes => 1 << 30,
            Self::Tebibytes => 1 << 40,
            Self::Pebibytes => 1 << 50,
        }
    }
}

/// A text that is not a size.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{text}` is not a size: {problem}; write a whole number with a binary unit, such as 8GiB, 512MiB or 16KiB \
     (also Spark's 8g and Kubernetes' 8Gi)"
)]
pub struct SizeError {
    text: String,
    problem: Problem,
}

/// Reads a size string; a bare number is counted in `default_unit` (mebibytes for Spark's memory keys).
pub fn parse_size(text: &str, default_unit: SizeUnit) -> Result<ByteSize, SizeError> {
    parse(text, default_unit).map_err(|problem| SizeError { text: text.to_owned(), problem })
}

fn parse(text: &str, default_unit: SizeUnit) -> Result<ByteSize, Problem> {
    let (number, suffix) = quantity::split(text, LARGEST_TEXT)?;
    let unit = if suffix.is_empty() {
        default_unit
    } else {
        SizeUnit::parse(&suffix).ok_or(Problem::UnknownUnit(suffix))?
    };
    number
        .checked_mul(unit.bytes())
        .filter(|bytes| *bytes <= LARGEST)
        .map(ByteSize)
        .ok_or(Problem::TooLarge(LARGEST_TEXT))
}

/// A size for people, rounded to a tenth of its unit: `1.5 GiB`, `512 MiB`, `17 B`.
pub fn format_size(bytes: u64) -> String {
    // A unit is taken from where rounding would otherwise show 1024 of the one below it.
    let unit = SizeUnit::LARGEST_FIRST
        .into_iter()
        .find(|unit| tenths(bytes, unit.bytes() >> 10) >= 10 * 1024)
        .unwrap_or(SizeUnit::Bytes);
    let tenths = tenths(bytes, unit.bytes());
    let (whole, tenth) = (tenths / 10, tenths % 10);
    match tenth {
        0 => format!("{whole} {}", unit.suffix()),
        _ => format!("{whole}.{tenth} {}", unit.suffix()),
    }
}

fn tenths(bytes: u64, unit_bytes: u64) -> u128 {
    (u128::from(bytes) * 10 + u128::from(unit_bytes) / 2) / u128::from(unit_bytes)
}

/// A number of bytes as flags take and show it. `Display` is the shortest exact form: `8GiB`, `1536MiB`, `17`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

impl ByteSize {
    /// Wraps a number of bytes, for defaults.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The number of bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for ByteSize {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_size(text, SizeUnit::Bytes)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = SizeUnit::LARGEST_FIRST
            .into_iter()
            .find(|unit| self.0 != 0 && self.0.is_multiple_of(unit.bytes()));
        match exact {
            Some(unit) => formatter.pad(&format!("{}{}", self.0 / unit.bytes(), unit.suffix())),
            None => formatter.pad(&self.0.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_forms_of_spark_of_kubernetes_and_of_iec_are_read_as_binary() {
        let cases = [
            ("0", 0),
            ("17", 17),
            ("17b", 17),
            ("10k", 10 << 10),
            ("10KB", 10 << 10),
            ("16KiB", 16 << 10),
            ("512m", 512 << 20),
            ("512Mi", 512 << 20),
            ("512MiB", 512 << 20),
            ("8g", 8 << 30),
            ("8GB", 8 << 30),
            (" 8GiB ", 8 << 30),
            ("3tb", 3 << 40),
            ("2pb", 2 << 50),
            ("8191PiB", LARGEST),
        ];
        for (text, bytes) in cases {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
    }

    #[test]
    fn a_bare_number_is_in_the_unit_of_its_key() {
        let memory = parse_size("1024", SizeUnit::Mebibytes);
        assert_eq!(memory, Ok(ByteSize(1 << 30)));
    }

    #[test]
    fn what_is_not_a_size_is_refused_with_the_reason_and_the_way_out() {
        let cases = [
            ("", "it is empty"),
            ("-1g", "it is negative"),
            ("1.5g", "it has a fraction"),
            ("g", "it does not begin with a number"),
            ("8 GiB", "` gib` is not a unit"),
            ("8eb", "`eb` is not a unit"),
            ("8192PiB", "it is more than 8191PiB"),
            ("18446744073709551616", "it is more than 8191PiB"),
        ];
        for (text, reason) in cases {
            let message = text.parse::<ByteSize>().unwrap_err().to_string();
            assert!(
                message.starts_with(&format!("`{text}` is not a size: {reason}; write a whole")),
                "{message}"
            );
        }
    }

    #[test]
    fn a_size_is_rounded_for_people_and_exact_for_flags() {
        let cases = [
            (0, "0 B", "0"),
            (17, "17 B", "17"),
            (1023, "1023 B", "1023"),
            (1024, "1 KiB", "1KiB"),
            (3 << 29, "1.5 GiB", "1536MiB"),
            (8 << 30, "8 GiB", "8GiB"),
            ((1 << 20) - 1, "1 MiB", "1048575"),
            (u64::MAX, "16384 PiB", "18446744073709551615"),
        ];
        for (bytes, rounded, exact) in cases {
            assert_eq!(format_size(bytes), rounded);
            assert_eq!(ByteSize(bytes).to_string(), exact);
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(bytes in 0..=LARGEST) {
            prop_assert_eq!(ByteSize(bytes).to_string().parse(), Ok(ByteSize(bytes)));
        }
    }
}
