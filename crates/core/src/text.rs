//! Makes text from other programs and people safe to show, and keeps secret text from being shown.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::{self, Write as _};

/// Stands in place of a secret that was removed.
const HIDDEN: &str = "[hidden]";
/// Length in bytes. A shorter text is no secret, and removing it everywhere would damage messages.
const SHORTEST_SECRET: usize = 6;

/// The bytes of a text file as UTF-8 without a byte order mark. Tools on Windows write UTF-16, which such a mark
/// announces. Bytes without a mark stay as they are.
pub fn without_mark(bytes: Vec<u8>) -> Vec<u8> {
    let utf16 = |unit: fn([u8; 2]) -> u16| {
        let units = bytes[2..].chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        let text: String =
            char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        text.into_bytes()
    };
    match bytes.as_slice() {
        [0xef, 0xbb, 0xbf, text @ ..] => text.to_vec(),
        [0xff, 0xfe, ..] => utf16(u16::from_le_bytes),
        [0xfe, 0xff, ..] => utf16(u16::from_be_bytes),
        _ => bytes,
    }
}

/// Whether the character must not be shown. A terminal obeys control characters (Unicode's category Cc). Format
/// characters (Cf) are invisible or change the direction of text. Separators of lines and paragraphs break the line.
pub fn is_unfit(c: char) -> bool {
    // Cf of Unicode 16 (DerivedGeneralCategory.txt).
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}'
            | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e007f}')
}

/// Replaces every character that must not be shown by U+FFFD.
pub fn harmless(text: &str) -> String {
    text.chars().map(|c| if is_unfit(c) { '\u{fffd}' } else { c }).collect()
}

/// The same for text that keeps its lines and tabs: this program's own text with text from elsewhere in it.
pub fn harmless_lines(text: &str) -> String {
    let keep = |c| if is_unfit(c) && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c };
    text.chars().map(keep).collect()
}

/// Puts the text on one line with single blanks between words, and cuts it to `longest` characters.
pub fn one_line(text: &str, longest: usize) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    shortened(harmless(&words.collect::<Vec<_>>().join(" ")), longest)
}

/// Makes foreign text fit for a part of one line: messages of the API server or of containers, names of applications.
/// Such text may have line breaks, or words that Airflow would take for the driver's exit code.
pub fn in_one_line(text: &str) -> String {
    const LONGEST: usize = 2000;
    one_line(text, LONGEST).replace("xit code: ", "xit code ")
}

/// The message about a key that YAML has twice in one map. `line` is the line of the second one; 0 if it is not known.
pub fn repeated_key(key: Option<&str>, line: u64) -> String {
    /// Longer than any field of Kubernetes.
    const LONGEST: usize = 100;
    let key = key.map_or_else(|| "a key".to_owned(), |key| format!("the key `{}`", one_line(key, LONGEST)));
    let place = if line == 0 { String::new() } else { format!(", the second time in line {line}") };
    format!("{key} is there twice in one map{place}: remove one of them")
}

/// Cuts the text to `longest` characters. An ellipsis shows that something was cut off.
pub fn shortened(mut text: String, longest: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(longest) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// The beginning of text from a client or a file, as an error repeats it: safe to show, and at most `longest`
/// characters.
pub fn excerpt(text: &str, longest: usize) -> String {
    shortened(harmless(text), longest)
}

/// Replaces every character that must not be shown by its escape (`\u{202e}`), where the reader has to see which it is.
pub fn escaped(text: &str) -> String {
    escape_unfit(text, is_unfit, |shown, c| write!(shown, "{}", c.escape_debug()))
}

/// The same JSON, with escapes in place of characters that must not be shown (RFC 8259 section 7). Valid JSON has such
/// characters only in strings, except for the ends of lines, which stay.
pub fn harmless_json(json: &str) -> String {
    escape_unfit(json, is_unfit_in_lines, |text, c| {
        c.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(text, "\\u{unit:04x}"))
    })
}

fn is_unfit_in_lines(c: char) -> bool {
    is_unfit(c) && c != '\n'
}

fn escape_unfit(
    text: &str,
    is_unfit: impl Fn(char) -> bool,
    escape: impl Fn(&mut String, char) -> std::fmt::Result,
) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        if is_unfit(c) {
            // Writing to a string cannot fail.
            let _ = escape(&mut shown, c);
        } else {
            shown.push(c);
        }
        shown
    })
}

/// Removes the `secrets` that this process knows from `text`. A proxy may repeat a request, secrets included, in its
/// answer.
pub fn without<'a>(text: &'a str, secrets: &[&str]) -> Cow<'a, str> {
    let long = secrets.iter().filter(|secret| secret.len() >= SHORTEST_SECRET);
    long.fold(Cow::Borrowed(text), |text, secret| {
        if text.contains(secret) { Cow::Owned(text.replace(secret, HIDDEN)) } else { text }
    })
}

/// Quotes a word for a POSIX shell. The crate shlex quotes more words, and in another way than the documentation shows.
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./#-".contains(c);
    // A number sign begins a comment.
    if word.chars().all(is_plain) && !word.is_empty() && !word.starts_with('#') {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// An error and what caused it, in one line.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        // Many errors repeat their source in their own text.
        if !text.ends_with(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}

/// A secret text: a bearer token, a password, a private key. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one who checks the secret only.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SecretText(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_key_is_told_with_its_line_if_that_is_known() {
        let expected =
            "the key `token` is there twice in one map, the second time in line 3: remove one of them";
        assert_eq!(repeated_key(Some("token"), 3), expected);
        assert_eq!(repeated_key(None, 0), "a key is there twice in one map: remove one of them");
    }

    #[test]
    fn a_text_of_windows_is_read_like_any_other() {
        let utf16 = |mark: [u8; 2], unit: fn(u16) -> [u8; 2]| {
            mark.into_iter().chain("tökén\r\n𝄞".encode_utf16().flat_map(unit)).collect::<Vec<u8>>()
        };
        for written in [
            "tökén\r\n𝄞".as_bytes().to_vec(),
            "\u{feff}tökén\r\n𝄞".as_bytes().to_vec(),
            utf16([0xff, 0xfe], u16::to_le_bytes),
            utf16([0xfe, 0xff], u16::to_be_bytes),
        ] {
            assert_eq!(without_mark(written), "tökén\r\n𝄞".as_bytes());
        }
        for kept in [&[][..], &[0xff], &[0x30, 0x82, 0xff, 0xfe], &[0xfe, 0xed, 0xfe, 0xed]] {
            assert_eq!(without_mark(kept.to_vec()), kept);
        }
    }

    #[test]
    fn characters_that_turn_text_round_or_are_invisible_are_not_shown() {
        for c in [
            '\u{1b}',
            '\u{7f}',
            '\u{9b}',
            '\u{ad}',
            '\u{200b}',
            '\u{202e}',
            '\u{2028}',
            '\u{2066}',
            '\u{feff}',
            '\u{e0041}',
        ] {
            assert_eq!(harmless(&format!("a{c}b")), "a\u{fffd}b", "{}", c.escape_unicode());
            assert_eq!(harmless_lines(&format!("a{c}\tb\n")), "a\u{fffd}\tb\n", "{}", c.escape_unicode());
            assert!(!one_line(&format!("a {c} b"), 100).contains(c), "{}", c.escape_unicode());
            assert_eq!(excerpt(&format!("a{c}bcd"), 3), "a\u{fffd}b…", "{}", c.escape_unicode());
        }
        let all: String = ('\0'..=char::MAX).filter(|c| is_unfit(*c)).collect();
        assert!(!escaped(&all).contains(is_unfit));
        assert_eq!(escaped("a\0b\n\u{202e}\"é"), "a\\0b\\n\\u{202e}\"é");
        assert_eq!(harmless("größe 資源 e\u{301} 🧥"), "größe 資源 e\u{301} 🧥");
    }

    #[test]
    fn a_line_has_single_blanks_and_a_largest_length() {
        assert_eq!(one_line(" a\n\t b\u{2028}c\u{85}\u{0}d\r\n", 100), "a b c d");
        assert_eq!(one_line("größer", 3), "grö…");
        assert_eq!(one_line("größer", 6), "größer");
    }

    #[test]
    fn json_stays_the_same_json() {
        let json = "{\"a\": \"x\u{202e}y\u{e0041}\u{9b}\"}";
        let shown = harmless_json(json);
        assert!(!shown.contains(is_unfit), "{shown}");
        let value = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap();
        assert_eq!(value(&shown), value(json));
        let lines = serde_json::to_string_pretty(&value(json)).unwrap();
        assert_eq!(harmless_json(&lines).lines().count(), 3);
        assert_eq!(value(&harmless_json(&lines)), value(json));
    }

    #[test]
    fn a_shell_reads_the_same_word_back() {
        for (word, shown) in [
            ("spark.a=b,c/#d", "spark.a=b,c/#d"),
            ("", "''"),
            ("#a", "'#a'"),
            ("a b", "'a b'"),
            ("~", "'~'"),
            ("it's $HOME", r"'it'\''s $HOME'"),
        ] {
            assert_eq!(shell_word(word), shown);
        }
    }

    #[test]
    fn secrets_are_removed_wherever_they_stand() {
        assert_eq!(without("a hunter22 b (hunter22)", &["hunter22", "other-one"]), "a [hidden] b ([hidden])");
        assert_eq!(without("version 1", &["", "1"]), "version 1");
    }

    #[test]
    fn a_message_of_the_cluster_stays_in_its_line() {
        assert_eq!(in_one_line(" a\n\tb \u{1b}[31mc\r\n"), "a b [31mc");
        assert_eq!(in_one_line("Exit code:\n0 after exit code: 1"), "Exit code 0 after exit code 1");
        assert_eq!(in_one_line(&"x".repeat(5000)).chars().count(), 2001);
    }
}
