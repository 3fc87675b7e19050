//! The changes of uploads.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::Row as _;
use sqlx::sqlite::SqliteConnection;

use super::operation::LedgerOperation;
use super::{abandoned, row};
use cloakroom_core::resource::{ResourceId, State, UploadHandle};
use cloakroom_storage::ledger::{Abandoned, Change, Completion, PendingResource};

/// Adds a `pending` row, unless there is or was one with its secret.
pub(super) struct Begin(pub(super) PendingResource);

#[async_trait]
impl LedgerOperation for Begin {
    type Outcome = u64;

    async fn apply(&self, connection: &mut SqliteConnection, _: u64) -> Result<u64, sqlx::Error> {
        sqlx::query(
            "INSERT INTO resources (id, secret_hash, state, file_name, created_at, unused_timeout_millis, uploaded_by) \
             SELECT ?1, ?2, 'pending', ?3, ?4, 0, ?5 WHERE NOT EXISTS (SELECT 1 FROM resources WHERE secret_hash = ?2) \
             AND NOT EXISTS (SELECT 1 FROM spent_secrets WHERE secret_hash = hex(?2))",
        )
        .bind(self.0.id.to_string())
        .bind(self.0.secret_hash.as_bytes().as_slice())
        .bind(self.0.file_name.as_ref().map(ToString::to_string))
        .bind(self.0.created_at.as_millisecond())
        .bind(self.0.uploaded_by.as_deref())
        .execute(connection)
        .await
        .map(|done| done.rows_affected())
    }

    fn waits_for_log(&self, _: &Self::Outcome) -> bool {
        false
    }

    fn change<'a>(&'a self, rows: &'a u64) -> Option<Change<'a>> {
        (*rows > 0).then_some(Change::Begun)
    }
}

/// Stores what the blob store needs to abort the upload.
pub(super) struct NoteHandle {
    pub(super) id: ResourceId,
    pub(super) handle: UploadHandle,
}

#[async_trait]
impl LedgerOperation for NoteHandle {
    type Outcome = u64;

    async fn apply(&self, connection: &mut SqliteConnection, _: u64) -> Result<u64, sqlx::Error> {
        sqlx::query(
            "INSERT OR REPLACE INTO upload_handles (resource, handle) \
             SELECT id, ? FROM resources WHERE id = ? AND state = 'pending'",
        )
        .bind(self.handle.expose())
        .bind(self.id.to_string())
        .execute(connection)
        .await
        .map(|done| done.rows_affected())
    }

    fn waits_for_log(&self, _: &Self::Outcome) -> bool {
        false
    }

    fn change<'a>(&'a self, rows: &'a u64) -> Option<Change<'a>> {
        (*rows > 0).then_some(Change::Other)
    }
}

/// `pending → ready`. Its handle goes, which is needed no more.
pub(super) struct Complete(pub(super) Completion);

#[async_trait]
impl LedgerOperation for Complete {
    type Outcome = u64;

    async fn apply(&self, connection: &mut SqliteConnection, _: u64) -> Result<u64, sqlx::Error> {
        let owner = &self.0.owner;
        let lifetime = &self.0.lifetime;
        let labels: BTreeMap<&str, &str> = owner.labels().collect();
        let labels = serde_json::to_string(&labels).map_err(|error| sqlx::Error::Encode(error.into()))?;
        let rows = sqlx::query(
            "UPDATE resources SET state = 'ready', size_bytes = ?, sha256 = ?, owner_kind = ?, owner_namespace = ?, \
             owner_labels = ?, owner_name = ?, created_at = ?, unused_timeout_millis = ?, ttl_millis = ? \
             WHERE id = ? AND state = 'pending'",
        )
        .bind(i64::try_from(self.0.bundle.size_bytes).unwrap_or(i64::MAX))
        .bind(self.0.bundle.sha256.as_slice())
        .bind(owner.kind().as_str())
        .bind(owner.namespace())
        .bind(labels)
        .bind(owner.name())
        .bind(self.0.created_at.as_millisecond())
        .bind(millis(lifetime.unused_timeout))
        .bind(lifetime.ttl.map(millis))
        .bind(self.0.id.to_string())
        .execute(&mut *connection)
        .await?
        .rows_affected();
        if rows > 0 {
            forget_handle(self.0.id, connection).await?;
        }
        Ok(rows)
    }

    fn change<'a>(&'a self, rows: &'a u64) -> Option<Change<'a>> {
        (*rows > 0).then_some(Change::Completed(&self.0))
    }
}

/// Reads what an upload has left whose row is pending or missing. It changes nothing, so it needs no room on the disk. It is
/// an operation because it must come after those that were asked for before.
pub(super) struct Abandon(pub(super) ResourceId);

#[async_trait]
impl LedgerOperation for Abandon {
    type Outcome = Option<Abandoned>;

    async fn apply(
        &self,
        connection: &mut SqliteConnection,
        _: u64,
    ) -> Result<Option<Abandoned>, sqlx::Error> {
        let row = sqlx::query("SELECT id, state FROM resources WHERE id = ?")
            .bind(self.0.to_string())
            .fetch_optional(&mut *connection)
            .await?;
        let is_pending = row.is_none_or(|row| row::state(&row).is_ok_and(|state| state == State::Pending));
        let handle = sqlx::query("SELECT handle FROM upload_handles WHERE resource = ?")
            .bind(self.0.to_string())
            .fetch_optional(connection)
            .await?;
        if !is_pending {
            return Ok(None);
        }
        let handle =
            handle.and_then(|row| row.try_get::<String, _>("handle").ok()).map(UploadHandle::from_text);
        Ok(Some(Abandoned { handle }))
    }

    fn waits_for_log(&self, _: &Self::Outcome) -> bool {
        false
    }

    fn change<'a>(&'a self, _: &'a Option<Abandoned>) -> Option<Change<'a>> {
        None
    }
}

/// Removes the row and the handle of an upload together with the promise to know its key again.
pub(super) struct ForgetUpload {
    pub(super) id: ResourceId,
    /// When it was abandoned, if its bytes may still appear.
    pub(super) late: Option<Timestamp>,
}

#[async_trait]
impl LedgerOperation for ForgetUpload {
    type Outcome = u64;

    async fn apply(&self, connection: &mut SqliteConnection, _: u64) -> Result<u64, sqlx::Error> {
        forget_handle(self.id, connection).await?;
        if let Some(at) = self.late {
            abandoned::remember(self.id, at, connection).await?;
        }
        sqlx::query("DELETE FROM resources WHERE id = ? AND state = 'pending'")
            .bind(self.id.to_string())
            .execute(connection)
            .await
            .map(|done| done.rows_affected())
    }

    fn waits_for_log(&self, _: &Self::Outcome) -> bool {
        false
    }

    fn change<'a>(&'a self, rows: &'a u64) -> Option<Change<'a>> {
        (*rows > 0).then_some(Change::Abandoned)
    }
}

async fn forget_handle(id: ResourceId, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM upload_handles WHERE resource = ?")
        .bind(id.to_string())
        .execute(connection)
        .await
        .map(drop)
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
