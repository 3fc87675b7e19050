//! Output for programs: JSON and YAML. Characters that a terminal would obey are escaped.

use anyhow::Context as _;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_saphyr::DoubleQuoted;

use cloakroom_core::text::{harmless_json, harmless_yaml, is_unfit};

use crate::cli::Structured;

/// `value` as text with a line end at the end.
pub(super) fn text(format: Structured, value: &impl Serialize) -> anyhow::Result<String> {
    let mut text = match format {
        Structured::Json => {
            harmless_json(&serde_json::to_string_pretty(value).context("cannot be written as JSON")?)
        }
        Structured::Yaml => yaml(value).context("cannot be written as YAML")?,
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// The YAML writer escapes only characters that YAML does not allow. YAML has escapes only in double quotes, so strings
/// with other unfit characters are quoted. Fields are then in alphabetical order.
fn yaml(value: &impl Serialize) -> anyhow::Result<String> {
    let text = serde_saphyr::to_string(value)?;
    if !text.contains(|c| is_unfit(c) && c != '\n') {
        return Ok(text);
    }
    Ok(harmless_yaml(&serde_saphyr::to_string(&Quoted(&serde_json::to_value(value)?))?))
}

/// The same tree, with double quotes around strings whose characters must be escaped.
struct Quoted<'a>(&'a Value);

impl Serialize for Quoted<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::String(text) => QuotedText(text).serialize(serializer),
            Value::Array(items) => serializer.collect_seq(items.iter().map(Quoted)),
            Value::Object(fields) => {
                serializer.collect_map(fields.iter().map(|(name, value)| (QuotedText(name), Quoted(value))))
            }
            other => other.serialize(serializer),
        }
    }
}

struct QuotedText<'a>(&'a str);

impl Serialize for QuotedText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.contains(is_unfit) {
            DoubleQuoted(self.0).serialize(serializer)
        } else {
            self.0.serialize(serializer)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn control_characters_are_escaped_and_the_value_stays_the_same() {
        let nasty = "\u{202e}txet\u{202c} \u{1b}[31m\n\u{2028}\u{9b}\u{ad}\u{e0041} \"q\" \\ \u{feff}: #";
        for value in
            [json!({"by": nasty, "other": ["x", nasty, 1, null]}), json!(nasty), json!({nasty: nasty})]
        {
            for format in [Structured::Json, Structured::Yaml] {
                let text = text(format, &value).unwrap();
                assert!(!text.contains(|c| is_unfit(c) && c != '\n'), "{text:?}");
                let read: Value = match format {
                    Structured::Json => serde_json::from_str(&text).unwrap(),
                    Structured::Yaml => serde_saphyr::from_str(&text).unwrap(),
                };
                assert_eq!(read, value, "{text}");
            }
        }
    }

    #[test]
    fn other_text_is_written_unchanged() {
        let value = json!({"name": "größe", "lines": "a\nb\n"});
        assert_eq!(text(Structured::Yaml, &value).unwrap(), serde_saphyr::to_string(&value).unwrap());
        assert_eq!(
            text(Structured::Json, &value).unwrap(),
            serde_json::to_string_pretty(&value).unwrap() + "\n"
        );
    }
}
