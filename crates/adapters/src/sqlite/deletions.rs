//! The changes of deletions.

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::Row as _;
use sqlx::sqlite::SqliteConnection;

use super::operation::Operation;
use super::row::{self, known_size};
use cloakroom_core::resource::ResourceId;
use cloakroom_storage::ledger::{Change, Condition, Deletion};

/// `ready → deleting`.
pub(super) struct MarkDeleting(pub(super) Deletion);

#[async_trait]
impl Operation for MarkDeleting {
    type Outcome = u64;

    async fn apply(&self, connection: &mut SqliteConnection, _: u64) -> Result<u64, sqlx::Error> {
        let (always, last_used_at) = match self.0.condition {
            Condition::Always => (true, None),
            Condition::LastUsedAt(at) => (false, at),
        };
        sqlx::query(
            "UPDATE resources SET state = 'deleting', deleted_at = ?, deletion_reason = ? \
             WHERE id = ? AND state = 'ready' AND (? OR last_used_at IS ?)",
        )
        .bind(self.0.at.as_millisecond())
        .bind(self.0.reason.as_str())
        .bind(self.0.id.to_string())
        .bind(always)
        .bind(last_used_at.map(Timestamp::as_millisecond))
        .execute(connection)
        .await
        .map(|done| done.rows_affected())
    }

    fn change<'a>(&'a self, rows: &'a u64) -> Option<Change<'a>> {
        Some(if *rows > 0 { Change::Deleting(self.0.id) } else { Change::NotDeleting })
    }
}

/// `deleting → deleted`. A tombstone keeps only what its answers need, because clients decide how large the other columns
/// are.
pub(super) struct LeaveTombstone(pub(super) ResourceId);

#[async_trait]
impl Operation for LeaveTombstone {
    type Outcome = Option<(String, u64)>;

    async fn apply(
        &self,
        connection: &mut SqliteConnection,
        _: u64,
    ) -> Result<Option<(String, u64)>, sqlx::Error> {
        let row = sqlx::query(concat!(
            "UPDATE resources SET state = 'deleted', sha256 = NULL, owner_labels = NULL, owner_name = NULL, \
             file_name = NULL, uploaded_by = NULL WHERE id = ? AND state = 'deleting' RETURNING owner_namespace, ",
            known_size!(),
            " AS size_bytes"
        ))
        .bind(self.0.to_string())
        .fetch_optional(&mut *connection)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let size_bytes = row.try_get::<i64, _>("size_bytes")?.unsigned_abs();
        Ok(Some((row::namespace(&row), size_bytes)))
    }

    fn waits_for_log(&self, _: &Self::Outcome) -> bool {
        false
    }

    fn change<'a>(&'a self, deleted: &'a Option<(String, u64)>) -> Option<Change<'a>> {
        let (namespace, size_bytes) = deleted.as_ref()?;
        Some(Change::Deleted { namespace, size_bytes: *size_bytes })
    }
}
