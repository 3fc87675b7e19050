//! The charges of an upload, and the memory for its owner.

use super::{Capacity, NoRoom};
use crate::ready::{Account, Charge, OwnerMemory};
use crate::staging::Share;
use cloakroom_core::lock::lock;
use cloakroom_core::resource::{Holder, Owner};

impl Capacity {
    /// The charges of an upload of `holder` that may bring `bytes`. Shares come first, because a used-up share concerns only
    /// its holder.
    pub(super) fn charges(
        &self,
        holder: Option<&Holder>,
        bytes: u64,
        free_on_disk: Option<u64>,
    ) -> Vec<Charge> {
        let (limits, most) = (&self.limits, self.limits.max_resources as u64);
        let bytes = self.counted(bytes);
        let mut charges = Vec::with_capacity(4);
        if let (Some(share), Some(holder)) = (limits.share, holder) {
            let room = self.room_of_share(share, self.ready.charged(&Account::Bytes), free_on_disk);
            charges.push(Charge {
                account: Account::ResourcesOf(holder.clone()),
                amount: 1,
                limit: Some(share.of(most)),
            });
            charges.push(Charge { account: Account::BytesOf(holder.clone()), amount: bytes, limit: room });
        }
        charges.push(Charge { account: Account::Resources, amount: 1, limit: Some(most) });
        let total = limits.capacity.max_total_size;
        charges.push(Charge { account: Account::Bytes, amount: bytes, limit: total });
        charges
    }

    /// Returns an error if all owners together, or those of its namespace, would have more memory than they may.
    pub(in crate::staging) fn check_owner(&self, owner: &Owner) -> Result<(), NoRoom> {
        let OwnerMemory { needed, taken, taken_in_namespace } = self.ready.owner_memory(owner);
        let limit = self.limits.owner_memory_bytes;
        if needed == 0 {
            return Ok(());
        }
        if let Some(limit) = self.limits.share.map(|share| share.of(limit))
            && taken_in_namespace.saturating_add(needed) > limit
        {
            let holder = Holder::namespace(owner.namespace());
            return Err(NoRoom::OwnersOf { holder, limit, taken: taken_in_namespace });
        }
        if taken.saturating_add(needed) > limit { Err(NoRoom::Owners { limit, taken }) } else { Ok(()) }
    }

    /// The room of one share, in bytes, while `taken` bytes are taken in all. It is a part of all room, taken or free, and
    /// never less than one bundle; `None` is no limit. A disk can hold what is written there, and what it has free.
    pub(super) fn room_of_share(&self, share: Share, taken: u64, free_on_disk: Option<u64>) -> Option<u64> {
        let limits = &self.limits.capacity;
        let written = taken.saturating_sub(lock(&self.flights).unwritten());
        let on_disk =
            free_on_disk.map(|free| written.saturating_add(free.saturating_sub(limits.min_free_space)));
        let room = [limits.max_total_size, on_disk].into_iter().flatten().min()?;
        Some(share.of(room).max(limits.max_resource_size))
    }
}
