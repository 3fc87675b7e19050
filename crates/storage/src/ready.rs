//! What is known of the ready resources without a query: which there are, and how much room is taken. It is read from
//! the rows at the start, and each committed change is taken in.

mod account;
mod index;
mod known_owners;
mod rooms;
mod set_aside;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::ledger::{Change, Ledger, LedgerError, Mirror, UnreadableRow};
use cloakroom_core::lock::lock;
use cloakroom_core::resource::{Life, Owner, ResourceId, State};
use index::Index;
use rooms::Rooms;

pub use account::{Account, Charge, Shortage, Taken};

/// How many rows are read together.
const PAGE: u32 = 1000;

/// The ready resources, and the accounts of room. Its ledger must [`follow`](Ledger::follow) it.
#[derive(Debug, Default)]
pub struct ReadyResources {
    rooms: Mutex<Rooms>,
    index: Index,
}

impl ReadyResources {
    /// A resource counts as `least_bytes` or more.
    pub fn new(least_bytes: u64) -> Self {
        Self { rooms: Mutex::new(Rooms::new(least_bytes)), index: Index::default() }
    }

    /// Reads everything from the rows.
    pub async fn load(&self, ledger: &dyn Ledger) -> Result<(), LedgerError> {
        // The ledger tells what it has counted before it returns.
        ledger.totals().await?;
        self.index.begin_reading();
        let read = self.read(ledger).await;
        match &read {
            Ok(()) => self.index.finish_reading(),
            Err(_) => self.index.give_up_reading(),
        }
        read
    }

    async fn read(&self, ledger: &dyn Ledger) -> Result<(), LedgerError> {
        let mut after = None;
        loop {
            let page = ledger.page(State::Ready, after, PAGE).await?;
            let next = page.next;
            self.index.take_page(after, page);
            if next.is_none() {
                return Ok(());
            }
            after = next;
        }
    }

    /// Reads everything again if there is a sign that something else than this server has changed rows, or if `thorough`.
    pub async fn refresh(&self, ledger: &dyn Ledger, thorough: bool) -> Result<(), LedgerError> {
        // At the start everything has just been read, so the first thorough refresh reads nothing.
        let is_new = self.index.take_newness();
        if self.index.is_doubtful() || thorough && !is_new { self.load(ledger).await } else { Ok(()) }
    }

    /// Up to `limit` ready resources with ids after `after`, in the order of their ids. Empty if there are no more.
    pub fn page(&self, after: Option<ResourceId>, limit: usize) -> Vec<Listed> {
        self.index.page(after, limit)
    }

    /// Whether a resource is ready.
    pub fn contains(&self, id: ResourceId) -> bool {
        self.index.contains(id)
    }

    /// The rows that this version cannot read, as far as they were seen.
    pub fn unreadable(&self) -> Unreadable {
        self.index.unreadable()
    }

    /// The memory that another resource of `owner` needs.
    pub fn owner_memory(&self, owner: &Owner) -> OwnerMemory {
        self.index.owner_memory(owner)
    }

    /// How much room is taken in all.
    pub fn taken(&self) -> Taken {
        let (owner_bytes, most_owner_bytes) = self.index.owner_bytes();
        Taken { owner_bytes, most_owner_bytes, ..lock(&self.rooms).taken() }
    }

    /// How many rows are in each state.
    pub fn by_state(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.rooms).by_state()
    }

    /// Charges an upload, in place of what it was charged before. Returns the first account that has too little room;
    /// then nothing changes.
    pub fn charge(&self, id: ResourceId, charges: &[Charge]) -> Result<(), Shortage> {
        lock(&self.rooms).charge(id, charges)
    }

    /// How much of an account is taken.
    pub fn charged(&self, account: &Account) -> u64 {
        lock(&self.rooms).of(account)
    }

    /// Frees what an upload was charged.
    pub fn let_go(&self, id: ResourceId) {
        lock(&self.rooms).release(id);
    }
}

impl Mirror for ReadyResources {
    fn least_bytes(&self) -> u64 {
        lock(&self.rooms).least_bytes()
    }

    fn committed(&self, change: &Change<'_>) {
        lock(&self.rooms).take(change);
        self.index.take(change);
    }

    fn doubt(&self) {
        self.index.doubt();
    }
}

/// A ready resource in memory.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Its public name.
    pub id: ResourceId,
    /// The objects that it lives for. Equal owners are one in memory.
    pub owner: Arc<Owner>,
    /// How many bytes it has.
    pub size_bytes: u64,
    /// The data that decides how long it lives.
    pub life: Life,
}

/// The rows that this version cannot read.
#[derive(Debug, Clone, Default)]
pub struct Unreadable {
    /// How many rows there are, with damaged ids and without.
    pub count: usize,
    /// The first of those without.
    pub first: Vec<UnreadableRow>,
    /// How many rows have a damaged id. It is not known which bytes belong to them.
    pub damaged_ids: usize,
}

/// The memory that an owner needs, and that others have; all in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerMemory {
    /// How much another resource of this owner needs: nothing if there is one already.
    pub needed: u64,
    /// How much all owners have.
    pub taken: u64,
    /// How much the owners in its namespace have.
    pub taken_in_namespace: u64,
}
