//! Scalars of a template: their type in YAML, and their value as a text, number or boolean, as Spark's library reads
//! them.

use serde_json::{Number, Value};
use serde_saphyr::Span;

use crate::plan::memory::java_double;

/// A scalar by the JSON schema of YAML (YAML 1.2, section 10.2). Spark's library follows it: `True`, `0x10` and `~` are
/// texts.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    Null,
    Boolean(bool),
    /// A whole number, as its digits.
    Whole(String),
    /// Another number, in the spelling that it has as a text.
    Fraction(String),
    Text(String),
}

/// The type that a value must have, as an error message names it.
pub(super) type Wrong = &'static str;

const WHOLE: Wrong = "it must be a whole number";
const BOOLEAN: Wrong = "it must be true or false";

impl Scalar {
    /// The type of a scalar without quotes.
    fn plain(text: &str) -> Self {
        match text {
            "" | "null" => Self::Null,
            "true" => Self::Boolean(true),
            "false" => Self::Boolean(false),
            "-0" => Self::Whole("0".to_owned()),
            _ if is_whole(text) => Self::Whole(text.to_owned()),
            _ if is_fraction(text) => Self::Fraction(text.to_owned()),
            _ => Self::Text(text.to_owned()),
        }
    }

    /// The type of a value in JSON that is no text. It keeps its spelling, `-0` too.
    pub fn in_json(text: &str) -> Self {
        if text == "-0" { Self::Whole(text.to_owned()) } else { Self::plain(text) }
    }

    /// The value in a field that no type knows.
    pub fn into_value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Boolean(value) => value.into(),
            Self::Whole(text) | Self::Fraction(text) => {
                text.parse::<Number>().map_or(Value::String(text), Value::Number)
            }
            Self::Text(text) => text.into(),
        }
    }

    /// The value of a text field. It is `None` for null.
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Null => None,
            Self::Boolean(value) => Some(value.to_string()),
            Self::Whole(text) | Self::Fraction(text) | Self::Text(text) => Some(text.clone()),
        }
    }

    /// The value of a boolean field.
    pub fn boolean(&self) -> Result<bool, Wrong> {
        match self {
            Self::Boolean(value) => Ok(*value),
            Self::Text(text) => match text.as_str() {
                "true" | "True" | "TRUE" => Ok(true),
                "false" | "False" | "FALSE" => Ok(false),
                _ => Err(BOOLEAN),
            },
            Self::Null | Self::Whole(_) | Self::Fraction(_) => Err(BOOLEAN),
        }
    }

    /// The value of a field for whole numbers.
    pub fn whole(&self) -> Result<i64, Wrong> {
        match self {
            Self::Whole(text) | Self::Text(text) => text.parse().map_err(|_| WHOLE),
            Self::Null | Self::Boolean(_) | Self::Fraction(_) => Err(WHOLE),
        }
    }

    /// The value of a field for a file's mode, which may be octal: `0444`, `0o444`.
    pub fn mode(&self) -> Result<i64, Wrong> {
        let octal = match self {
            Self::Text(text) => text.strip_prefix("0o").or_else(|| text.strip_prefix('0')),
            _ => None,
        };
        let is_octal =
            |digits: &&str| !digits.is_empty() && digits.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
        match octal.filter(is_octal) {
            Some(digits) => i64::from_str_radix(digits, 8).map_err(|_| WHOLE),
            None => self.whole(),
        }
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_whole(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    is_digits(digits) && (digits == "0" || !digits.starts_with('0'))
}

fn is_fraction(text: &str) -> bool {
    let (number, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    is_whole(whole)
        && (decimals.is_empty() || is_digits(decimals))
        && is_digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))
}

/// The text of a document. The YAML library normalises scalars, so their spelling is looked up here.
#[derive(Clone, Copy)]
pub(super) struct Source<'a>(pub &'a str);

impl<'a> Source<'a> {
    /// The plain scalar at a place. `value` is the library's reading of it. It counts if a tag such as `!!int` decides
    /// the type, and the spelling does not.
    pub fn scalar(self, at: Span, value: &str) -> Scalar {
        let scalar = match self.spelling(at) {
            Some(text) if !text.starts_with(['"', '\'', '|', '>']) => Scalar::plain(text.trim()),
            _ => Scalar::plain(value),
        };
        match scalar {
            // Spark's library reads fractions in YAML as doubles, so `1.10` becomes `1.1`. In JSON it keeps their text.
            Scalar::Fraction(text) => Scalar::Fraction(java_text(text)),
            scalar => scalar,
        }
    }

    fn spelling(self, at: Span) -> Option<&'a str> {
        let start = usize::try_from(at.byte_offset()?).ok()?;
        let length = usize::try_from(at.byte_len()?).ok()?;
        self.0.get(start..start.checked_add(length)?)
    }
}

fn java_text(text: String) -> String {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => java_double(value),
        _ => text,
    }
}
