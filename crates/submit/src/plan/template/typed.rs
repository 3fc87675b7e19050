//! Reads a document by Kubernetes' types. The types decide which kind of value each field has. Unknown fields stay as
//! they are.

use std::fmt;

use serde::de::value::{StrDeserializer, UnitDeserializer};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::Value;
use thiserror::Error as ThisError;

use super::document::{Kind, Node, Reading};
use super::scalar::{Scalar, Wrong};

/// A valid time for the type. The text of the document is what is sent.
const SOME_TIME: &str = "1970-01-01T00:00:00Z";
const TEXT: Wrong = "it must be a text";

/// Reads every place of the document as the type `T` wants it, and stores each result in the document's node.
pub(super) fn read<'n, T: Deserialize<'n>>(document: &'n Node, octal_modes: bool) -> Result<(), String> {
    let place = FieldPath { above: None, name: Name::Document };
    T::deserialize(Asking { node: document, place: &place, octal_modes })
        .map(drop)
        .map_err(|refused| refused.0)
}

/// Why the document is not of that type.
#[derive(Debug, ThisError)]
#[error("{0}")]
struct Refused(String);

impl Error for Refused {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

/// The path to a place of the document, for messages.
struct FieldPath<'p> {
    above: Option<&'p FieldPath<'p>>,
    name: Name<'p>,
}

enum Name<'p> {
    Document,
    Field(&'p str),
    Item(usize),
}

impl fmt::Display for FieldPath<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(above) = self.above {
            above.fmt(formatter)?;
        }
        match self.name {
            Name::Document => Ok(()),
            Name::Item(index) => write!(formatter, "[{index}]"),
            Name::Field(name) if self.above.is_some_and(|above| above.above.is_some()) => {
                write!(formatter, ".{name}")
            }
            Name::Field(name) => formatter.write_str(name),
        }
    }
}

/// A place of the document as serde reads it for a type.
#[derive(Clone, Copy)]
struct Asking<'n, 'p> {
    node: &'n Node,
    place: &'p FieldPath<'p>,
    /// Whether modes of files may be octal ([`Scalar::mode`]).
    octal_modes: bool,
}

impl<'n> Asking<'n, '_> {
    fn store(&self, reading: Reading) {
        // serde asks for each place once, so the cell is empty.
        let _ = self.node.reading.set(reading);
    }

    fn refuse(&self, wrong: Wrong) -> Refused {
        let (place, line) = (self.place, self.node.line);
        Refused(match &self.node.kind {
            Kind::Scalar(scalar) => {
                let text = scalar.text().unwrap_or_else(|| "null".to_owned());
                format!("`{place}` in line {line} is `{text}`: {wrong}")
            }
            Kind::List(_) => format!("`{place}` in line {line} is a list: {wrong}"),
            Kind::Map(_) => format!("`{place}` in line {line} is a map: {wrong}"),
        })
    }

    fn scalar(&self, wrong: Wrong) -> Result<&'n Scalar, Refused> {
        match &self.node.kind {
            Kind::Scalar(scalar) => Ok(scalar),
            Kind::List(_) | Kind::Map(_) => Err(self.refuse(wrong)),
        }
    }

    fn text(&self) -> Result<String, Refused> {
        let text = self.scalar(TEXT)?.text();
        self.store(Reading::Value(text.clone().map_or(Value::Null, Value::String)));
        Ok(text.unwrap_or_default())
    }

    /// Reads the scalar and stores the result.
    fn read_scalar<T: Copy + Into<Value>>(
        &self,
        wrong: Wrong,
        read: impl Fn(&Scalar) -> Result<T, Wrong>,
    ) -> Result<T, Refused> {
        let value = read(self.scalar(wrong)?).map_err(|wrong| self.refuse(wrong))?;
        self.store(Reading::Value(value.into()));
        Ok(value)
    }

    fn small_number(&self) -> Result<i32, Refused> {
        let is_mode = matches!(self.place.name, Name::Field("mode" | "defaultMode"));
        self.read_scalar("it must be a whole number", |scalar| {
            let number = if self.octal_modes && is_mode { scalar.mode() } else { scalar.whole() };
            i32::try_from(number?).map_err(|_| "it must be a number of 32 bits")
        })
    }
}

impl<'de> Deserializer<'de> for Asking<'de, '_> {
    type Error = Refused;

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        if matches!(self.node.kind, Kind::Scalar(Scalar::Null)) {
            self.store(Reading::Nothing);
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_bool(self.read_scalar("it must be true or false", Scalar::boolean)?)
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_i32(self.small_number()?)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_i64(self.read_scalar("it must be a whole number", Scalar::whole)?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_string(self.text()?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_string(self.text()?)
    }

    /// Of the types in a pod, only `IntOrString` calls this: the number or the name of a port.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        const WRONG: Wrong = "it must be a number or a name";
        match self.scalar(WRONG)? {
            Scalar::Text(_) => visitor.visit_string(self.text()?),
            Scalar::Whole(_) => visitor.visit_i32(self.small_number()?),
            Scalar::Null | Scalar::Boolean(_) | Scalar::Fraction(_) => Err(self.refuse(WRONG)),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        match name {
            "Quantity" => {
                if self.text()?.is_empty() && !matches!(self.node.kind, Kind::Scalar(Scalar::Null)) {
                    return Err(self.refuse("it must be a quantity, such as 500m or 2Gi"));
                }
                visitor.visit_newtype_struct(StrDeserializer::new("0"))
            }
            "Time" | "MicroTime" => {
                self.text()?;
                visitor.visit_newtype_struct(StrDeserializer::new(SOME_TIME))
            }
            // Any value is allowed and stays as it is.
            "FieldsV1" => visitor.visit_newtype_struct(UnitDeserializer::new()),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        let Kind::List(list) = &self.node.kind else { return Err(self.refuse("it must be a list")) };
        self.store(Reading::Collection);
        visitor.visit_seq(Items { list: list.iter().enumerate(), of: self })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        let Kind::Map(map) = &self.node.kind else { return Err(self.refuse("it must be a map")) };
        self.store(Reading::Collection);
        visitor.visit_map(Entries { map: map.iter(), next: None, of: self })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        let Kind::Map(map) = &self.node.kind else { return Err(self.refuse("it must be a map")) };
        self.store(Reading::Object);
        visitor.visit_map(Entries { map: map.iter(), next: None, of: self })
    }

    /// A field that the type does not know. No result is stored, so it stays as YAML has it.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        i8 i16 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct enum identifier
    }
}

struct Items<'n, 'p> {
    list: std::iter::Enumerate<std::slice::Iter<'n, Node>>,
    of: Asking<'n, 'p>,
}

impl<'n> SeqAccess<'n> for Items<'n, '_> {
    type Error = Refused;

    fn next_element_seed<T: DeserializeSeed<'n>>(&mut self, seed: T) -> Result<Option<T::Value>, Refused> {
        let Some((index, node)) = self.list.next() else { return Ok(None) };
        let place = FieldPath { above: Some(self.of.place), name: Name::Item(index) };
        seed.deserialize(Asking { node, place: &place, octal_modes: self.of.octal_modes }).map(Some)
    }
}

struct Entries<'n, 'p> {
    map: std::slice::Iter<'n, (String, Node)>,
    next: Option<&'n (String, Node)>,
    of: Asking<'n, 'p>,
}

impl<'n> MapAccess<'n> for Entries<'n, '_> {
    type Error = Refused;

    fn next_key_seed<K: DeserializeSeed<'n>>(&mut self, seed: K) -> Result<Option<K::Value>, Refused> {
        self.next = self.map.next();
        let Some((key, _)) = self.next else { return Ok(None) };
        seed.deserialize(key.as_str().into_deserializer()).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'n>>(&mut self, seed: T) -> Result<T::Value, Refused> {
        let Some((key, node)) = self.next.take() else {
            return Err(Refused::custom("a value without a key"));
        };
        let place = FieldPath { above: Some(self.of.place), name: Name::Field(key) };
        seed.deserialize(Asking { node, place: &place, octal_modes: self.of.octal_modes })
    }
}
