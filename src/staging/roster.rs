//! What is ready, in memory: what a sweep must know of each resource, so that a sweep that finds nothing to do costs
//! no query. Owners are there as far as there is room for them; the others are looked up in the ledger.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use super::known_owners::KnownOwners;
use super::set_aside::SetAside;
use super::{AccessError, Parts, Staging};
use crate::ledger::{LedgerError, ReadyPage, UnreadableRow};
use crate::resource::{Life, Owner, Ready, Resource, ResourceId, RowName, Sighting};

/// Rows read together.
const PAGE: u32 = 1000;

/// Owners looked up together.
const LOOK_UP: usize = 100;

/// A page with more bytes of owners that were looked up than this ends.
const LARGEST_PAGE_BYTES: usize = 4 << 20;

/// A ready resource.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Its public name.
    pub id: ResourceId,
    /// Whom it is for.
    pub owner: Arc<Owner>,
    /// Whether the owner stays in memory, and so costs nothing to keep.
    pub is_owner_known: bool,
    /// How many bytes it has.
    pub size_bytes: u64,
    /// What decides how long it lives.
    pub life: Life,
}

/// All of them. A change in the ledger is followed by the same change here; where it is not certain what the ledger
/// did, everything is read again.
#[derive(Debug)]
pub(super) struct Roster(Mutex<Entries>);

#[derive(Debug, Clone)]
struct Entry {
    /// `None` where there is no room for it.
    owner: Option<Arc<Owner>>,
    size_bytes: u64,
    life: Life,
}

#[derive(Debug)]
struct Entries {
    ready: BTreeMap<ResourceId, Entry>,
    owners: KnownOwners,
    set_aside: SetAside,
    is_doubtful: bool,
    is_new: bool,
    /// Changed while everything is read again: what was read of these may be older.
    changed: Option<BTreeSet<ResourceId>>,
}

impl Roster {
    /// Of nothing, with so much memory for owners.
    pub(super) fn new(owner_memory_bytes: usize) -> Self {
        Self(Mutex::new(Entries {
            ready: BTreeMap::new(),
            owners: KnownOwners::new(owner_memory_bytes),
            set_aside: SetAside::default(),
            is_doubtful: false,
            is_new: false,
            changed: None,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, id: ResourceId, owner: Owner, size_bytes: u64, life: Life) {
        let mut entries = self.lock();
        entries.note(id);
        entries.insert(id, owner, size_bytes, life);
    }

    pub(super) fn remove(&self, id: ResourceId) {
        let mut entries = self.lock();
        entries.note(id);
        entries.remove(id);
        if !entries.set_aside.is_empty() {
            entries.set_aside.remove(&id.into());
        }
    }

    /// A row that could not be read is gone.
    pub(super) fn discarded(&self, name: &RowName) {
        let mut entries = self.lock();
        entries.set_aside.remove(name);
        // Whether a resource was known under its true id is not known.
        entries.is_doubtful = true;
    }

    pub(super) fn used(&self, id: ResourceId, at: Timestamp) {
        self.change(id, |life| life.last_used_at = life.last_used_at.max(Some(at)));
    }

    fn change(&self, id: ResourceId, change: impl FnOnce(&mut Life)) {
        let mut entries = self.lock();
        entries.note(id);
        if let Some(entry) = entries.ready.get_mut(&id) {
            change(&mut entry.life);
        }
    }

    /// The ledger failed in the middle of a change: whether it was made is not known.
    pub(super) fn doubt(&self) {
        self.lock().is_doubtful = true;
    }

    pub(super) fn is_doubtful(&self) -> bool {
        self.lock().is_doubtful
    }

    fn page(&self, after: Option<ResourceId>, limit: usize) -> Vec<(ResourceId, Entry)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let entries = self.lock();
        let ready = entries.ready.range((from, Bound::Unbounded));
        ready.take(limit).map(|(id, entry)| (*id, entry.clone())).collect()
    }

    /// From now on changes are noted, so that what is read meanwhile does not undo them.
    fn begin_reading(&self) {
        let mut entries = self.lock();
        entries.is_doubtful = false;
        entries.changed = Some(BTreeSet::new());
        entries.set_aside.begin_reading();
    }

    fn give_up_reading(&self) {
        let mut entries = self.lock();
        (entries.is_doubtful, entries.changed) = (true, None);
    }

    /// Takes in what was read after `after`. In place, page by page: two copies of everything would be the most memory
    /// that this server ever takes.
    fn take_page(&self, after: Option<ResourceId>, page: ReadyPage) {
        let mut entries = self.lock();
        entries.set_aside.take(page.unreadable);
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

    fn finish_reading(&self) -> usize {
        let mut entries = self.lock();
        (entries.is_new, entries.changed) = (true, None);
        entries.set_aside.finish_reading()
    }

    /// Whether everything was read and nobody has asked this since.
    pub(super) fn take_newness(&self) -> bool {
        std::mem::take(&mut self.lock().is_new)
    }

    pub(super) fn contains(&self, id: ResourceId) -> bool {
        self.lock().ready.contains_key(&id)
    }

    /// How much memory owners take and how much they may, in bytes.
    pub(super) fn owner_memory_bytes(&self) -> (usize, usize) {
        self.lock().owners.memory_bytes()
    }

    pub(super) fn count_set_aside(&self) -> usize {
        self.lock().set_aside.count()
    }

    pub(super) fn first_set_aside(&self) -> Vec<UnreadableRow> {
        self.lock().set_aside.first()
    }

    pub(super) fn find_set_aside(&self, name: &RowName) -> Option<UnreadableRow> {
        self.lock().set_aside.find(name)
    }

    pub(super) fn has_damaged_ids(&self) -> bool {
        self.lock().set_aside.has_damaged_ids()
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

    /// Owner and size never change.
    fn take(&mut self, resource: Resource<Ready>) {
        let life = resource.life();
        match self.ready.get_mut(&resource.id) {
            Some(entry) if entry.owner.is_some() => entry.life = life,
            _ => {
                let Ready { owner, bundle, .. } = resource.stage;
                self.insert(resource.id, owner, bundle.size_bytes, life);
            }
        }
    }
}

impl Staging {
    /// Up to `limit` ready resources, in the order of their ids, after `after`; fewer where owners must be looked up, and
    /// none if there are no more.
    pub async fn ready(&self, after: Option<ResourceId>, limit: usize) -> Result<Vec<Listed>, LedgerError> {
        let mut after = after;
        loop {
            let entries = self.parts.roster.page(after, limit);
            if entries.is_empty() {
                return Ok(Vec::new());
            }
            let (listed, to) = self.parts.with_owners(entries).await?;
            if !listed.is_empty() {
                return Ok(listed);
            }
            // Everything that was looked up has gone meanwhile.
            after = to;
        }
    }

    /// The owners of those of `ids` that are ready.
    pub async fn owners(&self, ids: &[ResourceId]) -> Result<BTreeMap<ResourceId, Owner>, LedgerError> {
        self.parts.ledger.owners(ids).await
    }

    /// Who uploaded those of `ids` that are ready, as far as that is known.
    pub async fn uploaders(&self, ids: &[ResourceId]) -> Result<BTreeMap<ResourceId, String>, LedgerError> {
        self.parts.ledger.uploaders(ids).await
    }

    /// Writes down what a sweep saw of owners. On a full disk that is worth the reserve: only deletions make room, and
    /// they wait for this. `false` if there is no room even so.
    pub async fn observe_for_sweep(&self, sightings: &[(ResourceId, Sighting)]) -> Result<bool, AccessError> {
        match self.observe(sightings).await {
            Err(LedgerError::Full) => self.parts.give_up_reserve().await?,
            written => return Ok(written.map(|()| true)?),
        }
        match self.observe(sightings).await {
            Err(LedgerError::Full) => Ok(false),
            written => Ok(written.map(|()| true)?),
        }
    }

    /// Writes down what was seen of owners.
    pub async fn observe(&self, sightings: &[(ResourceId, Sighting)]) -> Result<(), LedgerError> {
        for part in sightings.chunks(PAGE as usize) {
            self.parts.ledger.observe(part.to_vec()).await.inspect_err(|_| self.parts.roster.doubt())?;
            for (id, sighting) in part {
                self.parts.roster.change(*id, |life| life.sighting = *sighting);
            }
        }
        Ok(())
    }

    /// Whether somebody is downloading it at this moment.
    pub fn is_in_use(&self, id: ResourceId) -> bool {
        self.parts.transfers.is_downloading(id) || self.parts.unwritten_uses().contains_key(&id)
    }
}

impl Parts {
    pub(super) async fn read_roster(&self) -> Result<(), LedgerError> {
        self.roster.begin_reading();
        match self.read_ready().await {
            Ok(()) => {
                self.metrics.unreadable(self.roster.finish_reading() as u64);
                Ok(())
            }
            Err(error) => {
                self.roster.give_up_reading();
                Err(error)
            }
        }
    }

    async fn read_ready(&self) -> Result<(), LedgerError> {
        let mut after = None;
        loop {
            let page = self.ledger.ready(after, PAGE).await?;
            let next = page.next;
            self.roster.take_page(after, page);
            if next.is_none() {
                return Ok(());
            }
            after = next;
        }
    }

    /// Looks up the owners that are not in memory. The last one that was looked at comes with it.
    async fn with_owners(
        &self,
        entries: Vec<(ResourceId, Entry)>,
    ) -> Result<(Vec<Listed>, Option<ResourceId>), LedgerError> {
        let mut listed = Vec::with_capacity(entries.len());
        let (mut bytes, mut to) = (0, None);
        for part in entries.chunks(LOOK_UP) {
            let unknown = part.iter().filter(|(_, entry)| entry.owner.is_none());
            let unknown: Vec<ResourceId> = unknown.map(|(id, _)| *id).collect();
            let mut found =
                if unknown.is_empty() { BTreeMap::new() } else { self.ledger.owners(&unknown).await? };
            bytes += found.values().map(Owner::memory_bytes).sum::<usize>();
            listed.extend(part.iter().filter_map(|(id, entry)| entry.listed(*id, || found.remove(id))));
            to = part.last().map(|(id, _)| *id);
            if bytes > LARGEST_PAGE_BYTES {
                break;
            }
        }
        Ok((listed, to))
    }
}

impl Entry {
    fn listed(&self, id: ResourceId, look_up: impl FnOnce() -> Option<Owner>) -> Option<Listed> {
        let Self { size_bytes, life, .. } = *self;
        let owner = self.owner.clone().or_else(|| look_up().map(Arc::new))?;
        Some(Listed { id, owner, is_owner_known: self.owner.is_some(), size_bytes, life })
    }
}
