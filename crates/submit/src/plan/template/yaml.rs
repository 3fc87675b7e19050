//! A YAML document as a tree. Its scalars keep the spelling of the document.

use std::cell::OnceCell;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use serde_saphyr::Spanned;
use serde_saphyr::options::NonFiniteFloatPolicy;

use super::scalar::{Scalar, Source};
use crate::plan::yaml_reason;

/// The limit for expanded aliases. No real pod needs more, and a document of nested aliases ends here.
const MAX_REPLAYED_EVENTS: usize = 100_000;

/// One place of the document.
#[derive(Debug)]
pub(super) struct Node {
    pub line: u64,
    pub kind: Kind,
    /// The result of a type's reading. It is empty if no type knows the place.
    pub reading: OnceCell<Reading>,
}

/// The kind of a node, with its content.
#[derive(Debug)]
pub(super) enum Kind {
    Scalar(Scalar),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

/// A type's reading of a place.
#[derive(Debug)]
pub(super) enum Reading {
    /// The field is left out.
    Nothing,
    Value(Value),
    /// A list, or a map with the user's own keys, such as labels. Spark's library leaves out an empty one.
    Collection,
    /// A map with Kubernetes' own keys. It is kept even if it is empty, because `emptyDir: {}` has a meaning.
    Object,
}

impl Node {
    /// Reads a text in YAML or JSON that has exactly one document.
    pub fn parse(text: &str) -> Result<Self, String> {
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
            Ok([document]) => Ok(document.value.into_node(document.defined, Source::new(text))),
            Err(documents) => Err(format!("it must have one document in it, and it has {}", documents.len())),
        }
    }

    /// The node below a key.
    pub fn field(&self, key: &str) -> Option<&Self> {
        match &self.kind {
            Kind::Map(map) => map.iter().find(|(name, _)| name == key).map(|(_, node)| node),
            Kind::Scalar(_) | Kind::List(_) => None,
        }
    }

    /// The text of the scalar below a key.
    pub fn text(&self, key: &str) -> Option<String> {
        match &self.field(key)?.kind {
            Kind::Scalar(scalar) => scalar.text(),
            Kind::List(_) | Kind::Map(_) => None,
        }
    }

    /// The value of the node: by its type, or by the rules of YAML if no type knows it. It is `None` for a field that
    /// is left out.
    pub fn into_value(self) -> Option<Value> {
        let reading = self.reading.into_inner();
        let value = match (reading, self.kind) {
            (Some(Reading::Nothing), _) => return None,
            (Some(Reading::Value(value)), _) => value,
            (reading, Kind::List(list)) => {
                if reading.is_some() && list.is_empty() {
                    return None;
                }
                list.into_iter().filter_map(Self::into_value).collect()
            }
            (reading, Kind::Map(map)) => {
                if matches!(reading, Some(Reading::Collection)) && map.is_empty() {
                    return None;
                }
                let values = map.into_iter().filter_map(|(key, node)| Some((key, node.into_value()?)));
                Value::Object(values.collect::<Map<_, _>>())
            }
            (_, Kind::Scalar(scalar)) => scalar.into_value(),
        };
        Some(value)
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
