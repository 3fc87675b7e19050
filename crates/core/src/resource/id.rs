//! The public half of a ticket.

use std::fmt;

use rand::Rng;
use uuid::Uuid;

/// Names one staged resource: a random UUID (version 4), as in kubespark's protocol.
///
/// It is not a secret: it stands in URLs, in logs and in file names. Only a parsed id is ever joined to a path, so a
/// request cannot name a file outside the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResourceId(Uuid);

/// The text is not a resource id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a resource id: it is 36 characters like 4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1")]
pub struct InvalidResourceId;

impl ResourceId {
    /// Makes a new id from 122 bits of `random`.
    pub fn generate(random: &mut impl Rng) -> Self {
        let mut bytes = [0; 16];
        random.fill_bytes(&mut bytes);
        Self(uuid::Builder::from_random_bytes(bytes).into_uuid())
    }

    /// Reads only the canonical form: 36 characters, lower case, with hyphens. Any other spelling of a UUID is refused,
    /// so that each resource has exactly one name.
    pub fn parse(text: &str) -> Result<Self, InvalidResourceId> {
        let uuid = Uuid::try_parse(text).map_err(|_| InvalidResourceId)?;
        let id = Self(uuid);
        if id.to_string() == text { Ok(id) } else { Err(InvalidResourceId) }
    }

    /// The same, with letters of either case, as RFC 9562 (section 4) requires. For ids that people and other programs
    /// write.
    pub fn parse_any_case(text: &str) -> Result<Self, InvalidResourceId> {
        Self::parse(&text.to_ascii_lowercase())
    }

    /// The first two characters, which spread bundles over 256 folders.
    pub fn shard(&self) -> String {
        self.to_string()[..2].to_owned()
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.hyphenated(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_id_reads_back() {
        let id = ResourceId::generate(&mut rand::rng());
        assert_eq!(ResourceId::parse(&id.to_string()), Ok(id));
    }

    // Invariant: only a parsed id becomes a path.
    #[test]
    fn only_the_canonical_form_is_an_id() {
        for text in [
            "",
            "../../etc/passwd",
            "4C1A3C44-54D9-4A1F-9A6E-0B6F6FD7E7B1",
            "4c1a3c4454d94a1f9a6e0b6f6fd7e7b1",
            "{4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1}",
            "4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1\0",
        ] {
            assert_eq!(ResourceId::parse(text), Err(InvalidResourceId), "{text:?}");
        }
        assert!(ResourceId::parse(&"a".repeat(10_000)).is_err());
    }

    #[test]
    fn an_id_that_people_write_may_have_capitals_and_is_the_same_id() {
        let id = ResourceId::parse_any_case("4C1A3C44-54D9-4A1F-9A6E-0b6f6fd7e7b1").unwrap();
        assert_eq!(id.to_string(), "4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1");
        assert_eq!(ResourceId::parse_any_case("4C1A"), Err(InvalidResourceId));
    }
}
