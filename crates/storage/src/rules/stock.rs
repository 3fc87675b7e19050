//! What is stored and in flight, for metrics and status.

use std::time::Duration;

use super::{Parts, Staging, TOMBSTONES_FOR_EACH};
use crate::ready::Taken;
use crate::store::Space;
use cloakroom_core::metrics::{LimitUse, Limited, Stock};
use cloakroom_core::resource::State;
use cloakroom_core::text::chain;

/// How long one value is waited for. A disk that hangs must not hold up the other metrics.
const PATIENCE: Duration = Duration::from_secs(2);

impl Staging {
    /// Looks up what is stored and in flight. A value that cannot be found out is `None`, and the log has the cause.
    pub async fn stock(&self) -> Stock {
        let parts = &self.parts;
        let (uploads, downloads) = self.in_flight();
        let space =
            in_time("could not find out how much of the disk is free", parts.storage.space()).await.flatten();
        let (resources, taken) = (parts.ready.by_state(), parts.ready.taken());
        let tombstones = resources.get(State::Deleted.as_str()).copied().unwrap_or_default();
        Stock {
            limits: parts.uses(taken, space, tombstones),
            uploads: uploads as u64,
            downloads: downloads as u64,
            stored_bytes: taken.stored_bytes,
            strays: taken.strays.resources,
            stray_bytes: taken.strays.bytes,
            free_bytes: space.map(|space| space.free),
            resources,
        }
    }
}

/// What `looked_up` finds out; `None` if it fails or takes too long. Then the log has the line `failed`, with the cause.
async fn in_time<T, E: std::error::Error>(
    failed: &str,
    looked_up: impl Future<Output = Result<T, E>>,
) -> Option<T> {
    match tokio::time::timeout(PATIENCE, looked_up).await {
        Ok(Ok(found)) => return Some(found),
        Ok(Err(error)) => tracing::warn!(error = %chain(&error), "{failed}"),
        Err(_) => tracing::warn!(error = "no answer within 2 seconds", "{failed}"),
    }
    None
}

impl Parts {
    /// How much of each limit is used.
    fn uses(&self, taken: Taken, space: Option<Space>, tombstones: u64) -> Vec<LimitUse> {
        let most_tombstones = self.limits.max_resources.saturating_mul(TOMBSTONES_FOR_EACH) as u64;
        let tombstones = LimitUse { of: Limited::Tombstones, used: tombstones, limit: most_tombstones };
        let open = self.storage.disk.as_ref().and_then(|disk| disk.open_blobs());
        let open = open.map(|(used, limit)| LimitUse::from_counts(Limited::OpenBundles, used, limit));
        let memory = LimitUse {
            of: Limited::OwnerMemory,
            used: taken.owner_bytes,
            limit: self.limits.owner_memory_bytes,
        };
        let mut uses = vec![memory, tombstones];
        uses.extend(self.capacity.uses(taken, space));
        uses.extend(self.transfers.uses());
        uses.extend(open.into_iter().chain(self.storage.blobs.memory()));
        uses
    }
}
