//! The text of a properties file as Java writes it, line by line.

use serde_json::Value;

/// The two comments and the entries of a text that `java.util.Properties` stored; entries keep their escapes, because they are
/// part of what is sent. `None` if it is not such a text.
pub fn split(text: &str) -> Option<Vec<(String, Value)>> {
    let mut lines = text.strip_suffix('\n')?.split('\n');
    let comment = lines.next()?.strip_prefix('#')?;
    let date = lines.next()?.strip_prefix('#')?;
    let date = if is_date(date) { "<date>" } else { date };
    let mut entries = vec![("#".to_owned(), comment.into()), ("##".to_owned(), date.into())];
    for line in lines {
        let (key, value) = entry(line)?;
        if entries.iter().any(|(known, _)| known == key) {
            return None;
        }
        entries.push((key.to_owned(), value.into()));
    }
    Some(entries)
}

/// Split at the first `=` that is not escaped.
fn entry(line: &str) -> Option<(&str, &str)> {
    let mut is_escaped = false;
    for (at, character) in line.char_indices() {
        match character {
            '=' if !is_escaped => return Some((&line[..at], &line[at + 1..])),
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    None
}

/// As `java.util.Date` prints it: `Sat Nov 21 01:05:53 UTC 2026`.
fn is_date(text: &str) -> bool {
    let words: Vec<_> = text.split(' ').collect();
    let [day, month, number, time, zone, year] = words[..] else { return false };
    let is_number =
        |text: &str, length: usize| text.len() == length && text.bytes().all(|b| b.is_ascii_digit());
    let times: Vec<_> = time.split(':').collect();
    ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"].contains(&day)
        && ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
            .contains(&month)
        && is_number(number, 2)
        && times.len() == 3
        && times.iter().all(|part| is_number(part, 2))
        && zone.bytes().all(|b| b.is_ascii_uppercase())
        && is_number(year, 4)
}
