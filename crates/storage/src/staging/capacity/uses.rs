//! How much of each limit is used, for metrics and status.

use super::Capacity;
use crate::ready::Taken;
use crate::store::Space;
use cloakroom_core::lock::lock;
use cloakroom_core::metrics::{LimitUse, Limited};

impl Capacity {
    /// How much of each limit is used. `taken` is from the ledger, and `space` from the disk. On the disk all bytes
    /// count, even those of other programs, because they leave less room for uploads.
    pub(in crate::staging) fn uses(&self, taken: Taken, space: Option<Space>) -> Vec<LimitUse> {
        let (limits, uploads) = (&self.limits, self.uploads());
        let of = |of, used, limit| LimitUse { of, used, limit };
        let mut uses = vec![
            LimitUse::from_counts(Limited::Uploads, uploads, limits.max_concurrent_uploads),
            of(Limited::Resources, taken.resources, limits.max_resources as u64),
        ];
        let total = limits.capacity.max_total_size;
        uses.extend(total.map(|limit| of(Limited::TotalSize, taken.bytes, limit)));
        uses.extend(space.map(|Space { free, used }| LimitUse {
            of: Limited::Disk,
            used: used.saturating_add(lock(&self.flights).unwritten()),
            limit: used.saturating_add(free).saturating_sub(limits.capacity.min_free_space),
        }));
        uses.extend(self.uses_of_share(taken, space));
        uses
    }

    /// For each share, how much the holder with the most of it has.
    fn uses_of_share(&self, taken: Taken, space: Option<Space>) -> Vec<LimitUse> {
        let Some(share) = self.limits.share else { return Vec::new() };
        let of = |of, used, all: usize| LimitUse { of, used, limit: share.of(all as u64) };
        let mut uses = vec![
            of(Limited::ShareOfUploads, lock(&self.flights).most(), self.limits.max_concurrent_uploads),
            of(Limited::ShareOfResources, taken.most_resources, self.limits.max_resources),
            LimitUse {
                of: Limited::ShareOfOwnerMemory,
                used: taken.most_owner_bytes,
                limit: share.of(self.limits.owner_memory_bytes),
            },
        ];
        let room = self.room_of_share(share, taken.bytes, space.map(|space| space.free));
        uses.extend(room.map(|limit| LimitUse { of: Limited::ShareOfRoom, used: taken.most_bytes, limit }));
        uses
    }
}
