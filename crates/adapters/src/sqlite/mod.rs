//! The ledger in SQLite: one writer task shares each commit among several operations. Readers have a pool.

mod abandoned;
mod copy;
mod error;
mod form;
mod index;
mod known_owners;
mod memory;
mod opening;
mod operation;
mod reading;
mod room;
mod row;
mod set_aside;
mod strays;
mod surroundings;
mod tombstones;
mod writer;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use jiff::Timestamp;
use sqlx::sqlite::SqlitePool;
use sqlx::{ConnectOptions, Row as _};

use crate::place::Place;
use cloakroom_core::resource::{BlobKey, Owner, Resource, ResourceId, State, UploadHandle};
use cloakroom_storage::ledger::{
    Abandoned, Account, Charge, Completion, Deletion, Fact, Facts, Finish, Forgotten, Ledger, LedgerError,
    Listed, Observation, OwnerMemory, Page, PendingResource, Rowless, Stored, Taken, Unreadable,
};
use error::failed;
use index::ReadyPage;
use memory::Memory;
use opening::{not_migrated, not_opened, options, readers, watch};
use operation::{Operation, Outcome};
use writer::Writer;

/// How long a connection waits for the lock of another one. Only one connection writes, so the wait is for checkpoints,
/// or for another process. An upload that fails waits up to three times, and has a place meanwhile.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// How many tombstones one change removes at most, because uploads wait for that change.
const TRIMMED_AT_ONCE: u64 = 5000;

/// How many keys one look-up asks for.
const KEYS_AT_ONCE: usize = 1000;

/// A page of rows ends when its owners have more bytes than this.
const LARGEST_PAGE_BYTES: usize = 4 << 20;

/// The ownership table in a SQLite file.
pub struct SqliteLedger {
    readers: SqlitePool,
    writer: Writer,
    memory: Arc<Memory>,
}

impl SqliteLedger {
    /// Opens the database at `path`. Creates it if it is missing. A file that is no ledger, or that a newer version has
    /// written, is an error and stays as it is.
    pub async fn open(path: &Path) -> Result<Self, LedgerError> {
        Self::open_in(&Place::default(), path).await
    }

    /// The same. `place` also watches the files of the ledger.
    pub async fn open_in(place: &Place, path: &Path) -> Result<Self, LedgerError> {
        form::check(path).await?;
        let options = options(path);
        let shown = || path.display().to_string();
        let mut connection = options.connect().await.map_err(|source| not_opened(source, shown()))?;
        form::MIGRATIONS.run(&mut connection).await.map_err(|source| not_migrated(source, shown()))?;
        let readers = readers(options).await.map_err(|source| not_opened(source, shown()))?;
        watch(place, path).map_err(|source| LedgerError::Open { path: shown(), source: Arc::new(source) })?;
        let memory = Arc::new(Memory::default());
        let writer = Writer::start(connection, Arc::clone(&memory), place.clone());
        Ok(Self { readers, writer, memory })
    }

    /// Up to `limit` ready resources with ids after `after`, in the order of their ids. There are fewer if their owners
    /// are large. The page also has the unreadable rows between them that may have been acknowledged.
    async fn ready(&self, after: Option<ResourceId>, limit: u32) -> Result<ReadyPage, LedgerError> {
        // A row with an unknown state may have been ready. Of those that are `deleting` only the damaged ids are of
        // interest. The plus keeps SQLite from using the index on the state, which
        // would make it sort all rows for every page (<https://www.sqlite.org/optoverview.html>, section 6).
        let mut rows = sqlx::query(
            "SELECT * FROM resources WHERE id >= ?1 AND id IS NOT ?2 \
             AND +state IS NOT 'pending' AND +state IS NOT 'deleted' ORDER BY id",
        )
        .bind(after.map(|id| id.to_string()).unwrap_or_default())
        .bind(after.map(|id| id.to_string()))
        .fetch(&self.readers);
        let mut page = ReadyPage::default();
        let (mut read, mut bytes, mut damaged_ids) = (0, 0, 0);
        while let Some(row) = rows.next().await {
            let row = row.map_err(failed)?;
            // A page must end with an id from which the next one can begin. So rows with damaged ids do not end it, and
            // those behind its last id belong to the next page, which reads them again.
            let Ok(id) = row::id(&row) else {
                damaged_ids += 1;
                continue;
            };
            if read == limit || bytes > LARGEST_PAGE_BYTES {
                return Ok(page);
            }
            page.damaged_ids += std::mem::take(&mut damaged_ids);
            (page.next, read) = (Some(id), read + 1);
            match row::resource(id, &row) {
                Ok(resource) => {
                    let ready = resource.into_ready();
                    bytes += ready.as_ref().map_or(0, |ready| ready.data.owner.memory_bytes());
                    page.resources.extend(ready);
                }
                Err(unreadable) if unreadable.state == Some(State::Deleting) => {}
                Err(unreadable) => page.unreadable.push(unreadable),
            }
        }
        page.damaged_ids += damaged_ids;
        page.next = None;
        Ok(page)
    }

    /// Runs one change, and returns once it is committed.
    async fn change(&self, operation: Operation) -> Result<Outcome, LedgerError> {
        self.writer.run(operation).await
    }
}

#[async_trait]
impl Ledger for SqliteLedger {
    async fn begin(&self, pending: PendingResource, charges: &[Charge]) -> Result<(), LedgerError> {
        self.memory.charge(pending.id, charges).map_err(LedgerError::NoRoom)?;
        self.change(Operation::Begin(pending)).await.map(drop)
    }

    async fn charge(&self, id: ResourceId, charges: &[Charge]) -> Result<(), LedgerError> {
        self.memory.charge(id, charges).map_err(LedgerError::NoRoom)
    }

    async fn charged(&self, account: &Account) -> Result<u64, LedgerError> {
        Ok(self.memory.charged(account))
    }

    async fn note_handle(&self, id: ResourceId, handle: UploadHandle) -> Result<(), LedgerError> {
        let outcome = self.change(Operation::NoteHandle(id, handle)).await?;
        if outcome.changed() { Ok(()) } else { Err(LedgerError::Abandoned { id }) }
    }

    async fn complete(&self, completion: Completion) -> Result<(), LedgerError> {
        let id = completion.id;
        let outcome = self.change(Operation::Complete(Box::new(completion))).await?;
        if outcome.changed() { Ok(()) } else { Err(LedgerError::Abandoned { id }) }
    }

    async fn abandon(&self, id: ResourceId) -> Result<Option<Abandoned>, LedgerError> {
        Ok(self.change(Operation::Abandon(id)).await?.abandoned)
    }

    fn let_go(&self, id: ResourceId) {
        self.memory.let_go(id);
    }

    async fn mark_used(&self, id: ResourceId, at: Timestamp) -> Result<bool, LedgerError> {
        self.change(Operation::MarkUsed(id, at)).await.map(Outcome::changed)
    }

    async fn mark_deleting(&self, decision: Deletion) -> Result<bool, LedgerError> {
        self.change(Operation::MarkDeleting(decision)).await.map(Outcome::changed)
    }

    async fn finish(&self, id: ResourceId, finish: Finish) -> Result<bool, LedgerError> {
        self.change(Operation::Finish(id, finish)).await.map(Outcome::changed)
    }

    async fn forget(&self, before: Timestamp, most: u64) -> Result<Forgotten, LedgerError> {
        let expired = self.change(Operation::ForgetTombstones(before)).await?.rows;
        let mut dropped = 0;
        loop {
            let row = sqlx::query("SELECT COUNT(*) AS rows FROM resources WHERE state = 'deleted'")
                .fetch_one(&self.readers)
                .await
                .map_err(failed)?;
            let surplus = row.try_get::<i64, _>("rows").map_err(failed)?.unsigned_abs().saturating_sub(most);
            let trimmed = match surplus {
                0 => 0,
                _ => self.change(Operation::TrimTombstones(surplus.min(TRIMMED_AT_ONCE))).await?.rows,
            };
            if trimmed == 0 {
                return Ok(Forgotten { expired, dropped });
            }
            dropped += trimmed;
        }
    }

    async fn find(&self, id: ResourceId) -> Result<Option<Resource>, LedgerError> {
        let row = sqlx::query("SELECT * FROM resources WHERE id = ?")
            .bind(id.to_string())
            .fetch_optional(&self.readers)
            .await
            .map_err(failed)?;
        let resource = row.as_ref().map(|row| row::resource(id, row)).transpose();
        if resource.is_err() && self.memory.index().contains(id) {
            // The row could be read before, so something else has changed it, and maybe other rows as well.
            self.memory.index().doubt();
        }
        Ok(resource?)
    }

    async fn state(&self, id: ResourceId) -> Result<Option<State>, LedgerError> {
        if self.memory.index().contains(id) {
            return Ok(Some(State::Ready));
        }
        let row = sqlx::query("SELECT id, state FROM resources WHERE id = ?")
            .bind(id.to_string())
            .fetch_optional(&self.readers)
            .await
            .map_err(failed)?;
        Ok(row.as_ref().map(|row| row::state(row).unwrap_or(State::Ready)))
    }

    async fn without_row(&self, keys: &[BlobKey]) -> Result<Vec<Rowless>, LedgerError> {
        let index = self.memory.index();
        let unsure: Vec<BlobKey> =
            keys.iter().copied().filter(|key| !index.contains(key.resource())).collect();
        let mut found = Vec::new();
        for keys in unsure.chunks(KEYS_AT_ONCE) {
            found.extend(abandoned::without_row(keys, &self.readers).await.map_err(failed)?);
        }
        Ok(found)
    }

    async fn page(&self, state: State, after: Option<ResourceId>, limit: u32) -> Result<Page, LedgerError> {
        reading::page(&self.readers, state, after, limit).await.map_err(failed)
    }

    async fn observe(&self, observations: Vec<Observation>) -> Result<(), LedgerError> {
        self.change(Operation::Observe(observations)).await.map(drop)
    }

    async fn load(&self, least_bytes: u64) -> Result<(), LedgerError> {
        self.memory.count_at_least(least_bytes);
        self.read_all().await
    }

    async fn refresh(&self, thorough: bool) -> Result<(), LedgerError> {
        let index = self.memory.index();
        // At the start everything has just been read, so the first thorough refresh reads nothing.
        let is_new = index.take_newness();
        if index.is_doubtful() || thorough && !is_new { self.read_all().await } else { Ok(()) }
    }

    async fn listed(&self, after: Option<ResourceId>, limit: usize) -> Result<Vec<Listed>, LedgerError> {
        Ok(self.memory.index().listed(after, limit))
    }

    async fn unreadable(&self) -> Result<Unreadable, LedgerError> {
        Ok(self.memory.index().unreadable())
    }

    async fn taken(&self) -> Result<Taken, LedgerError> {
        Ok(self.memory.taken())
    }

    async fn owner_memory(&self, owner: &Owner) -> Result<OwnerMemory, LedgerError> {
        Ok(self.memory.index().owner_memory(owner))
    }

    async fn stored(&self, least_bytes: u64) -> Result<BTreeMap<String, Stored>, LedgerError> {
        let mut connection = self.readers.acquire().await.map_err(failed)?;
        row::stored(least_bytes, &mut connection).await.map_err(failed)
    }

    async fn count_by_state(&self) -> Result<BTreeMap<&'static str, u64>, LedgerError> {
        let rows = sqlx::query("SELECT state, COUNT(*) AS rows FROM resources GROUP BY state")
            .fetch_all(&self.readers)
            .await
            .map_err(failed)?;
        let known = rows.iter().filter_map(|row| Some((row::state(row).ok()?, row)));
        known
            .map(|(state, row)| Ok((state.as_str(), row.try_get::<i64, _>("rows")?.unsigned_abs())))
            .collect::<Result<_, sqlx::Error>>()
            .map_err(failed)
    }

    async fn facts(&self) -> Result<Facts, LedgerError> {
        surroundings::facts(&self.readers).await.map_err(failed)
    }

    async fn write(&self, fact: Fact) -> Result<(), LedgerError> {
        self.change(Operation::Write(fact)).await.map(drop)
    }

    fn changes(&self) -> u64 {
        self.memory.changes()
    }

    async fn close(&self) {
        // The last connection to close puts the whole write-ahead log into the database. A reader could not.
        self.readers.close().await;
        self.writer.close().await;
    }
}
