//! A document of YAML or JSON as a tree. Its scalars keep the spelling of the document.

use std::cell::OnceCell;

use serde_json::{Map, Value};

use super::scalar::Scalar;

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
