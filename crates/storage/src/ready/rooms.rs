//! The accounts, in memory: stored resources count by their rows, and uploads by their charges.

use std::collections::{BTreeMap, HashMap};

use super::{Account, Charge, Shortage, Taken};
use crate::ledger::{Change, Stored, Totals};
use cloakroom_core::resource::{Holder, ResourceId, State};

/// How much of each account is taken, and by which uploads.
#[derive(Debug, Default)]
pub(super) struct Rooms {
    taken: HashMap<Account, u64>,
    held: HashMap<ResourceId, Vec<(Account, u64)>>,
    stored: Stored,
    strays: Stored,
    by_state: BTreeMap<&'static str, u64>,
    /// The least number of bytes that a resource counts as.
    least_bytes: u64,
    /// Whether the rows were counted once.
    is_known: bool,
}

impl Rooms {
    pub(super) fn new(least_bytes: u64) -> Self {
        Self { least_bytes, ..Self::default() }
    }

    /// Returns the first account that has too little room for these charges. The charges replace what the upload of
    /// `id` already holds.
    fn check(&self, id: ResourceId, charges: &[Charge]) -> Result<(), Shortage> {
        let own = self.held.get(&id);
        for Charge { account, amount, limit } in charges {
            let Some(limit) = *limit else { continue };
            let own = own.into_iter().flatten().find(|(held, _)| held == account).map_or(0, |(_, own)| *own);
            let taken = self.of(account).saturating_sub(own);
            if taken.saturating_add(*amount) > limit {
                return Err(Shortage { account: account.clone(), limit, taken });
            }
        }
        Ok(())
    }

    /// Replaces what the upload of `id` holds. If one account has too little room, nothing changes.
    pub(super) fn charge(&mut self, id: ResourceId, charges: &[Charge]) -> Result<(), Shortage> {
        self.check(id, charges)?;
        self.release(id);
        let held: Vec<_> = charges.iter().map(|charge| (charge.account.clone(), charge.amount)).collect();
        self.add(&held);
        self.held.insert(id, held);
        Ok(())
    }

    /// Frees what the upload of `id` holds.
    pub(super) fn release(&mut self, id: ResourceId) {
        let held = self.held.remove(&id);
        self.subtract(&held.unwrap_or_default());
    }

    /// How many rows are in each state.
    pub(super) fn by_state(&self) -> BTreeMap<&'static str, u64> {
        let mut by_state: BTreeMap<_, _> = State::ALL.iter().map(|state| (state.as_str(), 0)).collect();
        by_state.extend(&self.by_state);
        by_state
    }

    /// Takes in a committed change.
    pub(super) fn take(&mut self, change: &Change<'_>) {
        use State::{Deleted, Deleting, Pending, Ready};
        match *change {
            Change::Begun => self.moved(1, None, Some(Pending)),
            Change::Completed(completion) => {
                self.moved(1, Some(Pending), Some(Ready));
                // The room that was promised to the upload becomes the room that it really takes.
                self.release(completion.id);
                self.stored(completion.owner.namespace(), completion.bundle.size_bytes);
            }
            Change::Abandoned => self.moved(1, Some(Pending), None),
            Change::Deleting(_) => self.moved(1, Some(Ready), Some(Deleting)),
            Change::Deleted { namespace, size_bytes, has_tombstone } => {
                self.moved(1, Some(Deleting), has_tombstone.then_some(Deleted));
                self.freed(namespace, size_bytes);
            }
            Change::Forgotten(rows) => self.moved(rows, Some(Deleted), None),
            Change::Strays(strays) => self.set_strays(strays),
            Change::Counted(totals) => self.recount(totals),
            Change::Used(..)
            | Change::NotUsed(_)
            | Change::NotDeleting
            | Change::Observed(_)
            | Change::Other => {}
        }
    }

    fn moved(&mut self, rows: u64, from: Option<State>, to: Option<State>) {
        if let Some(from) = from.and_then(|from| self.by_state.get_mut(from.as_str())) {
            *from = from.saturating_sub(rows);
        }
        if let Some(to) = to {
            *self.by_state.entry(to.as_str()).or_default() += rows;
        }
    }

    /// Adds a row that was acknowledged.
    fn stored(&mut self, namespace: &str, size_bytes: u64) {
        let bytes = size_bytes.max(self.least_bytes);
        self.stored.resources += 1;
        self.stored.bytes = self.stored.bytes.saturating_add(bytes);
        self.add(&of_namespace(namespace, 1, bytes));
    }

    /// Subtracts a row that was acknowledged and is gone.
    fn freed(&mut self, namespace: &str, size_bytes: u64) {
        let bytes = size_bytes.max(self.least_bytes);
        self.stored.resources = self.stored.resources.saturating_sub(1);
        self.stored.bytes = self.stored.bytes.saturating_sub(bytes);
        self.subtract(&of_namespace(namespace, 1, bytes));
    }

    /// Sets how many strays there are. Their bytes count in no account of a holder.
    fn set_strays(&mut self, strays: Stored) {
        self.subtract(&[(Account::Bytes, self.strays.bytes)]);
        self.add(&[(Account::Bytes, strays.bytes)]);
        self.strays = strays;
    }

    pub(super) fn least_bytes(&self) -> u64 {
        self.least_bytes
    }

    /// Sets the accounts to what the rows say, and adds what uploads hold.
    fn recount(&mut self, totals: &Totals) {
        let rows = &totals.stored;
        let stored = rows.values().copied().sum::<Stored>();
        if self.is_known && self.stored != stored {
            tracing::warn!(
                counted = self.stored.bytes,
                stored = stored.bytes,
                "the account of the room was wrong; corrected"
            );
        }
        (self.stored, self.is_known) = (stored, true);
        (self.strays, self.by_state) = (totals.strays, totals.by_state.clone());
        self.taken.clear();
        for (namespace, Stored { resources, bytes }) in rows {
            self.add(&of_namespace(namespace, *resources, *bytes));
        }
        self.add(&[(Account::Bytes, self.strays.bytes)]);
        let held = std::mem::take(&mut self.held);
        for held in held.values() {
            self.add(held);
        }
        self.held = held;
    }

    pub(super) fn taken(&self) -> Taken {
        let most = |of: fn(&Account) -> bool| {
            self.taken.iter().filter(|(account, _)| of(account)).map(|(_, taken)| *taken).max().unwrap_or(0)
        };
        Taken {
            resources: self.of(&Account::Resources),
            bytes: self.of(&Account::Bytes),
            stored_bytes: self.stored.bytes,
            strays: self.strays,
            most_resources: most(|account| matches!(account, Account::ResourcesOf(_))),
            most_bytes: most(|account| matches!(account, Account::BytesOf(_))),
            owner_bytes: 0,
            most_owner_bytes: 0,
        }
    }

    pub(super) fn of(&self, account: &Account) -> u64 {
        self.taken.get(account).copied().unwrap_or(0)
    }

    fn add(&mut self, amounts: &[(Account, u64)]) {
        for (account, amount) in amounts {
            let taken = self.taken.entry(account.clone()).or_default();
            *taken = taken.saturating_add(*amount);
        }
    }

    fn subtract(&mut self, amounts: &[(Account, u64)]) {
        for (account, amount) in amounts {
            let Some(taken) = self.taken.get_mut(account) else { continue };
            *taken = taken.saturating_sub(*amount);
            if *taken == 0 {
                self.taken.remove(account);
            }
        }
    }
}

fn of_namespace(namespace: &str, resources: u64, bytes: u64) -> [(Account, u64); 4] {
    let holder = Holder::namespace(namespace);
    [
        (Account::Resources, resources),
        (Account::Bytes, bytes),
        (Account::ResourcesOf(holder.clone()), resources),
        (Account::BytesOf(holder), bytes),
    ]
}
