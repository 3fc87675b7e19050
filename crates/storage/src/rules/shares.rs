//! The share that one holder may have of each limit, so that something is left for the others, and what an upload is charged.

use std::fmt;
use std::str::FromStr;

use super::room::{Capacity, NoRoom};
use crate::ready::{Account, Charge, OwnerMemory};
use cloakroom_core::resource::{Holder, Owner};

/// The part of each limit that one holder may have, in percent: 1 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share(u8);

/// The text is not a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a share: write a whole number of percent from 1% to 100%")]
pub struct ShareError;

impl Share {
    /// A quarter: three namespaces that take all they can still leave room for others.
    pub const DEFAULT: Self = Self(25);

    /// This share of `all`, rounded down, but at least 1. Otherwise a small limit would allow nothing.
    pub fn of(self, all: u64) -> u64 {
        let part = u128::from(all) * u128::from(self.0) / 100;
        u64::try_from(part).unwrap_or(u64::MAX).max(1)
    }

    /// The share in percent.
    pub fn percent(self) -> u8 {
        self.0
    }
}

impl FromStr for Share {
    type Err = ShareError;

    fn from_str(text: &str) -> Result<Self, ShareError> {
        let percent = text.strip_suffix('%').unwrap_or(text).parse().map_err(|_| ShareError)?;
        if (1..=100).contains(&percent) { Ok(Self(percent)) } else { Err(ShareError) }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

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
    pub(super) fn check_owner(&self, owner: &Owner) -> Result<(), NoRoom> {
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
        let written = taken.saturating_sub(self.unwritten());
        let on_disk =
            free_on_disk.map(|free| written.saturating_add(free.saturating_sub(limits.min_free_space)));
        let room = [limits.max_total_size, on_disk].into_iter().flatten().min()?;
        Some(share.of(room).max(limits.max_resource_size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_part_of_everything_and_never_nothing() {
        let share: Share = "25%".parse().unwrap();
        assert_eq!([100_000, 64, 3, 0].map(|all| share.of(all)), [25_000, 16, 1, 1]);
        assert_eq!(share.of(u64::MAX), u64::MAX / 4);
        assert_eq!("100".parse::<Share>().unwrap().of(7), 7);
        assert_eq!(share.to_string().parse(), Ok(share));
        for wrong in ["", "%", "0%", "101%", "2.5%", "-1%", "a quarter", "256"] {
            assert_eq!(wrong.parse::<Share>(), Err(ShareError), "{wrong}");
        }
    }
}
