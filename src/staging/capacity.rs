//! What uploads may take: places, resources and room, of everything and of each holder's share.

mod account;
mod flight;
mod hold;
mod no_room;
mod overdue;
#[cfg(test)]
mod tests;
mod uses;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{Holder, Limits};
use crate::ledger::Stored;
use crate::resource::ResourceId;
use account::Ask;
use flight::Flight;

pub(super) use account::Account;
pub(super) use hold::Hold;
pub use no_room::NoRoom;
pub(super) use no_room::Shortage;
pub(super) use overdue::Room;

/// A resource counts as this many bytes at least: its row, its names and its place in memory cost room too.
pub const LEAST_CHARGE: u64 = 4 << 10;

/// How much room there is. All in bytes.
#[derive(Debug, Clone, Copy)]
pub struct CapacityLimits {
    /// Of one bundle.
    pub max_resource_size: u64,
    /// Of all bundles together; `None` is no limit.
    pub max_total_size: Option<u64>,
    /// Of the disk, to leave free.
    pub min_free_space: u64,
    /// What each resource counts as at least: [`LEAST_CHARGE`].
    pub least_charge: u64,
}

/// The account of what is taken.
#[derive(Debug)]
pub(super) struct Capacity {
    limits: Limits,
    account: Mutex<Account>,
    /// An upload is over.
    ended: Notify,
}

/// What an upload is when it begins.
#[derive(Debug, Clone)]
pub(super) struct Beginning {
    pub(super) id: ResourceId,
    pub(super) holder: Option<Holder>,
    pub(super) announced: Option<u64>,
    /// By the monotonic clock.
    pub(super) at: Duration,
}

/// What a bundle of `bytes` counts as.
fn charge(limits: &Limits, bytes: u64) -> u64 {
    bytes.max(limits.capacity.least_charge)
}

impl Capacity {
    /// `stored` is what each namespace has.
    pub(super) fn new(limits: Limits, stored: &BTreeMap<String, Stored>) -> Self {
        let mut account = Account::default();
        account.set_stored(stored, limits.share.is_some());
        Self { limits, account: Mutex::new(account), ended: Notify::new() }
    }

    pub(super) fn max_resource_size(&self) -> u64 {
        self.limits.capacity.max_resource_size
    }

    /// What acknowledged bundles count as, in bytes.
    pub(super) fn stored_bytes(&self) -> u64 {
        self.account().stored.bytes
    }

    /// Holds a place for an upload and the room that it announced, given how much the disk has. `account` is this one's,
    /// which [`Self::take_room`] has locked.
    pub(super) fn begin(
        self: &Arc<Self>,
        account: &mut Account,
        beginning: Beginning,
        free_on_disk: Option<u64>,
    ) -> Result<Hold, Shortage> {
        let Beginning { id, holder, announced, at } = beginning;
        let holder = holder.filter(|_| self.limits.share.is_some());
        let bytes = charge(&self.limits, announced.unwrap_or(0));
        account.check(Ask { holder: holder.as_ref(), is_new: true, bytes }, &self.limits, free_on_disk)?;
        let flight = Flight {
            holder,
            reserved: bytes,
            unwritten: bytes,
            announced,
            received: 0,
            began: at,
            end: CancellationToken::new(),
        };
        account.flights.insert(id, flight);
        Ok(Hold { capacity: Arc::clone(self), id })
    }

    pub(super) fn is_uploading(&self, id: ResourceId) -> bool {
        self.account().flights.contains_key(&id)
    }

    pub(super) fn uploads(&self) -> usize {
        self.account().flights.len()
    }

    /// Acknowledged bytes were removed.
    pub(super) fn removed(&self, namespace: &str, bytes: u64) {
        let charged = charge(&self.limits, bytes);
        self.account().subtract_stored(&Holder::namespace(namespace), charged);
    }

    /// To be held from before the ledger changes what is stored until the account has followed.
    pub(super) fn settling(self: &Arc<Self>) -> Settling {
        let mut account = self.account();
        account.settling += 1;
        account.changes += 1;
        Settling(Arc::clone(self))
    }

    /// Notes which changes there have been, before the ledger is asked for the truth; `None` while one is going on.
    pub(super) fn quiet(&self) -> Option<Quiet> {
        let account = self.account();
        (account.settling == 0).then_some(Quiet { changes: account.changes })
    }

    /// Takes over the truth, unless something has changed meanwhile: an answer of the ledger that got lost leaves
    /// the account wrong.
    pub(super) fn correct(&self, quiet: Quiet, stored: &BTreeMap<String, Stored>) {
        let mut account = self.account();
        if account.changes != quiet.changes {
            return;
        }
        let (counted, true_bytes) = (account.stored, stored.values().copied().sum::<Stored>());
        if counted != true_bytes {
            tracing::warn!(
                counted = counted.bytes,
                stored = true_bytes.bytes,
                "the account of the room was wrong; corrected"
            );
        }
        account.set_stored(stored, self.limits.share.is_some());
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A moment at which the account was settled.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quiet {
    changes: u64,
}

/// A change that ledger and account make one after the other, until it is dropped.
#[derive(Debug)]
pub(super) struct Settling(Arc<Capacity>);

impl Drop for Settling {
    fn drop(&mut self) {
        self.0.account().settling -= 1;
    }
}
