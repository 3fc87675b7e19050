//! The ready index: what a sweep must know of each ready resource, in memory, so that a sweep without work needs no
//! query. The writer task updates it after each commit. It has as many owners as its memory allows.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use super::known_owners::KnownOwners;
use super::set_aside::SetAside;
use crate::ledger::{Completion, Listed, Observation, Unreadable, UnreadableRow};
use cloakroom_core::resource::{Life, Owner, OwnerHistory, Ready, Resource, ResourceId};

/// A part of the ready rows.
#[derive(Debug, Default)]
pub(super) struct ReadyPage {
    /// The rows that can be read.
    pub(super) resources: Vec<Resource<Ready>>,
    /// The rows that this version cannot read.
    pub(super) unreadable: Vec<UnreadableRow>,
    /// How many further rows have a damaged id.
    pub(super) damaged_ids: usize,
    /// The id after which the next page begins; `None` if this was the last page.
    pub(super) next: Option<ResourceId>,
}

/// All ready resources. If another program may have changed a row, everything is read again.
#[derive(Debug, Default)]
pub(super) struct Index(Mutex<Entries>);

#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// `None` if there is no memory for it.
    owner: Option<Arc<Owner>>,
    size_bytes: u64,
    life: Life,
}

#[derive(Debug, Default)]
struct Entries {
    ready: BTreeMap<ResourceId, Entry>,
    owners: KnownOwners,
    set_aside: SetAside,
    is_doubtful: bool,
    is_new: bool,
    /// The resources that changed while everything is read again: a row that was read before its change must not
    /// replace the entry. `None` while nothing is read.
    changed: Option<BTreeSet<ResourceId>>,
}

impl Index {
    /// Sets how much memory owners may take, in bytes. Call it before anything is read.
    pub(super) fn give_room(&self, owner_memory_bytes: usize) {
        self.lock().owners = KnownOwners::new(owner_memory_bytes);
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn completed(&self, completion: &Completion) {
        let Completion { id, owner, bundle, lifetime, created_at } = completion;
        let life = Life {
            created_at: *created_at,
            lifetime: *lifetime,
            last_used_at: None,
            owner_history: OwnerHistory::default(),
        };
        let mut entries = self.lock();
        entries.note(*id);
        entries.insert(*id, owner.clone(), bundle.size_bytes, life);
    }

    pub(super) fn remove(&self, id: ResourceId) {
        let mut entries = self.lock();
        entries.note(id);
        entries.remove(id);
        entries.set_aside.remove(id);
    }

    pub(super) fn used(&self, id: ResourceId, at: Timestamp) {
        self.change(id, |life| life.last_used_at = life.last_used_at.max(Some(at)));
    }

    pub(super) fn observed(&self, observation: &Observation) {
        self.change(observation.id, |life| {
            if life.owner_history == observation.before {
                life.owner_history = observation.after;
            }
        });
    }

    fn change(&self, id: ResourceId, change: impl FnOnce(&mut Life)) {
        let mut entries = self.lock();
        entries.note(id);
        if let Some(entry) = entries.ready.get_mut(&id) {
            change(&mut entry.life);
        }
    }

    /// Records that a row differs from what was last read or written here.
    pub(super) fn doubt(&self) {
        self.lock().is_doubtful = true;
    }

    pub(super) fn is_doubtful(&self) -> bool {
        self.lock().is_doubtful
    }

    pub(super) fn page(&self, after: Option<ResourceId>, limit: usize) -> Vec<(ResourceId, Entry)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let entries = self.lock();
        let ready = entries.ready.range((from, Bound::Unbounded));
        ready.take(limit).map(|(id, entry)| (*id, entry.clone())).collect()
    }

    /// Begins to record changes, so that older rows that are read meanwhile do not undo them.
    pub(super) fn begin_reading(&self) {
        let mut entries = self.lock();
        entries.is_doubtful = false;
        entries.changed = Some(BTreeSet::new());
        entries.set_aside.begin_reading();
    }

    pub(super) fn give_up_reading(&self) {
        let mut entries = self.lock();
        (entries.is_doubtful, entries.changed) = (true, None);
    }

    /// Takes in the page that was read after `after`. It works in place, page by page, because a second copy of
    /// everything would be the largest use of memory of this server.
    pub(super) fn take_page(&self, after: Option<ResourceId>, page: ReadyPage) {
        let mut entries = self.lock();
        entries.set_aside.take(page.unreadable, page.damaged_ids);
        let range = (
            after.map_or(Bound::Unbounded, Bound::Excluded),
            page.next.map_or(Bound::Unbounded, Bound::Included),
        );
        let read: BTreeSet<ResourceId> = page.resources.iter().map(|resource| resource.id).collect();
        let here = entries.ready.range(range).map(|(id, _)| *id);
        let gone: Vec<ResourceId> =
            here.filter(|id| !read.contains(id) && !entries.is_changed(*id)).collect();
        for id in gone {
            entries.remove(id);
        }
        for resource in page.resources {
            if !entries.is_changed(resource.id) {
                entries.take(resource);
            }
        }
    }

    pub(super) fn finish_reading(&self) {
        let mut entries = self.lock();
        (entries.is_new, entries.changed) = (true, None);
        entries.set_aside.finish_reading();
    }

    /// Whether everything was just read: `true` only in the first call after that.
    pub(super) fn take_newness(&self) -> bool {
        std::mem::take(&mut self.lock().is_new)
    }

    pub(super) fn contains(&self, id: ResourceId) -> bool {
        self.lock().ready.contains_key(&id)
    }

    /// How much memory the owners take, in bytes.
    pub(super) fn owner_bytes(&self) -> usize {
        self.lock().owners.bytes()
    }

    pub(super) fn unreadable(&self) -> Unreadable {
        self.lock().set_aside.summary()
    }
}

impl Entries {
    fn note(&mut self, id: ResourceId) {
        if let Some(changed) = &mut self.changed {
            changed.insert(id);
        }
    }

    fn is_changed(&self, id: ResourceId) -> bool {
        self.changed.as_ref().is_some_and(|changed| changed.contains(&id))
    }

    fn insert(&mut self, id: ResourceId, owner: Owner, size_bytes: u64, life: Life) {
        let owner = self.owners.keep(Arc::new(owner));
        if let Some(Entry { owner: Some(before), .. }) =
            self.ready.insert(id, Entry { owner, size_bytes, life })
        {
            self.owners.let_go(&before);
        }
    }

    fn remove(&mut self, id: ResourceId) {
        if let Some(Entry { owner: Some(owner), .. }) = self.ready.remove(&id) {
            self.owners.let_go(&owner);
        }
    }

    /// Takes in a row that was read. Owner and size of a resource never change, so a known owner stays.
    fn take(&mut self, resource: Resource<Ready>) {
        let life = resource.life();
        match self.ready.get_mut(&resource.id) {
            Some(entry) if entry.owner.is_some() => entry.life = life,
            _ => {
                let Ready { owner, bundle, .. } = resource.data;
                self.insert(resource.id, owner, bundle.size_bytes, life);
            }
        }
    }
}

impl Entry {
    /// Whether its owner has to be looked up in the table.
    pub(super) fn has_unknown_owner(&self) -> bool {
        self.owner.is_none()
    }

    pub(super) fn listed(&self, id: ResourceId, look_up: impl FnOnce() -> Option<Owner>) -> Option<Listed> {
        let Self { size_bytes, life, .. } = *self;
        let owner = self.owner.clone().or_else(|| look_up().map(Arc::new))?;
        Some(Listed { id, owner, is_owner_known: self.owner.is_some(), size_bytes, life })
    }
}
