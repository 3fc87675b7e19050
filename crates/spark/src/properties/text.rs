//! Writes properties as `java.util.Properties.store(Writer)` does.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Returns the text of a properties file, sorted by key, without the comment that Java writes first.
/// [`Properties`](super::Properties) can parse it.
pub fn properties_text(properties: &BTreeMap<String, String>) -> String {
    let mut text = String::new();
    for (key, value) in properties {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}={}", escaped(key, Blanks::All), escaped(value, Blanks::Leading));
    }
    text
}

/// The blanks that get a backslash.
#[derive(Clone, Copy, PartialEq)]
enum Blanks {
    All,
    Leading,
}

/// Escapes a key or value. Other characters stay, because a `Writer` does not need `\uXXXX`.
fn escaped(text: &str, blanks: Blanks) -> String {
    let mut escaped = String::with_capacity(text.len());
    for (at, c) in text.chars().enumerate() {
        match c {
            '\t' => escaped.push_str("\\t"),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\u{c}' => escaped.push_str("\\f"),
            ' ' if blanks == Blanks::All || at == 0 => escaped.push_str("\\ "),
            '\\' | '=' | ':' | '#' | '!' => escaped.extend(['\\', c]),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Properties;
    use proptest::prelude::*;

    #[test]
    fn characters_that_java_reads_differently_are_escaped() {
        let properties = BTreeMap::from([
            ("spark.app.name".to_owned(), " a b".to_owned()),
            ("spark.x y".to_owned(), "#!=ü\t\n\r\u{c}\\".to_owned()),
        ]);
        assert_eq!(
            properties_text(&properties),
            "spark.app.name=\\ a b\nspark.x\\ y=\\#\\!\\=ü\\t\\n\\r\\f\\\\\n"
        );
    }

    fn trimmed(text: &str) -> String {
        text.trim_matches(|c: char| c <= ' ').to_owned()
    }

    proptest! {
        #[test]
        fn written_properties_read_back(
            properties in prop::collection::btree_map("spark[^\0]{1,12}", "[^\0]{0,20}", 0..6)
        ) {
            // Spark trims values after reading them as Java does, and so does [`Properties::parse`].
            let expected: BTreeMap<_, _> = properties.iter().map(|(k, v)| (k.clone(), trimmed(v))).collect();
            let read = Properties::parse("c", &properties_text(&properties)).unwrap();
            let read: BTreeMap<_, _> = read.iter().map(|p| (p.key.to_owned(), trimmed(p.value))).collect();
            prop_assert_eq!(read, expected);
        }
    }
}
