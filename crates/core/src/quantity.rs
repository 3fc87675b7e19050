//! A whole number with a unit behind it: what time strings and size strings have in common.

use thiserror::Error;

/// Why a text is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum Problem {
    #[error("it is empty")]
    Empty,
    #[error("it does not begin with a number")]
    NoNumber,
    #[error("it is negative")]
    Negative,
    #[error("it has a fraction")]
    Fraction,
    #[error("it has no unit")]
    NoUnit,
    #[error("`{0}` is not a unit")]
    UnknownUnit(String),
    #[error("it is more than {0}")]
    TooLarge(&'static str),
}

/// Splits a quantity as Spark's `(-?[0-9]+)([a-z]+)?` does, case ignored: the number, and the unit in lower case.
pub(super) fn split(text: &str, largest: &'static str) -> Result<(u64, String), Problem> {
    // As Java's `String.trim`.
    let text = text.trim_matches(|character: char| character <= ' ');
    if text.is_empty() {
        return Err(Problem::Empty);
    }
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let unit = unsigned.trim_start_matches(|character: char| character.is_ascii_digit());
    let (number, unit) = unsigned.split_at(unsigned.len() - unit.len());
    if number.is_empty() {
        return Err(Problem::NoNumber);
    }
    if unsigned.len() < text.len() {
        return Err(Problem::Negative);
    }
    if unit.starts_with(['.', ',']) {
        return Err(Problem::Fraction);
    }
    let number = number.parse().map_err(|_| Problem::TooLarge(largest))?;
    Ok((number, unit.to_ascii_lowercase()))
}
