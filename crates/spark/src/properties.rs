//! Reads Java properties files as `java.util.Properties.load(Reader)` does, with line numbers for messages.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use thiserror::Error;

mod lines;
#[cfg(test)]
mod tests;
mod text;

pub use text::properties_text;

/// The blanks of a properties file. They separate a key from its value, as `=` and `:` do, and are skipped at the
/// beginning of a line.
const BLANKS: [char; 3] = [' ', '\t', '\u{c}'];

/// The properties of one file: each key with its value and its line.
///
/// If a key is set twice, it has the last value, as in Java. `Debug` leaves out the values, because they may be
/// secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Properties {
    file: String,
    entries: BTreeMap<String, Entry>,
}

#[derive(Clone, PartialEq, Eq)]
struct Entry {
    value: String,
    line: usize,
}

/// One property of a file, as [`Properties::iter`] returns it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Property<'a> {
    /// The key, unescaped.
    pub key: &'a str,
    /// The value, unescaped and trimmed.
    pub value: &'a str,
    /// The line number, from 1, on which the property begins.
    pub line: usize,
}

/// The reason why a properties file cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PropertiesError {
    /// Java refuses such a file with "Malformed \uxxxx encoding".
    #[error(
        "{file}, line {line}: `\\u` is not followed by four hexadecimal digits; \
         write the code of a character, such as \\u00e9, or `\\\\u` for a backslash and a `u`"
    )]
    MalformedUnicodeEscape { file: String, line: usize },
    /// Java keeps half a surrogate pair in its strings, but text files and command lines cannot contain one.
    #[error(
        "{file}, line {line}: a `\\u` escape is one half of a surrogate pair without the other; \
         write both halves, such as \\ud83d\\ude00, or the character itself"
    )]
    LoneSurrogate { file: String, line: usize },
}

impl Properties {
    /// Parses the text of a properties file. `file` is its name for messages.
    ///
    /// The rules are those of `java.util.Properties.load(Reader)`. Values are then trimmed as in
    /// `org.apache.spark.util.Utils.getPropertiesFromFile`: blanks and all characters below the blank go. Carriage
    /// returns and line feeds stay, because they can only come from escapes.
    pub fn parse(file: impl AsRef<Path>, text: &str) -> Result<Self, PropertiesError> {
        let file = file.as_ref().display().to_string();
        let mut entries = BTreeMap::new();
        for (line, logical) in lines::logical_lines(text) {
            let (key, value) = lines::split(&logical);
            let describe = |fault: lines::Fault| fault.at(&file, line);
            let key = lines::unescape(key).map_err(describe)?;
            let value = trim(&lines::unescape(value).map_err(describe)?).to_owned();
            entries.insert(key, Entry { value, line });
        }
        Ok(Self { file, entries })
    }

    /// The file's name, as it was given to [`Properties::parse`].
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The value of a key; empty if the file gives it none.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.entries.get(key).map(|entry| entry.value.as_str())
    }

    /// The line number, from 1, on which the key's last setting begins.
    pub fn line_of(&self, key: &str) -> Option<usize> {
        self.entries.get(key).map(|entry| entry.line)
    }

    /// Every property, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = Property<'_>> {
        let mut all: Vec<_> = self
            .entries
            .iter()
            .map(|(key, entry)| Property { key, value: &entry.value, line: entry.line })
            .collect();
        all.sort_by_key(|property| property.line);
        all.into_iter()
    }
}

impl fmt::Debug for Properties {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Properties")
            .field("file", &self.file)
            .field("keys", &self.entries.keys())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Property<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Property")
            .field("key", &self.key)
            .field("line", &self.line)
            .finish_non_exhaustive()
    }
}

/// `Utils.trimExceptCRLF` of Spark.
fn trim(value: &str) -> &str {
    value.trim_matches(|character| character <= ' ' && character != '\r' && character != '\n')
}
