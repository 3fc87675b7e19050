//! The ledger in SQLite: one writer task shares each commit among several operations. Readers have a pool.

mod abandoned;
mod deletions;
mod error;
mod facts;
mod file;
mod form;
mod life;
mod logged;
mod opening;
mod operation;
mod read_keys;
mod reading;
mod row;
mod strays;
mod tombstones;
mod totals;
mod uploads;
mod writer;

pub mod changes;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqlitePool};
use sqlx::{ConnectOptions, Connection as _, Row as _};

use crate::place::Place;
use cloakroom_core::resource::{BlobKey, Resource, ResourceId, SecretHash, State, UploadHandle};
use cloakroom_storage::ledger::{
    Abandoned, Chosen, Completion, Deletion, Fact, Finish, Forgotten, KeyChange, KeyChanged, Ledger,
    LedgerError, LedgerFacts, Mirror, Observation, Page, PendingResource, Rowless, Totals, WrongForm,
};
use cloakroom_storage::log::{Appender, Progress};
use error::failed;
pub use file::SqliteFile;
use logged::TaskLog;
use opening::{not_migrated, not_opened, options, readers, watch};
use operation::LedgerOperation;
use writer::{Feed, Writer};

/// How long a connection waits for the lock of another one. Only one connection writes, so the wait is for checkpoints,
/// or for another process. An upload that fails waits up to three times, and has a place meanwhile.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// How many tombstones one change removes at most, because uploads wait for that change.
const TRIMMED_AT_ONCE: u64 = 5000;

/// How many keys one look-up asks for.
const KEYS_AT_ONCE: usize = 1000;

/// Where the changes of a ledger become durable.
pub enum Changes {
    /// In its file.
    OnDisk,
    /// In a bucket. The file is what [`LedgerFile`](cloakroom_storage::log::LedgerFile) has made of it.
    Logged(Appender),
    /// Nowhere, because the bucket takes no writes.
    Refused,
}

/// The ownership table in a SQLite file.
pub struct SqliteLedger {
    readers: SqlitePool,
    writer: Writer,
    feed: Arc<Feed>,
    /// That of its log; `None` if it has none.
    progress: Option<Arc<Progress>>,
}

impl SqliteLedger {
    /// Opens the database at `path`. Creates it if it is missing. A file that is no ledger, or that a newer version has
    /// written, is an error and stays as it is.
    pub async fn open(path: &Path) -> Result<Self, LedgerError> {
        Self::open_in(&Place::default(), path, Changes::OnDisk).await
    }

    /// The same. `place` also watches the files of the ledger.
    pub async fn open_in(place: &Place, path: &Path, changes: Changes) -> Result<Self, LedgerError> {
        form::check(path).await?;
        let options = options(path);
        let shown = || path.display().to_string();
        let mut connection = options.connect().await.map_err(|source| not_opened(source, shown()))?;
        form::MIGRATIONS.run(&mut connection).await.map_err(|source| not_migrated(source, shown()))?;
        let (mut begin, mut progress) = ("BEGIN IMMEDIATE", None);
        let log = match changes {
            Changes::OnDisk => None,
            Changes::Logged(appender) => {
                progress = Some(Arc::clone(appender.progress()));
                Some(TaskLog::begin(appender, &mut connection).await.map_err(failed)?)
            }
            Changes::Refused => {
                execute(&mut connection, "PRAGMA query_only = ON").await.map_err(failed)?;
                begin = "BEGIN";
                None
            }
        };
        let readers = readers(options).await.map_err(|source| not_opened(source, shown()))?;
        watch(place, path).map_err(|source| LedgerError::Open { path: shown(), source: Arc::new(source) })?;
        let feed = Arc::new(Feed::default());
        let writer = Writer::start(connection, Arc::clone(&feed), place.clone(), log, begin);
        Ok(Self { readers, writer, feed, progress })
    }

    /// Runs one change, and returns once it is committed.
    async fn change<O: LedgerOperation>(&self, operation: O) -> Result<O::Outcome, LedgerError> {
        self.writer.run(operation).await
    }
}

#[async_trait]
impl Ledger for SqliteLedger {
    fn follow(&self, mirror: Arc<dyn Mirror>) {
        self.feed.follow(mirror);
    }

    async fn begin(&self, pending: PendingResource) -> Result<(), LedgerError> {
        let rows = self.change(uploads::Begin(pending)).await?;
        if rows > 0 { Ok(()) } else { Err(LedgerError::Taken) }
    }

    async fn note_handle(&self, id: ResourceId, handle: UploadHandle) -> Result<(), LedgerError> {
        let rows = self.change(uploads::NoteHandle { id, handle }).await?;
        if rows > 0 { Ok(()) } else { Err(LedgerError::Abandoned { id }) }
    }

    async fn complete(&self, completion: Completion) -> Result<(), LedgerError> {
        let id = completion.id;
        let rows = self.change(uploads::Complete(completion)).await?;
        if rows > 0 { Ok(()) } else { Err(LedgerError::Abandoned { id }) }
    }

    async fn abandon(&self, id: ResourceId) -> Result<Option<Abandoned>, LedgerError> {
        self.change(uploads::Abandon(id)).await
    }

    async fn mark_used(&self, id: ResourceId, at: Timestamp) -> Result<bool, LedgerError> {
        Ok(self.change(life::MarkUsed { id, at }).await?.is_some())
    }

    async fn change_read_keys(&self, id: ResourceId, change: KeyChange) -> Result<KeyChanged, LedgerError> {
        self.change(read_keys::ChangeReadKeys { id, change }).await
    }

    async fn mark_deleting(&self, decision: Deletion) -> Result<bool, LedgerError> {
        Ok(self.change(deletions::MarkDeleting(decision)).await? > 0)
    }

    async fn finish(&self, id: ResourceId, finish: Finish) -> Result<bool, LedgerError> {
        Ok(match finish {
            Finish::Deleted => self.change(deletions::LeaveTombstone(id)).await?.is_some(),
            Finish::Abandoned { late } => self.change(uploads::ForgetUpload { id, late }).await? > 0,
        })
    }

    async fn forget(&self, before: Timestamp, most: u64) -> Result<Forgotten, LedgerError> {
        let expired = self.change(tombstones::ForgetTombstones { before, most }).await?;
        let mut dropped = 0;
        loop {
            let row = sqlx::query("SELECT COUNT(*) AS rows FROM resources WHERE state = 'deleted'")
                .fetch_one(&self.readers)
                .await
                .map_err(failed)?;
            let surplus = row.try_get::<i64, _>("rows").map_err(failed)?.unsigned_abs().saturating_sub(most);
            let trimmed = match surplus {
                0 => 0,
                _ => self.change(tombstones::TrimTombstones(surplus.min(TRIMMED_AT_ONCE))).await?,
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
        Ok(row.as_ref().map(|row| row::resource(id, row)).transpose()?)
    }

    async fn find_by_secret(&self, hash: SecretHash) -> Result<Chosen, LedgerError> {
        let hash = hash.as_bytes().as_slice();
        let row = sqlx::query("SELECT * FROM resources WHERE secret_hash = ?").bind(hash);
        let row = row.fetch_optional(&self.readers).await.map_err(failed)?;
        if let Some((id, row)) = row.and_then(|row| Some((row::id(&row).ok()?, row))) {
            return Ok(Chosen::By(Box::new(row::resource(id, &row)?)));
        }
        let spent = sqlx::query("SELECT 1 FROM spent_secrets WHERE secret_hash = hex(?)").bind(hash);
        let is_spent = spent.fetch_optional(&self.readers).await.map_err(failed)?.is_some();
        Ok(if is_spent { Chosen::Before } else { Chosen::Never })
    }

    async fn without_row(&self, keys: &[BlobKey]) -> Result<Vec<Rowless>, LedgerError> {
        let mut found = Vec::new();
        for keys in keys.chunks(KEYS_AT_ONCE) {
            found.extend(abandoned::without_row(keys, &self.readers).await.map_err(failed)?);
        }
        Ok(found)
    }

    async fn page(&self, state: State, after: Option<ResourceId>, limit: u32) -> Result<Page, LedgerError> {
        reading::page(&self.readers, state, after, limit).await.map_err(failed)
    }

    async fn observe(&self, observations: Vec<Observation>) -> Result<(), LedgerError> {
        self.change(life::Observe(observations)).await.map(drop)
    }

    async fn totals(&self) -> Result<Totals, LedgerError> {
        self.change(totals::Count).await
    }

    async fn facts(&self) -> Result<LedgerFacts, LedgerError> {
        facts::facts(&self.readers).await.map_err(failed)
    }

    async fn write(&self, fact: Fact) -> Result<(), LedgerError> {
        self.change(fact).await.map(drop)
    }

    fn changes(&self) -> u64 {
        self.feed.changes()
    }

    async fn stalled(&self) {
        match &self.progress {
            Some(progress) => progress.stalled().await,
            None => std::future::pending().await,
        }
    }

    async fn close(&self) {
        // The last connection to close puts the whole write-ahead log into the database. A reader could not.
        self.readers.close().await;
        self.writer.close().await;
    }
}

/// Runs a statement that has no parameters and no result.
async fn execute(connection: &mut SqliteConnection, statement: &'static str) -> Result<(), sqlx::Error> {
    sqlx::query(statement).execute(connection).await.map(drop)
}

impl SqliteLedger {
    /// Writes a copy of the ledger, as it is at one moment, into a new file at `path`. Changes go on meanwhile. After an error
    /// the file may be there, and is not whole.
    pub async fn copy_to(&self, path: &Path) -> Result<(), LedgerError> {
        let path = path.to_string_lossy().into_owned();
        sqlx::query("VACUUM INTO ?1").bind(path).execute(&self.readers).await.map_err(failed)?;
        Ok(())
    }

    /// Reads all of the copy at `path`, and says whether it is whole, and a ledger that this version can use.
    pub async fn check_copy(path: &Path) -> Result<(), LedgerError> {
        form::check(path).await?;
        let shown = || path.display().to_string();
        if fs::metadata(path).map_err(|error| not_opened(error.into(), shown()))?.len() == 0 {
            return Err(LedgerError::WrongForm { path: shown(), form: WrongForm::NoDatabase });
        }
        let options = SqliteConnectOptions::new().filename(path).read_only(true).disable_statement_logging();
        let mut copy = options.connect().await.map_err(|source| not_opened(source, shown()))?;
        let found: String =
            sqlx::query_scalar("PRAGMA quick_check(1)").fetch_one(&mut copy).await.map_err(failed)?;
        copy.close().await.map_err(failed)?;
        if found == "ok" { Ok(()) } else { Err(failed(sqlx::Error::Protocol(found))) }
    }
}
