//! The name of a row of the ledger, whether its id can be read or not.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use super::ResourceId;

/// Begins the name of a row whose id is damaged.
const DAMAGED: &str = "damaged-";

/// How many bytes of a damaged id stand in its name: as many as an id has. Rows that differ only after these bytes
/// share a name.
pub const NAMED_BYTES: u8 = 36;

/// The id of a row. If the id is damaged: `damaged-` and the first bytes of it, in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowName(String);

/// The text is not the name of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a resource id: it is 36 characters like 4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1, or damaged-… as cloakroom ls shows it"
)]
pub struct InvalidRowName;

impl RowName {
    /// Names a row by the bytes that stand in place of its id.
    pub fn damaged(id: &[u8]) -> Self {
        let mut name = DAMAGED.to_owned();
        for byte in id.iter().take(NAMED_BYTES.into()) {
            // Writing to a String does not fail.
            let _ = write!(name, "{byte:02x}");
        }
        Self(name)
    }

    /// The id; `None` if it is damaged.
    pub fn id(&self) -> Option<ResourceId> {
        ResourceId::parse(&self.0).ok()
    }

    /// The first bytes of a damaged id, in hexadecimal digits; `None` if the id is not damaged.
    pub fn damaged_digits(&self) -> Option<&str> {
        self.0.strip_prefix(DAMAGED)
    }
}

impl From<ResourceId> for RowName {
    fn from(id: ResourceId) -> Self {
        Self(id.to_string())
    }
}

impl FromStr for RowName {
    type Err = InvalidRowName;

    fn from_str(text: &str) -> Result<Self, InvalidRowName> {
        let name = Self(text.to_owned());
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let is_one = match name.damaged_digits() {
            Some(digits) => digits.len() <= 2 * usize::from(NAMED_BYTES) && digits.bytes().all(is_digit),
            None => name.id().is_some(),
        };
        if is_one { Ok(name) } else { Err(InvalidRowName) }
    }
}

impl fmt::Display for RowName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_named_by_its_id_or_by_the_bytes_of_a_damaged_one() {
        let id = "4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1";
        assert_eq!(id.parse::<RowName>().unwrap().id(), ResourceId::parse(id).ok());
        let damaged = RowName::damaged(b"\xff not an id");
        assert_eq!(damaged.to_string(), "damaged-ff206e6f7420616e206964");
        assert_eq!(damaged.to_string().parse(), Ok(damaged.clone()));
        assert!(damaged.id().is_none());
        assert_eq!(RowName::damaged(&[7; 1000]).to_string().len(), "damaged-".len() + 72);
        assert_eq!(RowName::damaged(&[7; 1000]).to_string().parse(), Ok(RowName::damaged(&[7; 36])));
        for wrong in ["", "damaged", "damaged-FF", "damaged-../..", "4C1A3C44-54D9-4A1F-9A6E-0B6F6FD7E7B1"] {
            assert_eq!(wrong.parse::<RowName>(), Err(InvalidRowName), "{wrong}");
        }
    }
}
