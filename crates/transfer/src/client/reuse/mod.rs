//! Sends only what changed: a client remembers what it has staged, and names ranges of an earlier bundle in place of the bytes that
//! the server has in it.

mod memory;
mod parts;

use std::fmt;

use bytes::Bytes;
use cloakroom_core::protocol::digest;
use cloakroom_core::protocol::recipe::{LONGEST_RECIPE, Recipe, RecipePart};
use jiff::Timestamp;

pub use memory::StagedBefore;
pub(super) use memory::{Known, Memory};

use super::packing::Packed;
use parts::common_parts;

/// Less than this, in bytes, is not worth another request.
pub(super) const LEAST_SPARED: u64 = 1 << 20;

/// How a bundle is put together from an earlier one and from what is sent.
pub(super) struct SplicePlan {
    /// The id of the earlier bundle.
    pub(super) source: String,
    /// When that was staged.
    pub(super) since: Timestamp,
    /// The recipe as it is sent. It has a secret.
    pub(super) recipe: Bytes,
    pub(super) parts: Vec<RecipePart>,
    /// The digest of the bundle.
    pub(super) sha256: [u8; 32],
    /// The secret of the earlier bundle.
    pub(super) secret: String,
}

impl SplicePlan {
    /// The best plan for what was `packed`; `None` if no earlier bundle spares enough.
    pub(super) fn best(packed: &Packed, known: &[Known]) -> Option<Self> {
        // Of equal ones the newest, which stays longest: it is the first, and the last one of equals is taken.
        let plans = known.iter().rev().filter_map(|known| Self::with(packed, known));
        let best = plans.max_by_key(Self::copied_bytes)?;
        (best.copied_bytes() >= LEAST_SPARED).then_some(best)
    }

    fn with(packed: &Packed, source: &Known) -> Option<Self> {
        let parts = common_parts(&packed.segments, &source.segments);
        let recipe = Recipe {
            source_secret: source.resource_secret.clone(),
            parts: parts.clone(),
            size_bytes: packed.size_bytes,
            sha256: digest::to_hex(&packed.sha256),
        };
        let recipe = Bytes::from(serde_json::to_vec(&recipe).ok()?);
        let fits = recipe.len() as u64 <= LONGEST_RECIPE;
        let Known { resource_id, resource_secret, staged_at, .. } = source.clone();
        let (source, since, secret) = (resource_id, staged_at, resource_secret);
        fits.then_some(Self { source, since, recipe, parts, sha256: packed.sha256, secret })
    }

    /// How many bytes the request has.
    pub(super) fn body_bytes(&self) -> u64 {
        self.recipe.len() as u64 + self.bytes_of(|part| part.copied().is_none())
    }

    /// How many bytes of the bundle the server has.
    pub(super) fn copied_bytes(&self) -> u64 {
        self.bytes_of(|part| part.copied().is_some())
    }

    fn bytes_of(&self, is_counted: impl Fn(&RecipePart) -> bool) -> u64 {
        self.parts.iter().filter(|part| is_counted(part)).map(|part| part.length()).sum()
    }
}

/// Without the recipe, which has a secret.
impl fmt::Debug for SplicePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SplicePlan")
            .field("source", &self.source)
            .field("parts", &self.parts)
            .finish_non_exhaustive()
    }
}
