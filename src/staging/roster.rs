//! What is ready, in memory: what a sweep must know of each resource, so that a sweep that finds nothing to do costs
//! no query.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use super::{AccessError, Parts, Staging};
use crate::ledger::LedgerError;
use crate::resource::{Life, Owner, Resource, ResourceId, Sighting};

/// Rows read together.
const PAGE: u32 = 1000;

/// A ready resource.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Its public name.
    pub id: ResourceId,
    /// Whom it is for.
    pub owner: Arc<Owner>,
    /// How many bytes it has.
    pub size_bytes: u64,
    /// What decides how long it lives.
    pub life: Life,
}

/// All of them. A change in the ledger is followed by the same change here; where it is not certain what the ledger
/// did, everything is read again.
#[derive(Debug, Default)]
pub(super) struct Roster(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    ready: BTreeMap<ResourceId, Listed>,
    is_doubtful: bool,
    is_new: bool,
    /// Changed while everything is read again: what was read of these may be older.
    changed: Option<BTreeSet<ResourceId>>,
}

impl Roster {
    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, listed: Listed) {
        let mut entries = self.lock();
        entries.note(listed.id);
        entries.ready.insert(listed.id, listed);
    }

    pub(super) fn remove(&self, id: ResourceId) {
        let mut entries = self.lock();
        entries.note(id);
        entries.ready.remove(&id);
    }

    pub(super) fn used(&self, id: ResourceId, at: Timestamp) {
        self.change(id, |life| life.last_used_at = life.last_used_at.max(Some(at)));
    }

    fn change(&self, id: ResourceId, change: impl FnOnce(&mut Life)) {
        let mut entries = self.lock();
        entries.note(id);
        if let Some(listed) = entries.ready.get_mut(&id) {
            change(&mut listed.life);
        }
    }

    /// The ledger failed in the middle of a change: whether it was made is not known.
    pub(super) fn doubt(&self) {
        self.lock().is_doubtful = true;
    }

    pub(super) fn is_doubtful(&self) -> bool {
        self.lock().is_doubtful
    }

    fn page(&self, after: Option<ResourceId>, limit: usize) -> Vec<Listed> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.lock()
            .ready
            .range((from, Bound::Unbounded))
            .take(limit)
            .map(|(_, listed)| listed.clone())
            .collect()
    }

    /// From now on changes are noted, so that what is read meanwhile does not undo them.
    fn begin_reading(&self) {
        let mut entries = self.lock();
        entries.is_doubtful = false;
        entries.changed = Some(BTreeSet::new());
    }

    fn give_up_reading(&self) {
        let mut entries = self.lock();
        (entries.is_doubtful, entries.changed) = (true, None);
    }

    /// Takes in what was read between `after` and `to`, or the end. In place, page by page: two copies of everything
    /// would be the most memory that this server ever takes.
    fn take_page(&self, after: Option<ResourceId>, to: Option<ResourceId>, page: Vec<Listed>) {
        let mut entries = self.lock();
        let Entries { ready, changed, .. } = &mut *entries;
        let is_changed = |id: &ResourceId| changed.as_ref().is_some_and(|changed| changed.contains(id));
        let range =
            (after.map_or(Bound::Unbounded, Bound::Excluded), to.map_or(Bound::Unbounded, Bound::Included));
        let read: BTreeSet<ResourceId> = page.iter().map(|listed| listed.id).collect();
        let here = ready.range(range).map(|(id, _)| *id);
        let gone: Vec<ResourceId> = here.filter(|id| !read.contains(id) && !is_changed(id)).collect();
        for id in gone {
            ready.remove(&id);
        }
        for listed in page.into_iter().filter(|listed| !is_changed(&listed.id)) {
            match ready.get_mut(&listed.id) {
                Some(known) => known.life = listed.life,
                None => drop(ready.insert(listed.id, listed)),
            }
        }
    }

    fn finish_reading(&self) {
        let mut entries = self.lock();
        (entries.is_new, entries.changed) = (true, None);
    }

    /// Whether everything was read and nobody has asked this since.
    pub(super) fn take_newness(&self) -> bool {
        std::mem::take(&mut self.lock().is_new)
    }

    pub(super) fn contains(&self, id: ResourceId) -> bool {
        self.lock().ready.contains_key(&id)
    }
}

impl Entries {
    fn note(&mut self, id: ResourceId) {
        if let Some(changed) = &mut self.changed {
            changed.insert(id);
        }
    }
}

impl Listed {
    /// Only what is complete is ready.
    fn of(resource: Resource) -> Option<Self> {
        let life = resource.life();
        Some(Self {
            id: resource.id,
            owner: Arc::new(resource.owner?),
            size_bytes: resource.bundle?.size_bytes,
            life,
        })
    }
}

impl Staging {
    /// Up to `limit` ready resources, in the order of their ids, after `after`.
    pub fn ready(&self, after: Option<ResourceId>, limit: usize) -> Vec<Listed> {
        self.parts.roster.page(after, limit)
    }

    /// Writes down what a sweep saw of owners. On a full disk that is worth the reserve: only deletions make room, and
    /// they wait for this. `false` if there is no room even so.
    pub async fn observe_for_sweep(&self, sightings: &[(ResourceId, Sighting)]) -> Result<bool, AccessError> {
        match self.observe(sightings.to_vec()).await {
            Err(LedgerError::Full) => self.parts.give_up_reserve().await?,
            written => return Ok(written.map(|()| true)?),
        }
        match self.observe(sightings.to_vec()).await {
            Err(LedgerError::Full) => Ok(false),
            written => Ok(written.map(|()| true)?),
        }
    }

    /// Writes down what was seen of owners.
    pub async fn observe(&self, sightings: Vec<(ResourceId, Sighting)>) -> Result<(), LedgerError> {
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
                self.roster.finish_reading();
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
            let is_last = page.len() < PAGE as usize;
            let to = if is_last { None } else { page.last().map(|resource| resource.id) };
            self.roster.take_page(after, to, page.into_iter().filter_map(Listed::of).collect());
            if is_last {
                return Ok(());
            }
            after = to;
        }
    }
}
