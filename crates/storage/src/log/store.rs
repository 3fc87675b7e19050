//! The ports of the log: the bucket, and the file that is made from what is in it.

use std::path::Path;

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;

use super::{DamagedGroup, ForeignStamp, Group, Position, WriterStamp};
use crate::ledger::{LedgerError, WrongForm};
use crate::stamp::Installation;
use crate::store::StoreError;
use cloakroom_core::text::chain;

/// A bucket that has the ledger of its bundles. All objects but the stamp are written once, and always with the same bytes.
#[async_trait]
pub trait LogStore: Send + Sync {
    /// The stamp; `None` if there is none.
    async fn stamp(&self) -> Result<Option<WriterStamp>, LogError>;

    /// Replaces the stamp `seen`. Returns `false`, and changes nothing, if there is another one.
    async fn replace_stamp(&self, seen: Option<WriterStamp>, by: WriterStamp) -> Result<bool, LogError>;

    /// Writes a group. It is durable when this returns; after an error it may arrive later.
    async fn write_group(&self, at: Position, group: Bytes) -> Result<(), LogError>;

    /// The address of an object, for messages.
    fn shown(&self, object: Object) -> String;

    /// Reads a group; `None` if there is none.
    async fn group(&self, at: Position) -> Result<Option<Bytes>, LogError>;

    /// The places of all groups, in no order.
    async fn groups(&self) -> Result<Vec<Position>, LogError>;

    /// Removes all groups up to this one, and those of earlier epochs.
    async fn remove_groups(&self, last: Position) -> Result<(), LogError>;

    /// All copies, in the order of their places.
    async fn copies(&self) -> Result<Vec<KeptCopy>, LogError>;

    /// Keeps a copy of the file at `path`, with all groups up to `at`. The file must not change meanwhile.
    async fn write_copy(&self, at: Position, path: &Path) -> Result<(), LogError>;

    /// Writes a copy into a new file at `path`.
    async fn read_copy(&self, at: Position, path: &Path) -> Result<(), LogError>;

    /// Removes a copy. It succeeds if there is none.
    async fn remove_copy(&self, at: Position) -> Result<(), LogError>;

    /// Keeps some room in reserve, so that deletions can be logged in a full bucket.
    async fn keep_reserve(&self) -> Result<(), LogError>;

    /// Frees the reserve; if there is none, removes the oldest copy, but never the newest one. Returns `false` if there was nothing
    /// to remove.
    async fn make_room(&self) -> Result<bool, LogError>;
}

/// An object of the bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object {
    /// The one that says which server writes.
    Stamp,
    /// A group of the log.
    Group(Position),
    /// A copy of the ledger.
    Copy(Position),
}

/// A copy of the ledger in the bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptCopy {
    /// It has all groups up to this one.
    pub at: Position,
    /// When it was written, by the clock of the store.
    pub written_at: Timestamp,
}

/// The file of a ledger that no process has open.
#[async_trait]
pub trait LedgerFile: Send + Sync {
    /// Where it is.
    fn path(&self) -> &Path;

    /// Removes it, so that a new ledger begins.
    async fn clear(&self) -> Result<(), LedgerError>;

    /// Makes the changes of a group to it.
    async fn apply(&self, group: Group) -> Result<(), LedgerError>;

    /// Brings it to the form of this version, as a ledger of this installation. A new one has no rows.
    async fn finish(&self, installation: Installation) -> Result<(), LedgerError>;

    /// Reads all of it, and says whether it is whole, and a ledger that this version can use.
    async fn check(&self) -> Result<(), LedgerError>;

    /// The installation that it belongs to; `None` if it names none.
    async fn installation(&self) -> Result<Option<Installation>, LedgerError>;

    /// The copy that the ledger was put back from last, once it is finished.
    async fn restored(&self) -> Result<Option<Position>, LedgerError>;

    /// Takes the file at `from` in its place, if that is whole, and notes that it is the copy `at`, which an admin wants back.
    async fn put_back(&self, from: &Path, at: Position) -> Result<(), LedgerError>;
}

/// What an admin does about an object that is missing or damaged.
const PUT_IT_BACK: &str =
    "put it back from a backup, or go back to a copy of the ledger with --restore-ledger";

/// The log cannot be used, or read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The store could not do what it was asked.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The stamp is not of this version.
    #[error("{place}: {stamp}")]
    Stamp {
        /// The object.
        place: String,
        /// What it is.
        stamp: ForeignStamp,
    },
    /// There is no stamp, although there is or was a ledger.
    #[error(
        "{0} is missing, which says which server writes, so none acknowledges anything: if no other server uses this prefix, \
         start the server anew with --take-over, which makes a new one"
    )]
    NoStamp(String),
    /// Something is there that the ledger, as it was read, does not know of.
    #[error(
        "{found} is there, and what leads there from {end}, where the log ends that can be read, is missing: put it back, or go \
         back to a copy of the ledger with --restore-ledger"
    )]
    Beyond {
        /// What is there.
        found: String,
        /// The last place that was read.
        end: Position,
    },
    /// The stamp is from before the ledger.
    #[error(
        "{place} is an earlier stamp that was put back: it names the epoch {epoch}, and the ledger has reached {latest}. If no other \
         server uses this prefix, start the server anew with --take-over, which makes a new one"
    )]
    EarlierStamp {
        /// The stamp.
        place: String,
        /// The epoch that it names.
        epoch: u64,
        /// The last place that has an object.
        latest: Position,
    },
    /// The log ends before the place that it had reached.
    #[error(
        "the log of the ledger ends at {end}, and had reached {reached}, as {stamp} says, so objects of it are missing: put them \
         back from a backup, or go back to a copy of the ledger with --restore-ledger"
    )]
    Shortened {
        /// The stamp.
        stamp: String,
        /// The place that it names.
        reached: Position,
        /// The last place that was read.
        end: Position,
    },
    /// There is no copy, although there was a ledger.
    #[error(
        "there is no copy of the ledger of {0} any more: put the objects below ledger/ and log/ beside it back from a backup, or \
         begin anew with another prefix"
    )]
    NoCopy(String),
    /// The stamp and a copy are of different prefixes.
    #[error(
        "{stamp} names the installation {expected}, and {copy} is of {found}: one of them was copied from another prefix, so put \
         back what was there. If it is the stamp, and no other server uses this prefix, remove it, and start the server with \
         --take-over, which makes a new one"
    )]
    OtherInstallation {
        /// The copy.
        copy: String,
        /// Its installation.
        found: Installation,
        /// The stamp.
        stamp: String,
        /// The installation that it names.
        expected: Installation,
    },
    /// A group is not whole.
    #[error("{place} cannot be used, because {damage}: {PUT_IT_BACK}")]
    Damaged {
        /// The object.
        place: String,
        /// What is wrong with it.
        damage: DamagedGroup,
    },
    /// A group says that it belongs elsewhere.
    #[error(
        "{place} cannot be used, because it says that it is the group {says} of the installation {of}: {PUT_IT_BACK}"
    )]
    Misplaced {
        /// The object.
        place: String,
        /// The place that it names.
        says: Position,
        /// The installation that it names.
        of: Installation,
    },
    /// A group is missing, and a later one is there.
    #[error("{0} is missing, and the next one is there: {PUT_IT_BACK}")]
    Gap(String),
    /// A copy is not whole.
    #[error("{place} cannot be used, because {why}: {PUT_IT_BACK}")]
    DamagedCopy {
        /// The object.
        place: String,
        /// What is wrong with it.
        why: String,
    },
    /// There is no copy of that name.
    #[error("there is no copy {wanted} of the ledger: there are {}", listed(.there))]
    NoSuchCopy {
        /// The one that was asked for.
        wanted: Position,
        /// Those that there are.
        there: Vec<KeptCopy>,
    },
    /// A copy cannot take the place of the ledger.
    #[error("{place} cannot be used, because {why}; nothing was changed")]
    UnfitCopy {
        /// The copy.
        place: String,
        /// What is wrong with it.
        why: String,
    },
    /// The file that is made from the log cannot be written.
    #[error("the ledger cannot be made from the log")]
    Ledger(#[from] LedgerError),
}

impl LogError {
    /// The failure of a file that is the copy at `place`.
    pub(super) fn of_copy(place: String, source: LedgerError) -> Self {
        match damage(&source) {
            Some(why) => Self::DamagedCopy { place, why },
            None => Self::of_wanted_copy(place, source),
        }
    }

    /// The failure of a file that is the copy at `place`, which an admin wants back.
    pub(super) fn of_wanted_copy(place: String, source: LedgerError) -> Self {
        let why = damage(&source).or_else(|| match &source {
            LedgerError::WrongForm { form, .. } => Some(format!("it {form}")),
            LedgerError::OtherInstallation { found, expected, .. } => {
                Some(format!("it is of the installation {found}, and not of {expected}"))
            }
            _ => None,
        });
        why.map_or(Self::Ledger(source), |why| Self::UnfitCopy { place, why })
    }

    /// Whether the bucket has answered, and a ledger cannot be made of what is there.
    pub fn is_about_content(&self) -> bool {
        match self {
            Self::Damaged { .. }
            | Self::Misplaced { .. }
            | Self::Gap(_)
            | Self::Beyond { .. }
            | Self::Shortened { .. }
            | Self::OtherInstallation { .. }
            | Self::DamagedCopy { .. } => true,
            Self::Ledger(error) => matches!(
                error,
                LedgerError::Database(_) | LedgerError::WrongForm { form: WrongForm::NoDatabase, .. }
            ),
            _ => false,
        }
    }

    /// Whether the bucket has no room.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Store(StoreError::Full { .. }))
    }
}

/// How a copy is damaged, without the name of its file, and without the advice for a ledger on a disk.
fn damage(error: &LedgerError) -> Option<String> {
    match error {
        LedgerError::WrongForm { form: WrongForm::NoDatabase, .. } => {
            Some("it is no database, or its beginning is damaged".to_owned())
        }
        LedgerError::Open { source, .. }
        | LedgerError::Migrate { source, .. }
        | LedgerError::Database(source) => Some(format!("it is damaged ({})", chain(&**source))),
        LedgerError::Unreadable(row) => Some(format!("it is damaged ({})", chain(row))),
        _ => None,
    }
}

fn listed(copies: &[KeptCopy]) -> String {
    let shown =
        |copy: &KeptCopy| format!("{} of {}", copy.at, copy.written_at.strftime("%Y-%m-%dT%H:%M:%SZ"));
    if copies.is_empty() {
        "none".to_owned()
    } else {
        copies.iter().map(shown).collect::<Vec<_>>().join(", ")
    }
}
