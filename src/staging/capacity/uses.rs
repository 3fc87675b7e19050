//! How much of each limit is used, for whoever watches the server.

use std::collections::HashSet;

use super::account::Taken;
use super::{Account, Capacity};
use crate::metrics::{LimitUse, Limited};
use crate::staging::{Holder, Limits, Share};
use crate::store::Space;

impl Capacity {
    /// How much of its limits is used, given how much the disk has. Of the disk everything counts that is on it, whoever
    /// wrote it: that is what leaves no room for uploads.
    pub(in crate::staging) fn uses(&self, space: Option<Space>) -> Vec<LimitUse> {
        let (limits, account) = (&self.limits, self.account());
        let Taken { uploads, resources, bytes } = account.taken();
        let mut uses = vec![
            LimitUse { of: Limited::Uploads, used: uploads, limit: limits.max_concurrent_uploads as u64 },
            LimitUse { of: Limited::Resources, used: resources, limit: limits.max_resources as u64 },
        ];
        let total = limits.capacity.max_total_size;
        uses.extend(total.map(|limit| LimitUse { of: Limited::TotalSize, used: bytes, limit }));
        uses.extend(space.map(|Space { free, used }| LimitUse {
            of: Limited::Disk,
            used: used.saturating_add(account.unwritten()),
            limit: used.saturating_add(free).saturating_sub(limits.capacity.min_free_space),
        }));
        if let Some(share) = limits.share {
            uses.extend(account.uses_of_share(share, limits, space.map(|space| space.free)));
        }
        uses
    }
}

impl Account {
    /// Of each share the most that one holder has.
    fn uses_of_share(&self, share: Share, limits: &Limits, free_on_disk: Option<u64>) -> Vec<LimitUse> {
        let most = self.most();
        let of = |of, used, all: usize| LimitUse { of, used, limit: share.of(all as u64) };
        let mut uses = vec![
            of(Limited::ShareOfUploads, most.uploads, limits.max_concurrent_uploads),
            of(Limited::ShareOfResources, most.resources, limits.max_resources),
        ];
        let room = self.room_of_share(share, limits, free_on_disk);
        uses.extend(room.map(|limit| LimitUse { of: Limited::ShareOfRoom, used: most.bytes, limit }));
        uses
    }

    /// The most uploads, resources and bytes that one holder has, each by itself.
    fn most(&self) -> Taken {
        let of_uploads = self.flights.values().filter_map(|flight| flight.holder.as_ref());
        let uploading: HashSet<&Holder> = of_uploads.collect();
        let stored = self.stored_by.iter().filter(|(holder, _)| !uploading.contains(holder));
        let stored =
            stored.map(|(_, stored)| Taken { uploads: 0, resources: stored.resources, bytes: stored.bytes });
        let all = stored.chain(uploading.iter().map(|holder| self.taken_by(holder)));
        all.fold(Taken::default(), |most, taken| Taken {
            uploads: most.uploads.max(taken.uploads),
            resources: most.resources.max(taken.resources),
            bytes: most.bytes.max(taken.bytes),
        })
    }
}
