//! The table of abandoned uploads, and which keys have no row.

use std::collections::HashSet;

use cloakroom_core::resource::{BlobKey, ResourceId, State};
use jiff::Timestamp;
use sqlx::sqlite::{SqliteConnection, SqlitePool};

use super::row;
use cloakroom_storage::ledger::Rowless;

/// Remembers an upload that was abandoned at `at`.
pub(super) async fn remember(
    id: ResourceId,
    at: Timestamp,
    connection: &mut SqliteConnection,
) -> Result<(), sqlx::Error> {
    sqlx::query("INSERT OR IGNORE INTO abandoned_uploads (key, abandoned_at) VALUES (?, ?)")
        .bind(BlobKey::for_resource(id).to_string())
        .bind(at.as_millisecond())
        .execute(connection)
        .await
        .map(drop)
}

/// Forgets uploads that were abandoned before `before`.
pub(super) async fn forget(before: Timestamp, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM abandoned_uploads WHERE abandoned_at < ?")
        .bind(before.as_millisecond())
        .execute(connection)
        .await
        .map(drop)
}

/// Those of `keys` that have no row, or a tombstone. A state that this version does not know counts as a row.
pub(super) async fn without_row(keys: &[BlobKey], readers: &SqlitePool) -> Result<Vec<Rowless>, sqlx::Error> {
    let texts: Vec<String> = keys.iter().map(ToString::to_string).collect();
    let texts = serde_json::Value::from(texts).to_string();
    let rows = sqlx::query(
        "SELECT id, state FROM resources WHERE id IN (SELECT value FROM json_each(?1)) \
         UNION ALL SELECT key, 'deleted' FROM abandoned_uploads WHERE key IN (SELECT value FROM json_each(?1))",
    )
    .bind(texts)
    .fetch_all(readers)
    .await?;
    let (mut with_row, mut ended) = (HashSet::new(), HashSet::new());
    for row in &rows {
        let Ok(id) = row::id(row) else { continue };
        let is_tombstone = row::state(row).is_ok_and(|state| state == State::Deleted);
        if is_tombstone { &mut ended } else { &mut with_row }.insert(BlobKey::for_resource(id));
    }
    let without_row = keys.iter().copied().filter(|key| !with_row.contains(key));
    Ok(without_row.map(|key| Rowless { key, has_ended: ended.contains(&key) }).collect())
}
