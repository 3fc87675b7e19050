//! The recipe of a spliced bundle: which of its bytes the client sends, and which ones the server takes from a bundle that it has.
//! The ticket of that bundle, the *source*, is the right to read it.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::digest;
use crate::resource::ResourceSecret;

/// The header with the length of the recipe, which is the beginning of the body.
pub const RECIPE_LENGTH: &str = "x-cloakroom-recipe-length";

/// The longest recipe, in bytes.
pub const LONGEST_RECIPE: u64 = 256 << 10;

/// The most parts of a recipe.
pub const MOST_PARTS: usize = 4096;

/// The shortest range of the source, in bytes. In a bucket each range is a request of its own.
pub const LEAST_COPIED: u64 = 64 << 10;

/// The JSON of a recipe.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Recipe {
    /// The secret of the source.
    pub source_secret: String,
    /// The parts of the bundle, in order.
    pub parts: Vec<RecipePart>,
    /// How many bytes the bundle has.
    pub size_bytes: u64,
    /// SHA-256 of the bundle, in hexadecimal digits.
    pub sha256: String,
}

/// A part of a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum RecipePart {
    /// The next bytes that the client sends: how many.
    Send(u64),
    /// A range of the source: its first byte, and its length.
    Copy([u64; 2]),
}

/// A recipe whose parts make the bundle that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice {
    /// The secret of the source.
    pub source_secret: ResourceSecret,
    /// The parts of the bundle, in order.
    pub parts: Vec<RecipePart>,
    /// How many bytes the bundle has.
    pub size_bytes: u64,
    /// How many of them the client sends.
    pub sent_bytes: u64,
    /// SHA-256 of the bundle.
    pub sha256: [u8; 32],
}

/// A recipe is refused. The sentence names its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecipeError {
    /// It has too many parts.
    #[error("parts has {count} entries, and may have {MOST_PARTS}: upload the whole bundle")]
    TooManyParts {
        /// How many.
        count: usize,
    },
    /// A part has no bytes.
    #[error("parts[{index}] has no bytes: leave it out")]
    Empty {
        /// From 0.
        index: usize,
    },
    /// A range of the source is too short.
    #[error("parts[{index}] copies {length} bytes, and a range has {LEAST_COPIED} or more: send them")]
    Short {
        /// From 0.
        index: usize,
        /// In bytes.
        length: u64,
    },
    /// A range ends behind the source.
    #[error("parts[{index}] copies up to byte {end}, and the source has {size_bytes} bytes")]
    BeyondSource {
        /// From 0.
        index: usize,
        /// The byte behind the range; the largest number if it is larger.
        end: u64,
        /// Of the source.
        size_bytes: u64,
    },
    /// The parts make another size.
    #[error("sizeBytes is {size_bytes}, and the parts have {parts_bytes} bytes together")]
    OtherSize {
        /// What the recipe says.
        size_bytes: u64,
        /// The sum; the largest number if it is larger.
        parts_bytes: u64,
    },
    /// The digest is none.
    #[error("sha256 is no SHA-256 in 64 hexadecimal digits")]
    NoDigest,
}

impl Recipe {
    /// Checks what can be checked without the source.
    pub fn checked(self) -> Result<Splice, RecipeError> {
        let Self { source_secret, parts, size_bytes, sha256 } = self;
        if parts.len() > MOST_PARTS {
            return Err(RecipeError::TooManyParts { count: parts.len() });
        }
        for (index, part) in parts.iter().enumerate() {
            match *part {
                RecipePart::Send(0) | RecipePart::Copy([_, 0]) => return Err(RecipeError::Empty { index }),
                RecipePart::Copy([_, length]) if length < LEAST_COPIED => {
                    return Err(RecipeError::Short { index, length });
                }
                _ => {}
            }
        }
        let parts_bytes = parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(part.length()));
        if parts_bytes != Some(size_bytes) {
            return Err(RecipeError::OtherSize { size_bytes, parts_bytes: parts_bytes.unwrap_or(u64::MAX) });
        }
        let sent = parts.iter().filter(|part| matches!(part, RecipePart::Send(_)));
        let sent_bytes = sent.map(|part| part.length()).sum();
        let sha256 = digest::from_hex(&sha256).ok_or(RecipeError::NoDigest)?;
        let source_secret = ResourceSecret::from_text(source_secret);
        Ok(Splice { source_secret, parts, size_bytes, sent_bytes, sha256 })
    }
}

impl RecipePart {
    /// How many bytes of the bundle it is.
    pub fn length(self) -> u64 {
        match self {
            Self::Send(length) | Self::Copy([_, length]) => length,
        }
    }

    /// The range of the source; `None` if it is sent.
    pub fn copied(self) -> Option<Range<u64>> {
        match self {
            Self::Send(_) => None,
            Self::Copy([first, length]) => Some(first..first.saturating_add(length)),
        }
    }
}

impl Splice {
    /// Checks that all ranges are in a source of this size.
    pub fn check_source(&self, size_bytes: u64) -> Result<(), RecipeError> {
        for (index, part) in self.parts.iter().enumerate() {
            let RecipePart::Copy([first, length]) = *part else { continue };
            if first.checked_add(length).is_none_or(|end| end > size_bytes) {
                let end = first.saturating_add(length);
                return Err(RecipeError::BeyondSource { index, end, size_bytes });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHA256: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    fn recipe(parts: &str, size_bytes: u64) -> String {
        format!(r#"{{"sourceSecret":"hush","parts":[{parts}],"sizeBytes":{size_bytes},"sha256":"{SHA256}"}}"#)
    }

    fn checked(json: &str) -> Result<Splice, RecipeError> {
        serde_json::from_str::<Recipe>(json).unwrap().checked()
    }

    fn refused(json: &str) -> String {
        checked(json).unwrap_err().to_string()
    }

    #[test]
    fn a_recipe_says_what_is_sent_and_what_is_copied() {
        let json = recipe(r#"{"send":700},{"copy":[100,65536]},{"copy":[0,70000]},{"send":1}"#, 136_237);
        let splice = checked(&json).unwrap();
        assert_eq!(
            splice.parts,
            [
                RecipePart::Send(700),
                RecipePart::Copy([100, 65_536]),
                RecipePart::Copy([0, 70_000]),
                RecipePart::Send(1)
            ]
        );
        assert_eq!((splice.size_bytes, splice.sent_bytes), (136_237, 701));
        assert_eq!(splice.sha256[..3], [0, 1, 2]);
        assert_eq!(splice.source_secret, ResourceSecret::from_text("hush"));
        assert!(!format!("{splice:?}").contains("hush"));
        assert_eq!(splice.check_source(70_000), Ok(()));
        assert_eq!(
            splice.check_source(69_999).unwrap_err().to_string(),
            "parts[2] copies up to byte 70000, and the source has 69999 bytes"
        );
    }

    #[test]
    fn a_recipe_that_does_not_hold_together_is_refused_by_its_field() {
        for (parts, size_bytes, says) in [
            (r#"{"send":0}"#, 0, "parts[0] has no bytes"),
            (r#"{"send":1},{"copy":[0,65535]}"#, 65_536, "parts[1] copies 65535 bytes"),
            (r#"{"send":1},{"copy":[0,0]}"#, 1, "parts[1] has no bytes"),
            (r#"{"send":1}"#, 2, "sizeBytes is 2, and the parts have 1 bytes together"),
            ("", 1, "sizeBytes is 1, and the parts have 0 bytes together"),
            (
                r#"{"send":18446744073709551615},{"send":1}"#,
                u64::MAX,
                "sizeBytes is 18446744073709551615, and the parts have 18446744073709551615 bytes together",
            ),
        ] {
            let said = refused(&recipe(parts, size_bytes));
            assert!(said.starts_with(says), "{said}");
        }
        let sha256 = recipe(r#"{"send":1}"#, 1).replace(SHA256, &SHA256[1..]);
        assert_eq!(refused(&sha256), "sha256 is no SHA-256 in 64 hexadecimal digits");
        let many = vec![r#"{"send":1}"#; MOST_PARTS + 1].join(",");
        assert!(refused(&recipe(&many, 4097)).starts_with("parts has 4097 entries, and may have 4096"));
        let largest = checked(&recipe(r#"{"copy":[18446744073709551615,65536]}"#, 65_536));
        assert!(largest.unwrap().check_source(u64::MAX).is_err());
    }

    #[test]
    fn what_is_not_written_as_a_recipe_is_none() {
        for json in [
            r#"{"sourceSecret":"hush"}"#,
            &recipe(r#"{"other":1}"#, 1),
            &recipe(r#"{"send":-1}"#, 1),
            &recipe(r#"{"send":1,"copy":[0,65536]}"#, 1),
            &recipe(r#"{"copy":[0]}"#, 1),
            &recipe("", 0).replace("parts", "other"),
        ] {
            assert!(serde_json::from_str::<Recipe>(json).is_err(), "{json}");
        }
    }
}
