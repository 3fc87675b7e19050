//! The changes of deletions.

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::Row as _;
use sqlx::sqlite::SqliteConnection;

use super::operation::LedgerOperation;
use super::row::{self, known_size};
use cloakroom_core::resource::ResourceId;
use cloakroom_storage::ledger::{Change, Condition, Deletion};

/// `ready → deleting`.
pub(super) struct MarkDeleting(pub(super) Deletion);

#[async_trait]
impl LedgerOperation for MarkDeleting {
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
/// are. A row whose owner has no objects goes whole.
pub(super) struct LeaveTombstone(pub(super) ResourceId);

/// A row whose bytes are removed.
pub(super) struct Gone {
    namespace: String,
    size_bytes: u64,
    has_tombstone: bool,
}

#[async_trait]
impl LedgerOperation for LeaveTombstone {
    type Outcome = Option<Gone>;

    async fn apply(&self, connection: &mut SqliteConnection, _: u64) -> Result<Option<Gone>, sqlx::Error> {
        sqlx::query(SPENT).bind(self.0.to_string()).execute(&mut *connection).await?;
        for (has_tombstone, statement) in [(false, WITHOUT_TOMBSTONE), (true, WITH_TOMBSTONE)] {
            let row =
                sqlx::query(statement).bind(self.0.to_string()).fetch_optional(&mut *connection).await?;
            if let Some(row) = row {
                let size_bytes = row.try_get::<i64, _>("size_bytes")?.unsigned_abs();
                return Ok(Some(Gone { namespace: row::namespace(&row), size_bytes, has_tombstone }));
            }
        }
        Ok(None)
    }

    fn waits_for_log(&self, _: &Self::Outcome) -> bool {
        false
    }

    fn change<'a>(&'a self, gone: &'a Option<Gone>) -> Option<Change<'a>> {
        let Gone { namespace, size_bytes, has_tombstone } = gone.as_ref()?;
        Some(Change::Deleted { namespace, size_bytes: *size_bytes, has_tombstone: *has_tombstone })
    }
}

/// What stays of a row that goes whole.
const SPENT: &str = "INSERT OR IGNORE INTO spent_secrets SELECT hex(secret_hash), COALESCE(deleted_at, created_at) \
     FROM resources WHERE id = ? AND state = 'deleting' AND owner_kind = 'none'";

const WITHOUT_TOMBSTONE: &str = concat!(
    "DELETE FROM resources WHERE id = ? AND state = 'deleting' AND owner_kind = 'none' RETURNING owner_namespace, ",
    known_size!(),
    " AS size_bytes"
);

const WITH_TOMBSTONE: &str = concat!(
    "UPDATE resources SET state = 'deleted', sha256 = NULL, owner_labels = NULL, owner_name = NULL, \
     file_name = NULL, uploaded_by = NULL, read_keys = NULL WHERE id = ? AND state = 'deleting' RETURNING owner_namespace, ",
    known_size!(),
    " AS size_bytes"
);
