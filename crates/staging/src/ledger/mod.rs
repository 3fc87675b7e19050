//! Who owns what: the ownership table.

mod lease;
mod listed;
mod room;
mod sqlite;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use cloakroom_core::resource::{
    Bundle, DeletionReason, FileName, Lifetime, Owner, Resource, ResourceId, RowName, SecretHash, Sighting,
    State, UploadHandle,
};

pub use lease::{Authority, Epoch, GivenUp, LEASE_RENEWAL, LEASE_TIME, LeaseId};
pub use listed::{Listed, MemoryLimits, Unreadable};
pub use room::{Account, Charge, Shortage, Taken};
pub use sqlite::SqliteLedger;

/// A row as an upload begins it: nothing but the ticket is certain yet.
#[derive(Debug, Clone)]
pub struct PendingResource {
    /// Its public name.
    pub id: ResourceId,
    /// Hash of its secret.
    pub secret_hash: SecretHash,
    /// The name it came with.
    pub file_name: Option<FileName>,
    /// When the upload began.
    pub created_at: Timestamp,
    /// Who uploads.
    pub uploaded_by: Option<String>,
}

/// What makes a pending row ready.
#[derive(Debug, Clone)]
pub struct Completion {
    /// Which row.
    pub id: ResourceId,
    /// Whom it is for.
    pub owner: Owner,
    /// Its stored bytes.
    pub bundle: Bundle,
    /// How long it may stay.
    pub lifetime: Lifetime,
    /// The moment from which that counts.
    pub created_at: Timestamp,
}

/// How much is acknowledged and not yet removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stored {
    /// Number of resources.
    pub resources: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl std::iter::Sum for Stored {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            resources: sum.resources + one.resources,
            bytes: sum.bytes.saturating_add(one.bytes),
        })
    }
}

/// The ownership table. Every method that changes something returns only after the change is durable.
#[async_trait]
pub trait Ledger: Send + Sync {
    /// Adds a `pending` row, and takes the lease of its upload with what it is charged. [`LedgerError::NoRoom`] if an account
    /// has too little.
    async fn begin(
        &self,
        pending: PendingResource,
        lease: LeaseId,
        charges: &[Charge],
    ) -> Result<(), LedgerError>;

    /// Whether an upload could be charged that. [`LedgerError::NoRoom`] if an account has too little.
    async fn check_room(&self, charges: &[Charge]) -> Result<(), LedgerError>;

    /// From now on an upload is charged that, in place of what it was. [`LedgerError::NoRoom`] if an account has too little:
    /// then nothing changes. [`LedgerError::GivenUp`] if the upload does not go on.
    async fn charge(&self, id: ResourceId, lease: LeaseId, charges: &[Charge]) -> Result<(), LedgerError>;

    /// How much is taken of an account.
    async fn charged(&self, account: &Account) -> Result<u64, LedgerError>;

    /// Notes what the store needs to abort the upload. [`LedgerError::GivenUp`] if it does not go on.
    async fn note_handle(
        &self,
        id: ResourceId,
        lease: LeaseId,
        handle: UploadHandle,
    ) -> Result<(), LedgerError>;

    /// `pending → ready`; the lease ends, and the row is charged what it has. [`LedgerError::GivenUp`] if the row is not
    /// pending, or if its upload was given up. A lease that has only ended by itself is no obstacle.
    async fn complete(&self, completion: Completion, lease: LeaseId) -> Result<(), LedgerError>;

    /// Ends an upload for good, before anything of it is removed; the row stays until [`Self::bury`]. The cleaner may give up an
    /// upload whose lease has ended, and an uploader its own. `None` if the upload goes on, or is complete. An upload without
    /// a row counts as given up.
    async fn give_up(&self, id: ResourceId, by: Authority) -> Result<Option<GivenUp>, LedgerError>;

    /// Renews leases for [`LEASE_TIME`]; returns those that do not exist any more.
    async fn renew(&self, leases: &[LeaseId]) -> Result<Vec<LeaseId>, LedgerError>;

    /// Takes a lease for a download. `false` if the deletion of that resource is decided.
    async fn hold(&self, id: ResourceId, lease: LeaseId) -> Result<bool, LedgerError>;

    /// Whether a download of it has a lease.
    async fn is_downloading(&self, id: ResourceId) -> Result<bool, LedgerError>;

    /// Lets go of a lease, and of what its upload was charged: at once where leases are in memory, and elsewhere at the latest
    /// when it ends by itself.
    fn let_go(&self, lease: LeaseId);

    /// The cleaner's term; `None` if another server has it.
    async fn term(&self) -> Result<Option<Epoch>, LedgerError>;

    /// Notes a download. `false` if the resource is not `ready` (any more).
    async fn mark_used(&self, id: ResourceId, at: Timestamp) -> Result<bool, LedgerError>;

    /// `ready → deleting`, before any byte goes, if the condition of the decision holds and `by` has a right to it: a cleaner
    /// in its term, the ticket's holder, an admin. From then on the row only ever becomes a tombstone. `false` if it stays.
    async fn condemn(&self, decision: Deletion, by: Authority) -> Result<bool, LedgerError>;

    /// The bytes are gone. `deleting → deleted`: a [`Tombstone`](cloakroom_core::resource::Tombstone) remains, and the room is free.
    /// A row whose upload was given up goes for good. `false` if there was nothing to bury.
    async fn bury(&self, id: ResourceId) -> Result<bool, LedgerError>;

    /// Removes tombstones of resources deleted before `before`; returns how many.
    async fn forget_tombstones(&self, before: Timestamp) -> Result<u64, LedgerError>;

    /// Removes tombstones beyond `most`, one after the other the oldest of the namespace that has most of them; returns
    /// how many.
    async fn trim_tombstones(&self, most: u64) -> Result<u64, LedgerError>;

    /// Removes what this version cannot read, by the name that [`UnreadableRow`] has: more than one row where damaged ids
    /// begin alike. Their room is free. `false` if there is no such row.
    async fn discard(&self, row: RowName) -> Result<bool, LedgerError>;

    /// One row. [`LedgerError::Unreadable`] if this version cannot read it.
    async fn find(&self, id: ResourceId) -> Result<Option<Resource>, LedgerError>;

    /// The state of one row, whether the rest of it can be read or not. One that this version does not know counts as
    /// [`State::Ready`]: the row may have been acknowledged.
    async fn state(&self, id: ResourceId) -> Result<Option<State>, LedgerError>;

    /// The owners of those of `ids` that are ready and can be read.
    async fn owners(&self, ids: &[ResourceId]) -> Result<BTreeMap<ResourceId, Owner>, LedgerError>;

    /// The uploaders of those of `ids` that are ready. Rows without an uploader are left out.
    async fn uploaders(&self, ids: &[ResourceId]) -> Result<BTreeMap<ResourceId, String>, LedgerError>;

    /// Up to `limit` tombstones, in the order of their ids, after `after`; none if there are no more. Those that this
    /// version cannot read are left out.
    async fn tombstones(&self, after: Option<ResourceId>, limit: u32) -> Result<Vec<Resource>, LedgerError>;

    /// Up to `limit` ids in `state`, in order, after `after`; none if there are no more. Damaged ids are left out.
    async fn ids_in(
        &self,
        state: State,
        after: Option<ResourceId>,
        limit: u32,
    ) -> Result<Vec<ResourceId>, LedgerError>;

    /// Notes what was seen of owners; rows that are not `ready` (any more) are left alone.
    async fn observe(&self, sightings: Vec<(ResourceId, Sighting)>) -> Result<(), LedgerError>;

    /// Reads what is kept in memory in front of the rows: what is ready, what cannot be read, and the room that is taken. To be
    /// called before anything else.
    async fn load(&self, limits: MemoryLimits) -> Result<(), LedgerError>;

    /// Reads that again if something else than this server may have changed rows: where there is a sign of that, or if
    /// `thorough`.
    async fn refresh(&self, thorough: bool) -> Result<(), LedgerError>;

    /// Up to `limit` ready resources, in the order of their ids, after `after`; fewer where owners must be looked up, and none
    /// if there are no more.
    async fn listed(&self, after: Option<ResourceId>, limit: usize) -> Result<Vec<Listed>, LedgerError>;

    /// What this version cannot read, as far as it was seen.
    async fn unreadable(&self) -> Result<Unreadable, LedgerError>;

    /// One of those rows.
    async fn find_unreadable(&self, name: &RowName) -> Result<Option<UnreadableRow>, LedgerError>;

    /// How much is taken in all, for those who watch the server.
    async fn taken(&self) -> Result<Taken, LedgerError>;

    /// What is acknowledged and not yet removed, by namespace. Where the namespace or the size of a row cannot be read,
    /// it counts for the namespace of no name, or as `least_bytes`.
    async fn stored(&self, least_bytes: u64) -> Result<BTreeMap<String, Stored>, LedgerError>;

    /// How many rows there are in each known state that has any.
    async fn count_by_state(&self) -> Result<BTreeMap<&'static str, u64>, LedgerError>;

    /// Which cluster was asked about owners, by the uid of its namespace `kube-system`; `None` if none is known.
    async fn cluster(&self) -> Result<Option<String>, LedgerError>;

    /// From now on that is the cluster; `None` forgets it.
    async fn remember_cluster(&self, uid: Option<String>) -> Result<(), LedgerError>;

    /// Finishes what was accepted and lets go of the database.
    async fn close(&self);
}

/// A row with a value that is not what this version writes.
#[derive(Debug, Clone, thiserror::Error)]
#[error("resource {name} has an unreadable {column} in the ledger")]
pub struct UnreadableRow {
    /// Which row.
    pub name: RowName,
    /// Which column, the first of them.
    pub column: &'static str,
    /// Its state, if that can be read.
    pub state: Option<State>,
    /// The namespace of its owner, if that can be read.
    pub namespace: Option<String>,
    /// How many bytes it has, if that can be read.
    pub size_bytes: Option<u64>,
    /// Hash of its secret, if that can be read: it says whose ticket this is.
    pub secret_hash: Option<SecretHash>,
}

/// A decision to delete, and what it was made on.
#[derive(Debug, Clone, Copy)]
pub struct Deletion {
    /// Which resource.
    pub id: ResourceId,
    /// Why.
    pub reason: DeletionReason,
    /// When it was decided.
    pub at: Timestamp,
    /// The deletion holds only if nothing was downloaded since; see [`Condition`].
    pub condition: Condition,
}

/// When a deletion still holds at the moment it is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// The last download is the one that was seen, or there still is none, and none is going on.
    LastUsedAt(Option<Timestamp>),
    /// Always: the ticket holder asked for it, or its time is up whether it is used or not.
    Always,
}

/// The ledger could not do it.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The database could not be opened.
    #[error(
        "cannot open the ledger {path}: check that the folder belongs to this user and that the file is a cloakroom ledger"
    )]
    Open {
        /// Its path.
        path: String,
        /// What SQLite said.
        #[source]
        source: sqlx::Error,
    },
    /// The database was written by a version that this one does not know, or it is damaged.
    #[error(
        "cannot bring the ledger {path} to this version's form: it may come from a newer cloakroom, or be damaged; \
         start the newer version again, or restore a backup"
    )]
    Migrate {
        /// Its path.
        path: String,
        /// What went wrong.
        #[source]
        source: sqlx::migrate::MigrateError,
    },
    /// The disk is full.
    #[error("the ledger cannot grow: the disk is full")]
    Full,
    /// SQLite cannot open a file that it needs: the limit of open files is reached.
    #[error("the ledger cannot open a file that it needs: too many are open")]
    OutOfDescriptors,
    /// The file system is read-only, or the disk fails.
    #[error("the ledger cannot be written")]
    NotWritable(#[source] Arc<sqlx::Error>),
    /// A rule of the table forbids the change: something in the row is not what this server writes.
    #[error("the ledger does not take the change, because of what is in the row already")]
    Refused(#[source] Arc<sqlx::Error>),
    /// SQLite failed otherwise.
    #[error("the ledger failed")]
    Database(#[source] Arc<sqlx::Error>),
    /// A stored value is not what this version writes.
    #[error(transparent)]
    Unreadable(#[from] UnreadableRow),
    /// An account has too little room.
    #[error("there is no room: {0}")]
    NoRoom(Shortage),
    /// The upload has ended already.
    #[error("the upload of resource {id} was given up before it was complete")]
    GivenUp {
        /// Which row.
        id: ResourceId,
    },
    /// The ledger was closed.
    #[error("the ledger is closed: the server is stopping")]
    Closed,
}

impl From<Arc<sqlx::Error>> for LedgerError {
    fn from(error: Arc<sqlx::Error>) -> Self {
        /// The one for "unable to open database file". The file was there at the start.
        const SQLITE_CANTOPEN: i32 = 14;
        /// "attempt to write a readonly database".
        const SQLITE_READONLY: i32 = 8;
        /// "disk I/O error" of a write, a sync, a truncation (<https://www.sqlite.org/rescode.html>). A write to a
        /// read-only file system is one too.
        const SQLITE_IOERR_ON_WRITE: [i32; 4] = [778, 1034, 1290, 1546];
        let Some(code) = result_code(&error) else { return Self::Database(error) };
        match code & 0xff {
            SQLITE_FULL => Self::Full,
            SQLITE_CANTOPEN => Self::OutOfDescriptors,
            SQLITE_READONLY => Self::NotWritable(error),
            SQLITE_CONSTRAINT => Self::Refused(error),
            _ if SQLITE_IOERR_ON_WRITE.contains(&code) => Self::NotWritable(error),
            _ => Self::Database(error),
        }
    }
}

/// Primary result code of SQLite for "database or disk is full".
const SQLITE_FULL: i32 = 13;

/// A rule for a column, or for the type of its values.
const SQLITE_CONSTRAINT: i32 = 19;

/// SQLite's extended result code.
fn result_code(error: &sqlx::Error) -> Option<i32> {
    error.as_database_error()?.code()?.parse().ok()
}

/// Whether the disk is full; see [`LedgerError::Full`].
fn is_full(error: &sqlx::Error) -> bool {
    result_code(error).is_some_and(|code| code & 0xff == SQLITE_FULL)
}

/// Whether a rule of the table forbids a change; see [`LedgerError::Refused`].
fn is_refusal(error: &sqlx::Error) -> bool {
    result_code(error).is_some_and(|code| code & 0xff == SQLITE_CONSTRAINT)
}

impl From<sqlx::Error> for LedgerError {
    fn from(error: sqlx::Error) -> Self {
        Arc::new(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlx::{ConnectOptions as _, SqliteConnection};

    async fn failure(connection: &mut SqliteConnection, sql: &'static str) -> LedgerError {
        LedgerError::from(sqlx::raw_sql(sql).execute(connection).await.unwrap_err())
    }

    #[tokio::test]
    async fn what_sqlite_says_is_told_apart() {
        let mut memory = sqlx::sqlite::SqliteConnectOptions::new().connect().await.unwrap();
        sqlx::raw_sql("CREATE TABLE t (n INTEGER NOT NULL CHECK (n > 0)) STRICT")
            .execute(&mut memory)
            .await
            .unwrap();
        for refused in
            ["INSERT INTO t VALUES (0)", "INSERT INTO t VALUES ('text')", "INSERT INTO t VALUES (NULL)"]
        {
            let error = failure(&mut memory, refused).await;
            assert!(matches!(error, LedgerError::Refused(_)), "{refused}: {error:?}");
        }
        assert!(matches!(failure(&mut memory, "SELECT nothing").await, LedgerError::Database(_)));
        let error = failure(&mut memory, "PRAGMA query_only = ON; DELETE FROM t").await;
        assert!(matches!(error, LedgerError::NotWritable(_)), "{error:?}");
    }
}
