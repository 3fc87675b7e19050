//! The room and the ready index. They can be in memory because only one process has the data directory.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::index::Index;
use super::operation::Freed;
use super::room::Rooms;
use cloakroom_core::resource::ResourceId;
use cloakroom_storage::ledger::{Account, Charge, Completion, Shortage, Stored, Taken};

/// The part of the ledger that is in memory.
#[derive(Default)]
pub(super) struct Memory {
    rooms: Mutex<Rooms>,
    index: Index,
    changes: AtomicU64,
}

impl Memory {
    pub(super) fn changed(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// How many changes were committed.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    pub(super) fn charge(&self, id: ResourceId, charges: &[Charge]) -> Result<(), Shortage> {
        self.rooms().charge(id, charges)
    }

    pub(super) fn charged(&self, account: &Account) -> u64 {
        self.rooms().of(account)
    }

    pub(super) fn let_go(&self, id: ResourceId) {
        self.rooms().release(id);
    }

    pub(super) fn strays(&self, strays: Stored) {
        self.rooms().set_strays(strays);
    }

    pub(super) fn freed(&self, freed: &Freed) {
        self.rooms().freed(freed);
    }

    /// Sets the accounts to what the rows say. No other change may run at the same time.
    pub(super) fn recount(&self, stored: &BTreeMap<String, Stored>) {
        self.rooms().recount(stored);
    }

    pub(super) fn taken(&self) -> Taken {
        let (owner_bytes, most_owner_bytes) = self.index.owner_bytes();
        Taken { owner_bytes, most_owner_bytes, ..self.rooms().taken() }
    }

    pub(super) fn least_bytes(&self) -> u64 {
        self.rooms().least_bytes()
    }

    pub(super) fn count_at_least(&self, least_bytes: u64) {
        self.rooms().count_at_least(least_bytes);
    }

    pub(super) fn index(&self) -> &Index {
        &self.index
    }

    /// Records that a row is acknowledged: the room that was promised to its upload becomes the room that it really
    /// takes.
    pub(super) fn completed(&self, completion: &Completion) {
        let mut rooms = self.rooms();
        rooms.release(completion.id);
        rooms.stored(completion.owner.namespace(), completion.bundle.size_bytes);
        drop(rooms);
        self.index.completed(completion);
    }

    fn rooms(&self) -> MutexGuard<'_, Rooms> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
