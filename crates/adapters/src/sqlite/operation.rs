//! The changes that the writer makes, mostly one SQL statement each, and their effects on the memory in front of the
//! rows.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sqlx::Row as _;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::error::is_refusal;
use super::memory::Memory;
use super::row::{self, known_size};
use super::{abandoned, strays, surroundings, tombstones};
use cloakroom_core::resource::{ResourceId, State, UploadHandle};
use cloakroom_storage::ledger::{
    Abandoned, Completion, Condition, Deletion, Fact, Finish, Observation, PendingResource, Stored,
};

/// One change to the database.
#[derive(Debug)]
pub(super) enum Operation {
    Begin(PendingResource),
    NoteHandle(ResourceId, UploadHandle),
    Complete(Box<Completion>),
    Abandon(ResourceId),
    CountRoom,
    MarkUsed(ResourceId, Timestamp),
    MarkDeleting(Deletion),
    Finish(ResourceId, Finish),
    ForgetTombstones(Timestamp),
    TrimTombstones(u64),
    Observe(Vec<Observation>),
    Write(Fact),
}

/// The result of a change.
#[derive(Debug, Clone, Default)]
pub(super) struct Outcome {
    /// How many rows it changed.
    pub(super) rows: u64,
    /// The room that a deleted row gave back.
    pub(super) freed: Option<Freed>,
    /// The upload that was abandoned; `None` if none was.
    pub(super) abandoned: Option<Abandoned>,
    /// What is stored, by namespace; only [`Operation::CountRoom`] sets it.
    pub(super) counted: Option<BTreeMap<String, Stored>>,
    /// The strays after the change; only [`Operation::CountRoom`] and [`Fact::Strays`] set it.
    pub(super) strays: Option<Stored>,
}

/// The room that a deleted row gave back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Freed {
    /// The namespace of its owner.
    pub(super) namespace: String,
    /// How many bytes it had.
    pub(super) size_bytes: u64,
}

impl Outcome {
    /// Whether any row changed.
    pub(super) fn changed(self) -> bool {
        self.rows > 0
    }
}

impl Operation {
    /// Runs the statement on a connection that is in a transaction.
    pub(super) async fn apply(
        &self,
        connection: &mut SqliteConnection,
        memory: &Memory,
    ) -> Result<Outcome, sqlx::Error> {
        let rows = match self {
            Self::Begin(pending) => begin(pending, connection).await,
            Self::NoteHandle(id, handle) => note_handle(*id, handle, connection).await,
            Self::Complete(completion) => complete(completion, connection).await,
            Self::Abandon(id) => return abandon(*id, connection).await,
            Self::CountRoom => {
                let counted = Some(row::stored(memory.least_bytes(), connection).await?);
                let strays = Some(strays::stored(memory.least_bytes(), connection).await?);
                return Ok(Outcome { counted, strays, ..Outcome::default() });
            }
            Self::MarkUsed(id, at) => mark_used(*id, *at, connection).await,
            Self::MarkDeleting(deletion) => mark_deleting(deletion, connection).await,
            Self::Finish(id, Finish::Deleted) => return leave_tombstone(*id, connection).await,
            Self::Finish(id, Finish::Abandoned { late }) => finish_abandoned(*id, *late, connection).await,
            Self::ForgetTombstones(before) => forget_tombstones(*before, connection).await,
            Self::TrimTombstones(surplus) => tombstones::trim(*surplus, connection).await,
            Self::Observe(observations) => observe(observations, connection).await,
            Self::Write(Fact::Cluster(uid)) => {
                surroundings::remember_cluster(uid.as_deref(), connection).await
            }
            Self::Write(Fact::Claim(claim)) => surroundings::write_claim(*claim, connection).await,
            Self::Write(Fact::Watched(scopes)) => surroundings::remember_watched(scopes, connection).await,
            Self::Write(Fact::Strays { found, gone }) => {
                let rows = strays::note(found, gone, connection).await?;
                let strays = Some(strays::stored(memory.least_bytes(), connection).await?);
                return Ok(Outcome { rows, strays, ..Outcome::default() });
            }
        }?;
        Ok(Outcome { rows, ..Outcome::default() })
    }

    /// Applies the committed change to `memory`.
    pub(super) fn committed(&self, outcome: &Outcome, memory: &Memory) {
        let (is_done, index) = (outcome.rows > 0, memory.index());
        if is_done && !matches!(self, Self::Write(Fact::Claim(_))) {
            memory.changed();
        }
        if let Some(freed) = &outcome.freed {
            memory.freed(freed);
        }
        if let Some(strays) = outcome.strays {
            memory.strays(strays);
        }
        match self {
            Self::Complete(completion) if is_done => memory.completed(completion),
            Self::MarkUsed(id, at) if is_done => index.used(*id, *at),
            Self::MarkUsed(id, _) => index.remove(*id),
            Self::MarkDeleting(deletion) if is_done => index.remove(deletion.id),
            Self::MarkDeleting(_) => index.doubt(),
            Self::Observe(observations) => observations.iter().for_each(|seen| index.observed(seen)),
            Self::CountRoom => {
                if let Some(stored) = &outcome.counted {
                    memory.recount(stored);
                }
            }
            _ => {}
        }
    }
}

async fn begin(pending: &PendingResource, connection: &mut SqliteConnection) -> Result<u64, sqlx::Error> {
    sqlx::query(
        "INSERT INTO resources (id, secret_hash, state, file_name, created_at, unused_timeout_millis, uploaded_by) \
         VALUES (?, ?, 'pending', ?, ?, 0, ?)",
    )
    .bind(pending.id.to_string())
    .bind(pending.secret_hash.as_bytes().as_slice())
    .bind(pending.file_name.as_ref().map(ToString::to_string))
    .bind(pending.created_at.as_millisecond())
    .bind(pending.uploaded_by.as_deref())
    .execute(connection)
    .await
    .map(|done| done.rows_affected())
}

/// The handle goes only with the completion. Otherwise a later [`abandon`] still needs it.
async fn complete(completion: &Completion, connection: &mut SqliteConnection) -> Result<u64, sqlx::Error> {
    let owner = &completion.owner;
    let lifetime = &completion.lifetime;
    let labels: BTreeMap<&str, &str> = owner.labels().collect();
    let labels = serde_json::to_string(&labels).map_err(|error| sqlx::Error::Encode(error.into()))?;
    let rows = sqlx::query(
        "UPDATE resources SET state = 'ready', size_bytes = ?, sha256 = ?, owner_kind = ?, owner_namespace = ?, \
         owner_labels = ?, owner_name = ?, created_at = ?, unused_timeout_millis = ?, ttl_millis = ? \
         WHERE id = ? AND state = 'pending'",
    )
    .bind(i64::try_from(completion.bundle.size_bytes).unwrap_or(i64::MAX))
    .bind(completion.bundle.sha256.as_slice())
    .bind(owner.kind().as_str())
    .bind(owner.namespace())
    .bind(labels)
    .bind(owner.name())
    .bind(completion.created_at.as_millisecond())
    .bind(millis(lifetime.unused_timeout))
    .bind(lifetime.ttl.map(millis))
    .bind(completion.id.to_string())
    .execute(&mut *connection)
    .await?
    .rows_affected();
    if rows > 0 {
        forget_handle(completion.id, connection).await?;
    }
    Ok(rows)
}

/// The largest number of milliseconds that a [`Timestamp`] can be made of. A larger number in a row is not a time.
fn last_milli() -> i64 {
    Timestamp::MAX.as_second() * 1000
}

fn millis(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

async fn note_handle(
    id: ResourceId,
    handle: &UploadHandle,
    connection: &mut SqliteConnection,
) -> Result<u64, sqlx::Error> {
    sqlx::query(
        "INSERT OR REPLACE INTO upload_handles (resource, handle) \
         SELECT id, ? FROM resources WHERE id = ? AND state = 'pending'",
    )
    .bind(handle.expose())
    .bind(id.to_string())
    .execute(connection)
    .await
    .map(|done| done.rows_affected())
}

async fn forget_handle(id: ResourceId, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM upload_handles WHERE resource = ?")
        .bind(id.to_string())
        .execute(connection)
        .await
        .map(drop)
}

/// Abandons an upload whose row is pending or missing.
async fn abandon(id: ResourceId, connection: &mut SqliteConnection) -> Result<Outcome, sqlx::Error> {
    let row = sqlx::query("SELECT id, state FROM resources WHERE id = ?")
        .bind(id.to_string())
        .fetch_optional(&mut *connection)
        .await?;
    let is_pending = row.is_none_or(|row| row::state(&row).is_ok_and(|state| state == State::Pending));
    let handle = sqlx::query("SELECT handle FROM upload_handles WHERE resource = ?")
        .bind(id.to_string())
        .fetch_optional(connection)
        .await?;
    if !is_pending {
        return Ok(Outcome::default());
    }
    let handle = handle.and_then(|row| row.try_get::<String, _>("handle").ok()).map(UploadHandle::from_text);
    Ok(Outcome { abandoned: Some(Abandoned { handle }), ..Outcome::default() })
}

/// A download that is recorded late does not set an earlier time of use.
async fn mark_used(
    id: ResourceId,
    at: Timestamp,
    connection: &mut SqliteConnection,
) -> Result<u64, sqlx::Error> {
    sqlx::query(
        "UPDATE resources SET first_used_at = COALESCE(first_used_at, ?1), \
         last_used_at = MAX(COALESCE(last_used_at, ?1), ?1) WHERE id = ?2 AND state = 'ready'",
    )
    .bind(at.as_millisecond())
    .bind(id.to_string())
    .execute(connection)
    .await
    .map(|done| done.rows_affected())
}

async fn mark_deleting(deletion: &Deletion, connection: &mut SqliteConnection) -> Result<u64, sqlx::Error> {
    let (always, last_used_at) = match deletion.condition {
        Condition::Always => (true, None),
        Condition::LastUsedAt(at) => (false, at),
    };
    sqlx::query(
        "UPDATE resources SET state = 'deleting', deleted_at = ?, deletion_reason = ? \
         WHERE id = ? AND state = 'ready' AND (? OR last_used_at IS ?)",
    )
    .bind(deletion.at.as_millisecond())
    .bind(deletion.reason.as_str())
    .bind(deletion.id.to_string())
    .bind(always)
    .bind(last_used_at.map(Timestamp::as_millisecond))
    .execute(connection)
    .await
    .map(|done| done.rows_affected())
}

/// Removes the row and the handle together with the promise to know the key again.
async fn finish_abandoned(
    id: ResourceId,
    late: Option<Timestamp>,
    connection: &mut SqliteConnection,
) -> Result<u64, sqlx::Error> {
    forget_handle(id, connection).await?;
    if let Some(at) = late {
        abandoned::remember(id, at, connection).await?;
    }
    sqlx::query("DELETE FROM resources WHERE id = ? AND state = 'pending'")
        .bind(id.to_string())
        .execute(connection)
        .await
        .map(|done| done.rows_affected())
}

/// A tombstone keeps only what its answers need, because clients decide how large the other columns are.
async fn leave_tombstone(id: ResourceId, connection: &mut SqliteConnection) -> Result<Outcome, sqlx::Error> {
    let row = sqlx::query(concat!(
        "UPDATE resources SET state = 'deleted', sha256 = NULL, owner_labels = NULL, owner_name = NULL, \
         file_name = NULL, uploaded_by = NULL WHERE id = ? AND state = 'deleting' RETURNING owner_namespace, ",
        known_size!(),
        " AS size_bytes"
    ))
    .bind(id.to_string())
    .fetch_optional(&mut *connection)
    .await?;
    freed(row.as_ref())
}

/// The room that a row gives back, which must have its namespace and its [`known_size`].
fn freed(row: Option<&SqliteRow>) -> Result<Outcome, sqlx::Error> {
    let Some(row) = row else { return Ok(Outcome::default()) };
    let size_bytes = row.try_get::<i64, _>("size_bytes")?.unsigned_abs();
    let freed = Freed { namespace: row::namespace(row), size_bytes };
    Ok(Outcome { rows: 1, freed: Some(freed), ..Outcome::default() })
}

/// A tombstone whose time of deletion is missing or no time is removed by the time of its upload; the index finds both.
/// A value that is not a number sorts after all numbers (<https://www.sqlite.org/datatype3.html>, section 4.1).
async fn forget_tombstones(before: Timestamp, connection: &mut SqliteConnection) -> Result<u64, sqlx::Error> {
    abandoned::forget(before, connection).await?;
    sqlx::query(
        "DELETE FROM resources WHERE id IN (\
         SELECT id FROM resources WHERE state = 'deleted' AND deleted_at < ?1 \
         UNION ALL SELECT id FROM resources WHERE state = 'deleted' AND deleted_at IS NULL AND created_at < ?1 \
         UNION ALL SELECT id FROM resources WHERE state = 'deleted' AND deleted_at > ?2 AND created_at < ?1)",
    )
    .bind(before.as_millisecond())
    .bind(last_milli())
    .execute(connection)
    .await
    .map(|done| done.rows_affected())
}

async fn observe(
    observations: &[Observation],
    connection: &mut SqliteConnection,
) -> Result<u64, sqlx::Error> {
    let mut rows = 0;
    for Observation { id, before, after } in observations {
        let millis = |at: Option<Timestamp>| at.map(Timestamp::as_millisecond);
        let noted = sqlx::query(
            "UPDATE resources SET owner_seen_at = ?, owner_absent_since = ?, owner_finished_since = ? \
             WHERE id = ? AND state = 'ready' \
             AND owner_seen_at IS ? AND owner_absent_since IS ? AND owner_finished_since IS ?",
        )
        .bind(millis(after.seen_at))
        .bind(millis(after.absent_since))
        .bind(millis(after.finished_since))
        .bind(id.to_string())
        .bind(millis(before.seen_at))
        .bind(millis(before.absent_since))
        .bind(millis(before.finished_since))
        .execute(&mut *connection)
        .await;
        match noted {
            Ok(done) => rows += done.rows_affected(),
            // Another value in this row is damaged. The other rows are still written.
            Err(error) if is_refusal(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(rows)
}
