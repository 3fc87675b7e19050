//! Reads YAML.

use std::cell::OnceCell;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;
use serde_saphyr::options::NonFiniteFloatPolicy;

use super::document::{Kind, Node};
use super::scalar::{Scalar, Source};
use crate::plan::yaml_reason;

/// The limit for expanded aliases. No real pod needs more, and a document of nested aliases ends here.
const MAX_REPLAYED_EVENTS: usize = 100_000;

/// Reads a text in YAML that has exactly one document.
pub(super) fn parse(text: &str) -> Result<Node, String> {
    // These options leave as many scalars as possible to `Scalar`, which knows the rules of Spark's library.
    let options = serde_saphyr::options! {
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_REPLAYED_EVENTS },
        with_snippet: false,
    };
    let documents: Vec<Spanned<Raw>> = serde_saphyr::from_multiple_with_options(text, options)
        .map_err(|error| format!("its YAML cannot be read: {}", yaml_reason::reason(&error)))?;
    match <[Spanned<Raw>; 1]>::try_from(documents) {
        Ok([document]) => Ok(document.value.into_node(document.defined, Source(text))),
        Err(documents) => Err(format!("it must have one document in it, and it has {}", documents.len())),
    }
}

/// The YAML library's reading of a place.
enum Raw {
    /// Quoted, or plain and neither a number nor a boolean nor null.
    Text(String),
    /// A plain number, boolean or null in the library's spelling. [`Source`] has the document's.
    Plain(String),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(String, Spanned<Raw>)>),
}

impl Raw {
    fn into_node(self, at: serde_saphyr::Location, source: Source<'_>) -> Node {
        let kind = match self {
            Self::Text(text) => Kind::Scalar(Scalar::Text(text)),
            Self::Plain(value) => Kind::Scalar(source.scalar(at.span(), &value)),
            Self::List(list) => {
                Kind::List(list.into_iter().map(|item| item.value.into_node(item.defined, source)).collect())
            }
            Self::Map(map) => Kind::Map(
                map.into_iter()
                    .map(|(key, item)| (key, item.value.into_node(item.defined, source)))
                    .collect(),
            ),
        };
        Node { line: at.line(), kind, reading: OnceCell::new() }
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("YAML")
    }

    fn visit_unit<E: Error>(self) -> Result<Raw, E> {
        Ok(Raw::Plain("null".to_owned()))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Plain(value.to_string()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Plain(value.to_string()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Plain(value.to_string()))
    }

    fn visit_i128<E: Error>(self, value: i128) -> Result<Raw, E> {
        Ok(Raw::Plain(value.to_string()))
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<Raw, E> {
        Ok(Raw::Plain(value.to_string()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Plain(value.to_string()))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Raw, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Raw::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Raw, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Raw::Map(map))
    }
}
