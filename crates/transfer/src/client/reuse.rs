//! Sends only what changed: a client remembers what it has staged, and names ranges of an earlier bundle in place of the
//! bytes that the server has in it.

mod memory;
mod parts;

use std::fmt;

use bytes::Bytes;
use cloakroom_core::protocol::digest;
use cloakroom_core::protocol::problem::Code;
use cloakroom_core::protocol::recipe::{LONGEST_RECIPE, Recipe, RecipePart};
use cloakroom_core::protocol::v1::Ticket;
use cloakroom_core::size::format_size;
use jiff::Timestamp;

pub(super) use memory::Memory;
pub use memory::StagedBefore;

use super::failure::Failure;
use super::packing::{Contents, Packed};
use crate::bundle::Segment;
use memory::Known;
use parts::common_parts;

/// Less than this, in bytes, is not worth another request.
const LEAST_SPARED: u64 = 1 << 20;

/// What may be reused for one bundle. Why nothing is, it says at level debug.
pub(super) struct Reuse {
    memory: Option<Memory>,
    /// Earlier bundles, the newest first.
    known: Vec<Known>,
    /// The bundle, if it was compared with them.
    packed: Option<Packed>,
}

impl Reuse {
    pub(super) fn new(memory: Option<Memory>) -> Self {
        let known = memory.as_ref().map(Memory::known).unwrap_or_default();
        if memory.is_some() {
            tracing::debug!("remembered bundles of this server and namespace: {}", known.len());
        }
        Self { memory, known, packed: None }
    }

    /// Whether there is anything to compare a bundle with.
    pub(super) fn is_possible(&self) -> bool {
        !self.known.is_empty()
    }

    /// How to send this bundle.
    pub(super) fn compared(&mut self, packed: Packed) -> Contents {
        self.packed = Some(packed);
        self.contents()
    }

    fn contents(&self) -> Contents {
        let splice = self.packed.as_ref().and_then(|packed| SplicePlan::best(packed, &self.known));
        if splice.is_none() {
            let least = format_size(LEAST_SPARED);
            tracing::debug!("all of the bundle is sent: no remembered one has {least} in common with it");
        }
        splice.map_or(Contents::Whole(None), Contents::Splice)
    }

    /// How to send it after this failure of a splice; `None` if that does not depend on how it is sent.
    pub(super) fn after(&mut self, splice: &SplicePlan, failure: &Failure) -> Option<Contents> {
        if !is_about_splice(failure) {
            return None;
        }
        tracing::debug!("the server has not put the bundle together: {failure}");
        let has = |code| matches!(failure, Failure::Answered(answer) if answer.has_code(code));
        if [Code::NotFound, Code::Gone, Code::Internal].into_iter().any(has) {
            self.forget(&splice.source);
            return Some(self.contents());
        }
        if [Code::DigestMismatch, Code::InvalidRecipe].into_iter().any(has) {
            self.forget(&splice.source);
        }
        Some(Contents::Whole(None))
    }

    fn forget(&mut self, source: &str) {
        self.known.retain(|known| known.resource_id != source);
        if let Some(memory) = &self.memory {
            memory.forget(source);
        }
    }

    /// Remembers a bundle that is on the server, if a later one can spare enough by it.
    pub(super) fn remember(&self, ticket: &Ticket, segments: Vec<Segment>) {
        if let Some(memory) = self.memory.as_ref().filter(|_| ticket.size_bytes >= LEAST_SPARED) {
            memory.add(Known::new(ticket, segments));
        }
    }
}

/// Whether the server may take the bundle in another way. Without a token or a right it takes none, and a server that is
/// starting or stopping answers later.
fn is_about_splice(failure: &Failure) -> bool {
    match failure {
        Failure::Answered(answer) => {
            ![401, 403, 429, 503].contains(&answer.status) || answer.has_code(Code::Overloaded)
        }
        Failure::Foreign { .. } | Failure::Redirected { .. } => true,
        // It may wait for other splices, which an upload does not.
        failure => matches!(failure, Failure::NoAnswer { .. } | Failure::Stalled { .. }),
    }
}

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
