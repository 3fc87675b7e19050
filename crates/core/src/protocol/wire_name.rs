//! A stable name that came over the wire. The sender may be newer than this program.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::resource::Named;

/// A stable name on the wire, which is a string in JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WireName<T> {
    /// A name that this version knows.
    Known(T),
    /// A name that this version does not know, exactly as it came.
    Other(String),
}

impl<T: Named> WireName<T> {
    /// Reads a name. Any text is accepted.
    pub fn read(text: String) -> Self {
        match text.parse() {
            Ok(known) => Self::Known(known),
            Err(_) => Self::Other(text),
        }
    }

    /// The text, as it goes over the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(known) => known.name(),
            Self::Other(text) => text,
        }
    }
}

impl<T> From<T> for WireName<T> {
    fn from(known: T) -> Self {
        Self::Known(known)
    }
}

/// In the order of the text, so that a word that is not known stands where it would if it were.
impl<T: Named + Eq> Ord for WireName<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl<T: Named + Eq> PartialOrd for WireName<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Named> Deref for WireName<T> {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl<T: Named> fmt::Display for WireName<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl<T: Named> Serialize for WireName<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de, T: Named> Deserialize<'de> for WireName<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::problem::Code;
    use crate::resource::{DeletionReason, KeepReason, Unknown};

    fn read_and_written<T: Named>(json: &str) -> (WireName<T>, String) {
        let word: WireName<T> = serde_json::from_str(json).unwrap();
        let written = serde_json::to_string(&word).unwrap();
        (word, written)
    }

    #[test]
    fn a_word_that_is_known_is_its_value() {
        let (word, written) = read_and_written(r#""other-cluster""#);
        assert_eq!(word, KeepReason::OwnerUnknown(Unknown::OtherCluster).into());
        assert_eq!((word.to_string().as_str(), written.as_str()), ("other-cluster", r#""other-cluster""#));
    }

    #[test]
    fn a_word_of_a_newer_server_is_kept_shown_and_written_as_it_came() {
        for json in [r#""new-in-2030""#, r#""Orphaned ""#, r#""""#, r#""größe \n""#] {
            let text: String = serde_json::from_str(json).unwrap();
            let (word, written) = read_and_written::<DeletionReason>(json);
            assert_eq!(word, WireName::Other(text.clone()));
            assert_eq!((word.to_string(), word.as_str(), written.as_str()), (text.clone(), &*text, json));
            assert_eq!(read_and_written::<Code>(json).1, json);
        }
    }

    #[test]
    fn a_value_that_is_no_string_is_no_name() {
        for json in ["1", "null", r#"["unused"]"#] {
            assert!(serde_json::from_str::<WireName<DeletionReason>>(json).is_err(), "{json}");
        }
    }
}
