use std::fmt::Write;

use super::*;
use proptest::prelude::*;

type Pairs = &'static [(&'static str, &'static str)];

/// Texts, and the untrimmed result of `OpenJDK` 17's `java.util.Properties.load(Reader)`; `None` if it threw
/// `IllegalArgumentException`.
const VERIFIED: &[(&str, Option<Pairs>)] = &[
    ("", Some(&[])),
    ("\n", Some(&[])),
    ("a", Some(&[("a", "")])),
    ("a=", Some(&[("a", "")])),
    ("=a", Some(&[("", "a")])),
    (":a", Some(&[("", "a")])),
    ("a=b", Some(&[("a", "b")])),
    ("a:b", Some(&[("a", "b")])),
    ("a b", Some(&[("a", "b")])),
    ("a\tb", Some(&[("a", "b")])),
    ("a\u{c}b", Some(&[("a", "b")])),
    ("a = b", Some(&[("a", "b")])),
    ("a : b", Some(&[("a", "b")])),
    ("a  b", Some(&[("a", "b")])),
    ("a == b", Some(&[("a", "= b")])),
    ("a =: b", Some(&[("a", ": b")])),
    ("a:=b", Some(&[("a", "=b")])),
    ("a b=c", Some(&[("a", "b=c")])),
    ("a\t=\tb", Some(&[("a", "b")])),
    ("   a=b", Some(&[("a", "b")])),
    ("\t\u{c}a=b", Some(&[("a", "b")])),
    ("# c\na=b", Some(&[("a", "b")])),
    ("! c\na=b", Some(&[("a", "b")])),
    ("  # c\na=b", Some(&[("a", "b")])),
    ("a=b # no comment", Some(&[("a", "b # no comment")])),
    ("#c\\\na=b", Some(&[("a", "b")])),
    ("a=b\n#", Some(&[("a", "b")])),
    ("#", Some(&[])),
    ("a=b\\\nc", Some(&[("a", "bc")])),
    ("a=b\\\n   c", Some(&[("a", "bc")])),
    ("a=b\\\n\t\u{c}c", Some(&[("a", "bc")])),
    ("a=b\\\\\nc=d", Some(&[("a", "b\\"), ("c", "d")])),
    ("a=b\\\\\\\nc=d", Some(&[("a", "b\\c=d")])),
    ("a=b\\\r\nc", Some(&[("a", "bc")])),
    ("a=b\\\rc", Some(&[("a", "bc")])),
    ("a=b\rc=d", Some(&[("a", "b"), ("c", "d")])),
    ("a=b\r\nc=d", Some(&[("a", "b"), ("c", "d")])),
    ("a=b\n\rc=d", Some(&[("a", "b"), ("c", "d")])),
    ("a=b\\\n\nc=d", Some(&[("a", "b"), ("c", "d")])),
    ("a=b\\\n   \nc=d", Some(&[("a", "b"), ("c", "d")])),
    ("a=b\\\n#c", Some(&[("a", "b#c")])),
    ("a=b\\\n!c\\\n=d", Some(&[("a", "b!c=d")])),
    ("\\\na=b", Some(&[("a", "b")])),
    ("\\\n# c\na=b", Some(&[("a", "b")])),
    ("\\\n\n a=b", Some(&[("a", "b")])),
    ("\\", Some(&[("", "")])),
    ("\\\n", Some(&[("", "")])),
    ("\\\n\n", Some(&[])),
    ("\\\r", Some(&[("", "")])),
    ("\\\r\n", Some(&[])),
    ("\\\n  ", Some(&[])),
    ("a\\", Some(&[("a", "")])),
    ("a=b\\", Some(&[("a", "b")])),
    ("a=b\\\\", Some(&[("a", "b\\")])),
    ("a=b\\\n", Some(&[("a", "b")])),
    ("a=b\\\n  ", Some(&[("a", "b")])),
    ("a=\\\nb", Some(&[("a", "b")])),
    ("a\\\n=b", Some(&[("a", "b")])),
    ("a\\\n b", Some(&[("ab", "")])),
    ("a \\\n =b", Some(&[("a", "b")])),
    ("a\\=b=c", Some(&[("a=b", "c")])),
    ("a\\:b:c", Some(&[("a:b", "c")])),
    ("a\\ b c", Some(&[("a b", "c")])),
    ("\\#a=b", Some(&[("#a", "b")])),
    ("\\!a=b", Some(&[("!a", "b")])),
    ("a\\\\=b", Some(&[("a\\", "b")])),
    ("a\\\\\\=b=c", Some(&[("a\\=b", "c")])),
    ("a=\\=b", Some(&[("a", "=b")])),
    ("a=\\:b", Some(&[("a", ":b")])),
    ("a=\\ b", Some(&[("a", " b")])),
    ("a=\\\tb", Some(&[("a", "\tb")])),
    ("\\a=\\b", Some(&[("a", "b")])),
    ("a=\\t\\n\\r\\f", Some(&[("a", "\t\n\r\u{c}")])),
    ("a=\\\"\\'\\z\\0", Some(&[("a", "\"'z0")])),
    ("\\t=x", Some(&[("\t", "x")])),
    ("\\n\\r=x", Some(&[("\n\r", "x")])),
    ("a=\\u0041", Some(&[("a", "A")])),
    ("\\u0061=b", Some(&[("a", "b")])),
    ("a=\\u00e9\\u00E9", Some(&[("a", "éé")])),
    ("a=\\uD83D\\uDE00", Some(&[("a", "😀")])),
    ("a=é😀", Some(&[("a", "é😀")])),
    ("é=ü", Some(&[("é", "ü")])),
    ("a=\\u004", None),
    ("a=\\u", None),
    ("a=\\u00g1", None),
    ("a=\\u 041", None),
    ("a=\\u004é1", None),
    ("\\u00=b", None),
    ("a=\\\\u0041", Some(&[("a", "\\u0041")])),
    ("a=\\U0041", Some(&[("a", "U0041")])),
    ("a=\\u0020b", Some(&[("a", " b")])),
    ("\\u003d=b", Some(&[("=", "b")])),
    ("\\u0023a=b", Some(&[("#a", "b")])),
    ("a=\\u005cn", Some(&[("a", "\\n")])),
    ("a=\\u004\\\n1", Some(&[("a", "A")])),
    ("#\\u00\na=b", Some(&[("a", "b")])),
    ("a=\\u+041", None),
    ("a=\\u٠041", None),
    ("a=1\na=2", Some(&[("a", "2")])),
    ("a=1\nb=2\na=3", Some(&[("a", "3"), ("b", "2")])),
    ("\u{feff}a=b", Some(&[("\u{feff}a", "b")])),
    ("a=\u{a0}b", Some(&[("a", "\u{a0}b")])),
    ("\u{a0}a=b", Some(&[("\u{a0}a", "b")])),
    ("a\u{a0}b=c", Some(&[("a\u{a0}b", "c")])),
    ("\u{2028}a=b", Some(&[("\u{2028}a", "b")])),
    ("a\u{b}=b", Some(&[("a\u{b}", "b")])),
    ("a\u{85}b=c", Some(&[("a\u{85}b", "c")])),
    ("a=\u{0}b", Some(&[("a", "\u{0}b")])),
    ("spark.app.name   x y z  ", Some(&[("spark.app.name", "x y z  ")])),
    (
        "spark.executor.extraJavaOptions -Dx=y -Dz:w",
        Some(&[("spark.executor.extraJavaOptions", "-Dx=y -Dz:w")]),
    ),
    ("a=b  \\\n  c", Some(&[("a", "b  c")])),
    ("  \n\t\n\u{c}a=b", Some(&[("a", "b")])),
    ("a\n=b", Some(&[("", "b"), ("a", "")])),
    ("a\\\n\n=b", Some(&[("", "b"), ("a", "")])),
    ("=", Some(&[("", "")])),
    (":", Some(&[("", "")])),
    (" = ", Some(&[("", "")])),
    ("==", Some(&[("", "=")])),
    ("a=#b", Some(&[("a", "#b")])),
    ("a=!b", Some(&[("a", "!b")])),
    ("a\r\n\r\nb\r\n", Some(&[("a", ""), ("b", "")])),
];

fn parse(text: &str) -> Properties {
    Properties::parse("f.properties", text).unwrap()
}

fn pairs(properties: &Properties) -> Vec<(&str, &str)> {
    properties.iter().map(|property| (property.key, property.value)).collect()
}

#[test]
fn every_text_reads_as_java_reads_it() {
    for (text, expected) in VERIFIED {
        let actual = Properties::parse("f", text).ok();
        let actual = actual.as_ref().map(|properties| pairs(properties).into_iter().collect());
        let trimmed = |pairs: &Pairs| pairs.iter().map(|(key, value)| (*key, trim(value))).collect();
        let expected: Option<BTreeMap<_, _>> = expected.as_ref().map(trimmed);
        assert_eq!(actual, expected, "{}", text.escape_debug());
    }
}

#[test]
fn values_are_trimmed_as_spark_trims_them() {
    let properties = parse("a=  x \t \nb=\\u0000 x\\t\nc=\\n x \\r\\n\n\\ d=1\ne=\\u00a0x");
    let expected = [("a", "x"), ("b", "x"), ("c", "\n x \r\n"), (" d", "1"), ("e", "\u{a0}x")];
    assert_eq!(pairs(&properties), expected);
}

#[test]
fn the_last_setting_wins_and_has_the_line_where_it_begins() {
    let properties = parse("a=1\r\nb=2\r\n\r\n# c\r\na=\\\r\n  3\r\nc=4");
    assert_eq!(pairs(&properties), [("b", "2"), ("a", "3"), ("c", "4")]);
    assert_eq!(properties.line_of("a"), Some(5));
    assert_eq!(properties.line_of("c"), Some(7));
    assert_eq!(properties.line_of("d"), None);
    assert_eq!(properties.get("a"), Some("3"));
    assert_eq!(properties.file(), "f.properties");
}

#[test]
fn a_malformed_escape_is_an_error_with_its_line() {
    let error = Properties::parse("f.properties", "a=1\n\nb=C:\\users").unwrap_err();
    assert_eq!(
        error.to_string(),
        "f.properties, line 3: `\\u` is not followed by four hexadecimal digits; \
         write the code of a character, such as \\u00e9, or `\\\\u` for a backslash and a `u`"
    );
}

#[test]
fn half_a_surrogate_pair_is_an_error_unlike_in_java() {
    for text in ["a=\\ud83d", "a=\\ude00x", "a=\\ude00\\ud83d", "\\ud83d=1"] {
        let error = Properties::parse("f", text).unwrap_err();
        let (file, line) = ("f".to_owned(), 1);
        assert_eq!(error, PropertiesError::LoneSurrogate { file, line });
    }
}

#[test]
fn values_are_in_no_debug_output() {
    let properties = parse("token=pw42");
    let debug = format!("{properties:?} {:?}", properties.iter().collect::<Vec<_>>());
    assert!(debug.contains("token"));
    assert!(!debug.contains("pw42"));
}

/// Escapes as `java.util.Properties.store` does, and every blank as well.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '\\' | '=' | ':' | '#' | '!' | ' ' => escaped.extend(['\\', character]),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            '\u{c}' => escaped.push_str("\\f"),
            other if other > '~' => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    write!(escaped, "\\u{unit:04X}").unwrap();
                }
            }
            other => escaped.push(other),
        }
    }
    escaped
}

proptest! {
    #[test]
    fn escaped_text_reads_back(key in ".*", value in ".*") {
        let properties = parse(&format!("{}={}\n", escape(&key), escape(&value)));
        prop_assert_eq!(properties.get(&key), Some(trim(&value)));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[ab\\\\u0 \t\x0c\r\n=:#!é😀]*") {
        let lines = text.split(['\r', '\n']).count();
        if let Ok(properties) = Properties::parse("f", &text) {
            prop_assert!(properties.iter().all(|property| (1..=lines).contains(&property.line)));
        }
    }
}
