//! One object of the log: the rows that a transaction has changed, as text that an admin can read. The first line is a header,
//! each line after it has one row, and the last line has the digest of all lines before it.

use std::collections::BTreeMap;
use std::str::FromStr as _;

use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Position;
use crate::stamp::Installation;
use cloakroom_core::protocol::digest::to_hex;
use cloakroom_core::text::excerpt;

/// In characters.
const LONGEST_PROBLEM: usize = 200;

/// The values of a row, or of its key, by the names of their columns.
pub type Columns = BTreeMap<String, Value>;

/// The changes of one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The installation that the ledger belongs to.
    pub installation: Installation,
    /// Where it stands in the log.
    pub at: Position,
    /// The form of the tables that the rows are from: the version of the last migration.
    pub form: i64,
    /// The changed rows, in no order. None of them is named twice.
    pub changes: Vec<RowChange>,
}

/// What became of a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowChange {
    /// The name of the table.
    pub table: String,
    /// The primary key.
    pub key: Columns,
    /// All of the row; `None` if it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<Columns>,
}

/// A value of SQLite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// No value.
    Null,
    /// A whole number.
    Integer(i64),
    /// Text.
    Text(String),
    /// Bytes.
    Blob {
        /// In base64.
        #[serde(with = "in_base64")]
        blob: Vec<u8>,
    },
    /// Text that is damaged, because it is not in UTF-8.
    DamagedText {
        /// In base64.
        #[serde(with = "in_base64")]
        text: Vec<u8>,
    },
}

/// The object is not a whole group.
#[derive(Debug, thiserror::Error)]
pub enum DamagedGroup {
    /// It ends too early, or a byte of it is another one.
    #[error("its digest is not that of its content")]
    Digest,
    /// It is written in a way that this version does not know.
    #[error("line {line} is not written as cloakroom writes it: {problem}")]
    Line {
        /// The number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
}

/// The first line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    installation: String,
    epoch: u64,
    number: u64,
    form: i64,
}

/// The last line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Footer {
    sha256: String,
}

impl Group {
    /// The bytes of the object.
    pub fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        let header = Header {
            installation: self.installation.to_string(),
            epoch: self.at.epoch,
            number: self.at.number,
            form: self.form,
        };
        let mut text = Vec::new();
        let mut line = |content: &[u8]| {
            text.extend_from_slice(content);
            text.push(b'\n');
        };
        line(&serde_json::to_vec(&header)?);
        for change in &self.changes {
            line(&serde_json::to_vec(change)?);
        }
        let footer = Footer { sha256: to_hex(&Sha256::digest(&text).into()) };
        text.extend_from_slice(&serde_json::to_vec(&footer)?);
        text.push(b'\n');
        Ok(text)
    }

    /// Reads an object.
    pub fn decode(bytes: &[u8]) -> Result<Self, DamagedGroup> {
        let without_end = bytes.strip_suffix(b"\n").ok_or(DamagedGroup::Digest)?;
        let end = without_end.iter().rposition(|byte| *byte == b'\n').ok_or(DamagedGroup::Digest)? + 1;
        let (content, footer) = without_end.split_at(end);
        let footer: Footer = serde_json::from_slice(footer).map_err(|_| DamagedGroup::Digest)?;
        if footer.sha256 != to_hex(&Sha256::digest(content).into()) {
            return Err(DamagedGroup::Digest);
        }
        let mut lines = content.split_inclusive(|byte| *byte == b'\n').enumerate();
        let (_, first) = lines.next().ok_or(DamagedGroup::Digest)?;
        let header: Header = parsed(0, first)?;
        let installation = Installation::from_str(&header.installation)
            .map_err(|error| DamagedGroup::Line { line: 1, problem: error.to_string() })?;
        Ok(Self {
            installation,
            at: Position { epoch: header.epoch, number: header.number },
            form: header.form,
            changes: lines.map(|(index, line)| parsed(index, line)).collect::<Result<_, _>>()?,
        })
    }
}

fn parsed<'a, T: Deserialize<'a>>(index: usize, line: &'a [u8]) -> Result<T, DamagedGroup> {
    serde_json::from_slice(line).map_err(|error| {
        // It repeats a part of the line.
        DamagedGroup::Line { line: index + 1, problem: excerpt(&error.to_string(), LONGEST_PROBLEM) }
    })
}

mod in_base64 {
    use super::{BASE64, Deserialize};
    use base64::Engine as _;
    use serde::de::Error as _;
    use serde::{Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        BASE64.decode(text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group() -> Group {
        let key = |key: &str| Columns::from([("key".to_owned(), Value::Text(key.to_owned()))]);
        let row = [
            ("key", Value::Text("a \"b\"\n\u{0}ü".into())),
            ("blob", Value::Blob { blob: vec![0, 255, b'\n'] }),
            ("text", Value::DamagedText { text: vec![0xff] }),
            ("none", Value::Null),
            ("least", Value::Integer(i64::MIN)),
        ];
        let row = row.map(|(column, value)| (column.to_owned(), value)).into();
        Group {
            installation: "00000000000000ab".parse().unwrap(),
            at: Position { epoch: 3, number: 14 },
            form: 1,
            changes: vec![
                RowChange { table: "strays".into(), key: key("a"), row: Some(row) },
                RowChange { table: "strays".into(), key: key("gone"), row: None },
            ],
        }
    }

    #[test]
    fn a_group_is_read_as_it_was_written() {
        let group = group();
        let bytes = group.encode().unwrap();
        assert_eq!(Group::decode(&bytes).unwrap(), group);
        let text = String::from_utf8(bytes).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[0], r#"{"installation":"00000000000000ab","epoch":3,"number":14,"form":1}"#);
        assert_eq!(lines[2], r#"{"table":"strays","key":{"key":"gone"}}"#);
    }

    #[test]
    fn each_cut_and_each_changed_byte_is_noticed() {
        let bytes = group().encode().unwrap();
        for length in 0..bytes.len() {
            assert!(Group::decode(&bytes[..length]).is_err(), "the first {length} bytes");
        }
        for index in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[index] ^= 1;
            assert!(Group::decode(&changed).is_err(), "byte {index}");
        }
    }

    /// Of a group with one more field in its second line.
    fn refusal_of(field: &str) -> String {
        let text = format!(
            r#"{{"installation":"00000000000000ab","epoch":1,"number":1,"form":1}}
{{"table":"strays","key":{{}},"{field}":1}}
"#
        );
        let sha256 = to_hex(&Sha256::digest(&text).into());
        Group::decode(format!("{text}{{\"sha256\":\"{sha256}\"}}\n").as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_line_of_a_newer_version_is_refused_by_its_number() {
        let refused = refusal_of("mode");
        assert!(
            refused.starts_with("line 2 is not written as cloakroom writes it: unknown field `mode`"),
            "{refused}"
        );
    }

    #[test]
    fn a_refusal_is_short_and_fit_to_be_shown() {
        let refused = refusal_of(&format!(r"\u001b[2J{}", "mode".repeat(999)));
        assert!(refused.contains("unknown field") && refused.len() < 300, "{refused}");
        assert!(!refused.contains('\u{1b}'), "{refused:?}");
    }
}
