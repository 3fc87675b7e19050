//! The ready resources in memory. A sweep looks at them here, so a sweep that finds nothing to do needs no query.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex};

use super::known_owners::KnownOwners;
use super::set_aside::SetAside;
use super::{Listed, OwnerMemory, Unreadable};
use crate::ledger::{Change, Completion, Observation, Page};
use cloakroom_core::lock::lock;
use cloakroom_core::resource::{Life, Owner, OwnerHistory, Ready, Resource, ResourceId};

/// All ready resources. If another program may have changed a row, everything is read again.
#[derive(Debug, Default)]
pub(super) struct Index(Mutex<Entries>);

#[derive(Debug)]
struct Entry {
    owner: Arc<Owner>,
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
    /// Takes in a committed change.
    pub(super) fn take(&self, change: &Change<'_>) {
        match *change {
            Change::Completed(completion) => self.completed(completion),
            Change::Used(id, at) => {
                self.change(id, |life| life.last_used_at = life.last_used_at.max(Some(at)));
            }
            Change::Observed(observations) => observations.iter().for_each(|seen| self.observed(seen)),
            Change::NotUsed(id) | Change::Deleting(id) => self.remove(id),
            Change::NotDeleting => self.doubt(),
            _ => {}
        }
    }

    fn completed(&self, completion: &Completion) {
        let Completion { id, owner, bundle, lifetime, created_at } = completion;
        let life = Life {
            created_at: *created_at,
            lifetime: *lifetime,
            last_used_at: None,
            owner_history: OwnerHistory::default(),
        };
        let mut entries = lock(&self.0);
        entries.note(*id);
        entries.insert(*id, owner.clone(), bundle.size_bytes, life);
    }

    fn remove(&self, id: ResourceId) {
        let mut entries = lock(&self.0);
        entries.note(id);
        entries.remove(id);
        entries.set_aside.remove(id);
    }

    fn observed(&self, observation: &Observation) {
        self.change(observation.id, |life| life.owner_history = observation.after);
    }

    fn change(&self, id: ResourceId, change: impl FnOnce(&mut Life)) {
        let mut entries = lock(&self.0);
        entries.note(id);
        if let Some(entry) = entries.ready.get_mut(&id) {
            change(&mut entry.life);
        }
    }

    /// Records that a row differs from what was last read or written here.
    pub(super) fn doubt(&self) {
        lock(&self.0).is_doubtful = true;
    }

    pub(super) fn is_doubtful(&self) -> bool {
        lock(&self.0).is_doubtful
    }

    /// Up to `limit` ready resources with ids after `after`.
    pub(super) fn page(&self, after: Option<ResourceId>, limit: usize) -> Vec<Listed> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let entries = lock(&self.0);
        let ready = entries.ready.range((from, Bound::Unbounded)).take(limit);
        let listed = |(id, Entry { owner, size_bytes, life }): (&ResourceId, &Entry)| Listed {
            id: *id,
            owner: Arc::clone(owner),
            size_bytes: *size_bytes,
            life: *life,
        };
        ready.map(listed).collect()
    }

    /// Begins to record changes, so that older rows that are read meanwhile do not undo them.
    pub(super) fn begin_reading(&self) {
        let mut entries = lock(&self.0);
        entries.is_doubtful = false;
        entries.changed = Some(BTreeSet::new());
        entries.set_aside.begin_reading();
    }

    pub(super) fn give_up_reading(&self) {
        let mut entries = lock(&self.0);
        (entries.is_doubtful, entries.changed) = (true, None);
    }

    /// Takes in the page that was read after `after`. It works in place, page by page, because a second copy of
    /// everything would be the largest use of memory of this server.
    pub(super) fn take_page(&self, after: Option<ResourceId>, page: Page) {
        let mut entries = lock(&self.0);
        let range = (
            after.map_or(Bound::Unbounded, Bound::Excluded),
            page.next.map_or(Bound::Unbounded, Bound::Included),
        );
        let (read, unreadable): (Vec<_>, Vec<_>) = page.rows.into_iter().partition(Result::is_ok);
        entries.set_aside.take(unreadable.into_iter().filter_map(Result::err), page.damaged_ids);
        let ready: Vec<_> = read.into_iter().flatten().filter_map(Resource::into_ready).collect();
        let ids: BTreeSet<ResourceId> = ready.iter().map(|resource| resource.id).collect();
        let here = entries.ready.range(range).map(|(id, _)| *id);
        let gone: Vec<ResourceId> = here.filter(|id| !ids.contains(id) && !entries.is_changed(*id)).collect();
        for id in gone {
            entries.remove(id);
        }
        for resource in ready {
            if !entries.is_changed(resource.id) {
                entries.take(resource);
            }
        }
    }

    pub(super) fn finish_reading(&self) {
        let mut entries = lock(&self.0);
        (entries.is_new, entries.changed) = (true, None);
        entries.set_aside.finish_reading();
    }

    /// Whether everything was just read: `true` only in the first call after that.
    pub(super) fn take_newness(&self) -> bool {
        std::mem::take(&mut lock(&self.0).is_new)
    }

    pub(super) fn contains(&self, id: ResourceId) -> bool {
        lock(&self.0).ready.contains_key(&id)
    }

    /// How many bytes the owners take, and those of one namespace at most.
    pub(super) fn owner_bytes(&self) -> (u64, u64) {
        let owners = &lock(&self.0).owners;
        (owners.bytes() as u64, owners.most_bytes() as u64)
    }

    pub(super) fn owner_memory(&self, owner: &Owner) -> OwnerMemory {
        lock(&self.0).owners.memory(owner)
    }

    pub(super) fn unreadable(&self) -> Unreadable {
        lock(&self.0).set_aside.summary()
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
        let owner = self.owners.keep(owner);
        if let Some(before) = self.ready.insert(id, Entry { owner, size_bytes, life }) {
            self.owners.let_go(&before.owner);
        }
    }

    fn remove(&mut self, id: ResourceId) {
        if let Some(entry) = self.ready.remove(&id) {
            self.owners.let_go(&entry.owner);
        }
    }

    /// Takes in a row that was read. Owner and size of a resource never change, so a known owner stays.
    fn take(&mut self, resource: Resource<Ready>) {
        let life = resource.life();
        if let Some(entry) = self.ready.get_mut(&resource.id) {
            entry.life = life;
        } else {
            let Ready { owner, bundle, .. } = resource.data;
            self.insert(resource.id, owner, bundle.size_bytes, life);
        }
    }
}
