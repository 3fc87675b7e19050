//! `spark.properties` as `java.util.Properties.store(Writer)` writes it, sorted.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::Timestamp;

/// The text of the driver's properties file. Java's order is that of a hash table; this one is always the same.
pub(super) fn properties_file(
    config_map: &str,
    now: Timestamp,
    properties: &BTreeMap<String, String>,
) -> String {
    let time = now.strftime("%a %b %d %H:%M:%S UTC %Y");
    let head =
        format!("#Java properties built from Kubernetes config map with name: {config_map}\n#{time}\n");
    head + &properties_text(properties)
}

/// Properties without the two lines that Java writes first.
pub(super) fn properties_text(properties: &BTreeMap<String, String>) -> String {
    let mut text = String::new();
    for (key, value) in properties {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}={}", escaped(key, Blanks::All), escaped(value, Blanks::Leading));
    }
    text
}

/// Which blanks a backslash goes before.
#[derive(Clone, Copy, PartialEq)]
enum Blanks {
    All,
    Leading,
}

/// Other characters stay as they are: a `Writer` has no need of `\uXXXX`.
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
    use crate::spark::Properties;
    use proptest::prelude::*;

    #[test]
    fn the_file_begins_with_two_lines_of_java_and_is_sorted() {
        let properties = BTreeMap::from([
            ("spark.master".to_owned(), "k8s://http://127.0.0.1:8902".to_owned()),
            ("spark.app.name".to_owned(), " a b".to_owned()),
            ("spark.x y".to_owned(), "#!=ü\t\n\r\u{c}\\".to_owned()),
        ]);
        let now = Timestamp::from_second(1_795_223_153).unwrap();
        assert_eq!(
            properties_file("spark-drv-1-conf-map", now, &properties),
            "#Java properties built from Kubernetes config map with name: spark-drv-1-conf-map\n\
             #Sat Nov 21 01:05:53 UTC 2026\n\
             spark.app.name=\\ a b\n\
             spark.master=k8s\\://http\\://127.0.0.1\\:8902\n\
             spark.x\\ y=\\#\\!\\=ü\\t\\n\\r\\f\\\\\n"
        );
    }

    fn trimmed(text: &str) -> String {
        text.trim_matches(|c: char| c <= ' ').to_owned()
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            properties in prop::collection::btree_map("spark[^\0]{1,12}", "[^\0]{0,20}", 0..6)
        ) {
            // Spark trims what it read as Java does, and so does our reader.
            let expected: BTreeMap<_, _> = properties.iter().map(|(k, v)| (k.clone(), trimmed(v))).collect();
            let text = properties_file("c", Timestamp::UNIX_EPOCH, &properties);
            let read = Properties::parse("c", &text).unwrap();
            let read: BTreeMap<_, _> = read.iter().map(|p| (p.key.to_owned(), trimmed(p.value))).collect();
            prop_assert_eq!(read, expected);
        }
    }
}
