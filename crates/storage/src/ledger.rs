//! The port for the ownership table: which resources there are, and the objects that they live for.

mod facts;
mod mirror;

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::Replaced;
use crate::log::WriterEnd;
use crate::stamp::Installation;
use cloakroom_core::resource::{
    BlobKey, Bundle, DeletionReason, FileName, Lifetime, Owner, OwnerHistory, OwnerKind, ReadKey, Resource,
    ResourceId, SecretHash, State, UploadHandle,
};

pub use facts::{Fact, LedgerFacts, Restored};
pub use mirror::{Change, Mirror, Totals};

/// The row of an upload that begins. Only the ticket is certain yet.
#[derive(Debug, Clone)]
pub struct PendingResource {
    /// Its public name.
    pub id: ResourceId,
    /// Hash of its secret.
    pub secret_hash: SecretHash,
    /// The name that it was uploaded under.
    pub file_name: Option<FileName>,
    /// When the upload began.
    pub created_at: Timestamp,
    /// Who uploads it: a user, a named token, or the address of the peer.
    pub uploaded_by: Option<String>,
}

/// The data that makes a pending row ready.
#[derive(Debug, Clone)]
pub struct Completion {
    /// The id of the row.
    pub id: ResourceId,
    /// The objects that it lives for.
    pub owner: Owner,
    /// Length and digest of its stored bytes.
    pub bundle: Bundle,
    /// How long it may stay.
    pub lifetime: Lifetime,
    /// The time from which the lifetime counts.
    pub created_at: Timestamp,
}

/// An upload that can no longer be completed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Abandoned {
    /// What the store needs to abort the upload; `None` if the key is enough.
    pub handle: Option<UploadHandle>,
}

/// A change of the read keys of a resource.
#[derive(Debug, Clone, Copy)]
pub enum KeyChange {
    /// One is added, and those that have ended at `now` go. Nothing changes if `most` others are left.
    Add {
        /// The new key.
        key: ReadKey,
        /// The present time.
        now: Timestamp,
        /// How many keys the resource may have.
        most: usize,
    },
    /// All of them go.
    EndAll,
}

/// What a change of read keys has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyChanged {
    /// It is done.
    Done,
    /// The resource has as many keys as it may have.
    TooMany,
    /// The resource is not, or is no longer, `ready`.
    NotReady,
}

/// How a row ends whose bytes are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// `deleting → deleted`. A [`Tombstone`](cloakroom_core::resource::Tombstone) remains, but not of a row whose owner has
    /// no objects: there are many such rows, and no ticket asks for them. The secret of such a row cannot be chosen again
    /// for as long as a tombstone would have stayed.
    Deleted,
    /// An upload that was abandoned: its row and its handle go.
    Abandoned {
        /// When it was abandoned, if its bytes may still appear: [`Ledger::without_row`] then knows the key as long as a
        /// tombstone.
        late: Option<Timestamp>,
    },
}

/// How many tombstones were removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// Those whose time was over.
    pub expired: u64,
    /// Younger ones, removed because there were too many.
    pub dropped: u64,
}

/// How much is acknowledged, and not yet removed.
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

/// The ownership table. A method that changes something returns only after the change is durable.
#[async_trait]
pub trait Ledger: Send + Sync {
    /// Sends each committed change to `mirror` from now on, in place of any earlier mirror.
    fn follow(&self, mirror: Arc<dyn Mirror>);

    /// Adds a `pending` row. Returns [`LedgerError::Taken`] if another row has its secret, or had it and went without a
    /// tombstone.
    async fn begin(&self, pending: PendingResource) -> Result<(), LedgerError>;

    /// Stores what the blob store needs to abort the upload. Returns [`LedgerError::Abandoned`] if the row is not pending.
    async fn note_handle(&self, id: ResourceId, handle: UploadHandle) -> Result<(), LedgerError>;

    /// `pending → ready`. Returns [`LedgerError::Abandoned`] if the row is not pending.
    async fn complete(&self, completion: Completion) -> Result<(), LedgerError>;

    /// What the store needs to abort an upload that nothing can complete any more; `None` if its row is not pending. The
    /// row stays until [`Self::finish`]. An upload without a row can be abandoned, too; its handle may still be
    /// there. This needs no room on the disk.
    async fn abandon(&self, id: ResourceId) -> Result<Option<Abandoned>, LedgerError>;

    /// Records a download. Returns `false` if the resource is not, or is no longer, `ready`.
    async fn mark_used(&self, id: ResourceId, at: Timestamp) -> Result<bool, LedgerError>;

    /// Changes the read keys of a resource that is `ready`.
    async fn change_read_keys(&self, id: ResourceId, change: KeyChange) -> Result<KeyChanged, LedgerError>;

    /// `ready → deleting`, before any bytes are removed. The condition of the decision must hold. A row that is marked can
    /// only become a tombstone. Returns `false` if the resource stays.
    async fn mark_deleting(&self, decision: Deletion) -> Result<bool, LedgerError>;

    /// Records that the bytes of a row are removed. Returns `false` if there was nothing to finish.
    async fn finish(&self, id: ResourceId, finish: Finish) -> Result<bool, LedgerError>;

    /// Removes tombstones of resources that were deleted before `before`, and then others until `most` are left, each time the
    /// oldest one of the namespace that has most of them. Uploads that were abandoned before `before` are forgotten, too, and
    /// secrets that were spent before it, or are not among the `most` newest.
    async fn forget(&self, before: Timestamp, most: u64) -> Result<Forgotten, LedgerError>;

    /// One row. Returns [`LedgerError::Unreadable`] if this version cannot read it.
    async fn find(&self, id: ResourceId) -> Result<Option<Resource>, LedgerError>;

    /// Finds the row with this secret. Only secrets that clients have chosen are found.
    async fn find_by_secret(&self, hash: SecretHash) -> Result<Chosen, LedgerError>;

    /// Those of `keys` that have no row, or only a tombstone. A row that this version cannot read is a row.
    async fn without_row(&self, keys: &[BlobKey]) -> Result<Vec<Rowless>, LedgerError>;

    /// Up to `limit` rows in `state` with ids after `after`, in the order of their ids. There are fewer if their owners are
    /// large. A row that this version cannot read is one of them; if its state cannot be read either, it is with those that are
    /// ready, because it may have been acknowledged. An upload that has a handle and no row is pending and unreadable: its row
    /// was damaged.
    async fn page(&self, state: State, after: Option<ResourceId>, limit: u32) -> Result<Page, LedgerError>;

    /// Stores what sweeps and downloads saw of owners. A row stays as it is if it is not `ready`, or if its history has
    /// changed since the observer read it: the next sweep looks again.
    async fn observe(&self, observations: Vec<Observation>) -> Result<(), LedgerError>;

    /// Counts all rows, in turn with the changes.
    async fn totals(&self) -> Result<Totals, LedgerError>;

    /// What the ledger remembers beside its rows.
    async fn facts(&self) -> Result<LedgerFacts, LedgerError>;

    /// Changes one of them.
    async fn write(&self, fact: Fact) -> Result<(), LedgerError>;

    /// A number that grows with each change to the ledger, except to its claim.
    fn changes(&self) -> u64;

    /// Waits until changes take so long to become durable that no caller should wait for them. They go on.
    async fn stalled(&self) {
        std::future::pending::<()>().await;
    }

    /// Finishes the changes that it has accepted, and closes the database.
    async fn close(&self);
}

/// What the ledger knows of a secret that a client has chosen.
#[derive(Debug, Clone)]
pub enum Chosen {
    /// No row has it, and none had it.
    Never,
    /// A row had it that was deleted without a tombstone.
    Before,
    /// This row has it.
    By(Box<Resource>),
}

/// What a sweep or a download saw of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// The id of the resource.
    pub id: ResourceId,
    /// The history in the row when the observer read it.
    pub before: OwnerHistory,
    /// The history that this observation makes of it.
    pub after: OwnerHistory,
}

/// A part of the rows.
#[derive(Debug, Default)]
pub struct Page {
    /// In the order of their ids.
    pub rows: Vec<Result<Resource, UnreadableRow>>,
    /// How many further rows have a damaged id.
    pub damaged_ids: usize,
    /// The id after which the next page begins; `None` if this was the last one.
    pub next: Option<ResourceId>,
}

impl Page {
    /// The id of a row.
    pub fn id(row: &Result<Resource, UnreadableRow>) -> ResourceId {
        row.as_ref().map_or_else(|unreadable| unreadable.id, |resource| resource.id)
    }
}

/// A row with a value that this version does not write.
#[derive(Debug, Clone, thiserror::Error)]
#[error("resource {id} has an unreadable {column} in the ledger")]
pub struct UnreadableRow {
    /// The id of the row.
    pub id: ResourceId,
    /// The first column that cannot be read.
    pub column: &'static str,
    /// Its state; `None` if that cannot be read.
    pub state: Option<State>,
    /// The namespace of its owner; `None` if that cannot be read.
    pub namespace: Option<String>,
    /// How many bytes it has; `None` if that cannot be read.
    pub size_bytes: Option<u64>,
    /// Hash of its secret; `None` if that cannot be read. It tells whether a ticket belongs to this row.
    pub secret_hash: Option<SecretHash>,
}

/// A decision to delete, with the state of the row that it is based on.
#[derive(Debug, Clone, Copy)]
pub struct Deletion {
    /// The id of the resource.
    pub id: ResourceId,
    /// The reason that the tombstone keeps.
    pub reason: DeletionReason,
    /// When it was decided.
    pub at: Timestamp,
    /// What must still be true when the deletion is written.
    pub condition: Condition,
}

/// What must hold at the moment when a deletion is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// The last download is still the one that was seen (`None`: there was none).
    LastUsedAt(Option<Timestamp>),
    /// Nothing: the ticket holder asked for the deletion, or the time is up whether the resource is used or not.
    Always,
}

/// The error of a database, as its library reports it.
pub type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// What a file is that is no ledger of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WrongForm {
    /// It does not begin as a database does.
    #[error(
        "is no database, or its beginning is damaged: if it was the ledger, docs/run.md says what to do (a lost or damaged \
         ledger)"
    )]
    NoDatabase,
    /// Another program wrote it.
    #[error("is the database of another program: give the server a folder of its own")]
    OfAnotherProgram,
    /// It is from before the first release.
    #[error(
        "is a ledger from before version 0.1.0, which no version reads: give the server an empty folder, and stage \
         everything again"
    )]
    Earlier,
    /// A newer version wrote it.
    #[error(
        "is a ledger of form {form}, of a newer cloakroom; this version knows forms up to {known}: start the newer version \
         again, or do what docs/versions.md says (going back)"
    )]
    Newer {
        /// Its form.
        form: i64,
        /// The newest form that this version knows.
        known: i64,
    },
}

/// The ledger could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The database could not be opened.
    #[error(
        "cannot open the ledger {path}: check that the folder belongs to this user and that the file is a cloakroom ledger; \
         if it is damaged, docs/run.md says what to do (a lost or damaged ledger)"
    )]
    Open {
        /// The path of the database.
        path: String,
        /// The error of the database.
        #[source]
        source: Cause,
    },
    /// The file is no ledger of this version. It was not changed.
    #[error("{path} {form}")]
    WrongForm {
        /// The path of the database.
        path: String,
        /// What it is.
        form: WrongForm,
    },
    /// The file is the ledger of another installation.
    #[error("{path} is the ledger of the installation {found}, and not of {expected}")]
    OtherInstallation {
        /// The path of the database.
        path: String,
        /// The id that it has.
        found: String,
        /// The id of the bucket.
        expected: Installation,
    },
    /// The tables cannot be made.
    #[error(
        "cannot make the tables of the ledger {path}: if it is damaged, docs/run.md says what to do (a lost or damaged \
         ledger)"
    )]
    Migrate {
        /// The path of the database.
        path: String,
        /// The error of the migration.
        #[source]
        source: Cause,
    },
    /// The file system cannot map a file into the memory of several processes.
    #[error(
        "the ledger {path} cannot be opened on this file system: its write-ahead log needs shared memory, which the file \
         system does not have; use a local or block volume"
    )]
    NoSharedMemory {
        /// The path of the database.
        path: String,
    },
    /// The file system can hold no further file.
    #[error(
        "the ledger {path} cannot be opened, because its file system has no inode left for another file: delete files \
         there, or use a file system with more inodes"
    )]
    OutOfInodes {
        /// The path of the database.
        path: String,
    },
    /// The disk is full.
    #[error("the ledger cannot grow: the disk is full")]
    Full,
    /// The database cannot open a file that it needs: the limit of open files is reached.
    #[error("the ledger cannot open a file that it needs: too many are open")]
    OutOfDescriptors,
    /// The file system is read-only, or the disk fails.
    #[error("the ledger cannot be written")]
    NotWritable(#[source] Cause),
    /// Another process has locked the database for longer than a change may wait.
    #[error("the ledger cannot be used at the moment")]
    Unavailable(#[source] Cause),
    /// A rule of the table forbids the change, because the row has a value that this server does not write.
    #[error("the ledger refuses the change, because of a value that is already in the row")]
    Refused(#[source] Cause),
    /// The database failed otherwise.
    #[error("the ledger failed")]
    Database(#[source] Cause),
    /// A stored value is not one that this version writes.
    #[error(transparent)]
    Unreadable(#[from] UnreadableRow),
    /// A client has chosen a secret that it or another one has chosen before.
    #[error("there is an upload with this secret already")]
    Taken,
    /// The upload has ended already.
    #[error("the upload of resource {id} was abandoned before it was complete")]
    Abandoned {
        /// The id of the row.
        id: ResourceId,
    },
    /// The ledger is not at its path any more. Nothing is written to it.
    #[error(transparent)]
    Replaced(#[from] Replaced),
    /// The bucket does not take the log.
    #[error("the bucket of this server does not take the log of its ledger: try again in a moment")]
    Stalled,
    /// This server must not write any more.
    #[error(transparent)]
    Ended(#[from] WriterEnd),
    /// The ledger was closed.
    #[error("the ledger is closed: the server is stopping")]
    Closed,
}

/// A committed blob that belongs to no row. Its ledger may have been lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stray {
    /// Its key.
    pub key: BlobKey,
    /// How many bytes it has.
    pub size_bytes: u64,
    /// When a listing with this ledger first found it without a row.
    pub seen_at: Timestamp,
}

/// A key without a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rowless {
    /// The key.
    pub key: BlobKey,
    /// Whether its resource is known to be deleted, or its upload to be abandoned: whatever has this key is left over.
    pub has_ended: bool,
}

/// The objects of one kind, in one namespace or in all of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WatchScope {
    /// The kind.
    pub kind: OwnerKind,
    /// The namespace; `None` is all.
    pub namespace: Option<String>,
}

impl WatchScope {
    /// The scopes that an owner can be found in.
    pub fn covering(owner: &Owner) -> [Self; 2] {
        let in_all = Self { kind: owner.kind().clone(), namespace: None };
        let in_one = Self { namespace: Some(owner.namespace().to_owned()), ..in_all.clone() };
        [in_all, in_one]
    }
}
