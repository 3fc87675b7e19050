//! The grammar of a properties file: natural lines, logical lines, key and value, escapes.

use super::{BLANKS, PropertiesError};

/// What is wrong with an escape. The caller adds the file and the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    MalformedUnicodeEscape,
    LoneSurrogate,
}

impl Fault {
    pub(super) fn at(self, file: &str, line: usize) -> PropertiesError {
        let file = file.to_owned();
        match self {
            Self::MalformedUnicodeEscape => PropertiesError::MalformedUnicodeEscape { file, line },
            Self::LoneSurrogate => PropertiesError::LoneSurrogate { file, line },
        }
    }
}

/// Returns every logical line with the number of the natural line that it begins on. Leaves out comments and blank
/// lines. Continued lines are joined without the last backslash and without the blanks at the beginning of the next
/// line.
pub(super) fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut logical = Vec::new();
    let mut open = String::new();
    let mut begins = 0;
    let mut continues = false;
    for (index, natural) in natural_lines(text).enumerate() {
        let piece = natural.trim_start_matches(BLANKS);
        // Java looks for a comment as long as the logical line is empty, even on the line after a lone backslash.
        if open.is_empty() && (piece.is_empty() || piece.starts_with(['#', '!'])) {
            continues = false;
            continue;
        }
        if open.is_empty() {
            begins = index + 1;
        }
        let kept = without_continuation(piece);
        open.push_str(kept);
        continues = kept.len() < piece.len();
        if !continues {
            logical.push((begins, std::mem::take(&mut open)));
        }
    }
    // To Java, a lone backslash at the end of the file is an empty key. Before CR LF it is not, because Java reads the
    // LF as a separate line.
    if continues && !(open.is_empty() && text.ends_with("\r\n")) {
        logical.push((begins, open));
    }
    logical
}

/// Splits a text at line feeds, carriage returns, and pairs of them.
fn natural_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.find(['\r', '\n']).unwrap_or(rest.len());
        let (line, tail) = rest.split_at(end);
        rest = tail.strip_prefix("\r\n").or_else(|| tail.strip_prefix(['\r', '\n'])).unwrap_or(tail);
        Some(line)
    })
}

/// Returns the line without its last backslash if the line continues, which an odd number of backslashes means.
/// Otherwise returns the whole line.
fn without_continuation(line: &str) -> &str {
    let backslashes = line.len() - line.trim_end_matches('\\').len();
    match line.strip_suffix('\\') {
        Some(kept) if backslashes % 2 == 1 => kept,
        _ => line,
    }
}

/// Splits a line into key and value, both still escaped. The key ends at the first `=`, `:` or blank that is not
/// escaped.
pub(super) fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = line.find(|character| {
        let ends = !escaped && (matches!(character, '=' | ':') || BLANKS.contains(&character));
        escaped = character == '\\' && !escaped;
        ends
    });
    let (key, rest) = line.split_at(end.unwrap_or(line.len()));
    let rest = rest.trim_start_matches(BLANKS);
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (key, value.trim_start_matches(BLANKS))
}

/// Resolves the escapes `\t \n \r \f`, `\uXXXX`, and `\` before any other character. Java's characters are UTF-16
/// units, so both halves of a surrogate pair may be escaped.
pub(super) fn unescape(text: &str) -> Result<String, Fault> {
    let mut units = Vec::with_capacity(text.len());
    let mut rest = text.chars();
    let mut utf16 = [0; 2];
    while let Some(character) = rest.next() {
        let plain = match character {
            '\\' => match rest.next() {
                Some('u') => {
                    units.push(unicode_unit(rest.as_str())?);
                    rest = rest.as_str()[4..].chars();
                    continue;
                }
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('f') => '\u{c}',
                Some(other) => other,
                None => continue,
            },
            other => other,
        };
        units.extend_from_slice(plain.encode_utf16(&mut utf16));
    }
    String::from_utf16(&units).map_err(|_| Fault::LoneSurrogate)
}

/// The value of the four hexadecimal digits at the beginning of a text.
fn unicode_unit(text: &str) -> Result<u16, Fault> {
    text.get(..4)
        .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
        .and_then(|digits| u16::from_str_radix(digits, 16).ok())
        .ok_or(Fault::MalformedUnicodeEscape)
}
