//! A JSON document as the same tree.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::document::{Kind, Node};
use super::scalar::Scalar;
use cloakroom_core::text::repeated_key;

/// How deep values may be in each other. No pod comes near it.
const MAX_DEPTH: usize = 100;

/// Whether Spark's library takes a text for JSON: by its first character, whatever the file is called
/// (`Serialization.unmarshal`).
pub(super) fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// Reads the first value of the text. Like Spark's library, it does not look at what follows.
pub(super) fn parse(text: &str) -> Result<Node, String> {
    let unreadable = |problem: &dyn fmt::Display| {
        format!(
            "it begins with `{{`, so it is JSON, which has no comments and no trailing commas, and it cannot be read: {problem}"
        )
    };
    if let Some(line) = line_of_depth(text) {
        return Err(unreadable(&format!("in line {line} a value is in more than {MAX_DEPTH} others")));
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let document = values.next().ok_or_else(|| unreadable(&"nothing is there"))?;
    let document = document.map_err(|error| unreadable(&error))?.get();
    Document::new(text).node(document).map_err(|problem| unreadable(&problem))
}

/// The line in which values are too deep in each other. It is looked for first, because reading goes over the text once for
/// each level.
fn line_of_depth(text: &str) -> Option<usize> {
    let (mut depth, mut line, mut is_quoted, mut is_escaped) = (0_usize, 1, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b'\n' => line += 1,
            b'[' | b'{' if !is_quoted => depth += 1,
            b']' | b'}' if !is_quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Some(line);
        }
    }
    None
}

/// The text of a document, and where its lines end.
struct Document<'t> {
    text: &'t str,
    line_ends: Vec<usize>,
}

impl<'t> Document<'t> {
    fn new(text: &'t str) -> Self {
        Self { text, line_ends: text.match_indices('\n').map(|(at, _)| at).collect() }
    }

    /// The line of a part of the text, from 1.
    fn line(&self, part: &'t str) -> u64 {
        let offset = part.as_ptr().addr() - self.text.as_ptr().addr();
        self.line_ends.partition_point(|end| *end < offset) as u64 + 1
    }

    /// The value that `raw`, a part of the text, is.
    fn node(&self, raw: &'t str) -> Result<Node, String> {
        let line = self.line(raw);
        let wrong = |error: serde_json::Error| format!("the value in line {line} is wrong: {error}");
        let kind = if raw.starts_with('"') {
            Kind::Scalar(Scalar::Text(serde_json::from_str(raw).map_err(wrong)?))
        } else if raw.starts_with('[') {
            let items: Vec<&RawValue> = serde_json::from_str(raw).map_err(wrong)?;
            let nodes = items.into_iter().map(|item| self.node(item.get()));
            Kind::List(nodes.collect::<Result<_, _>>()?)
        } else if raw.starts_with('{') {
            let Entries(entries) = serde_json::from_str(raw).map_err(wrong)?;
            self.refuse_repeated(&entries)?;
            let nodes = entries.into_iter().map(|(key, value)| Ok((key, self.node(value.get())?)));
            Kind::Map(nodes.collect::<Result<_, String>>()?)
        } else {
            Kind::Scalar(Scalar::in_json(raw))
        };
        Ok(Node { line, kind, reading: OnceCell::new() })
    }

    /// Refuses two entries with one key, as in YAML. Spark's library takes the last one without a word.
    fn refuse_repeated(&self, entries: &[(String, &'t RawValue)]) -> Result<(), String> {
        let mut keys = BTreeSet::new();
        match entries.iter().find(|(key, _)| !keys.insert(key)) {
            Some((key, value)) => Err(repeated_key(Some(key), self.line(value.get()))),
            None => Ok(()),
        }
    }
}

/// The entries of a map, in their order.
struct Entries<'t>(Vec<(String, &'t RawValue)>);

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<'de>, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Entries(entries))
    }
}
