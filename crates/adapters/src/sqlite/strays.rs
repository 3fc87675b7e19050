//! The table of strays.

use cloakroom_core::resource::BlobKey;
use jiff::Timestamp;
use sqlx::Row as _;
use sqlx::sqlite::{SqliteConnection, SqlitePool, SqliteRow};

use super::row::known_size;
use cloakroom_storage::ledger::{Stored, Stray};

pub(super) async fn all(readers: &SqlitePool) -> Result<Vec<Stray>, sqlx::Error> {
    let rows =
        sqlx::query("SELECT key, seen_at, size_bytes FROM strays ORDER BY key").fetch_all(readers).await?;
    Ok(rows.iter().filter_map(stray).collect())
}

fn stray(row: &SqliteRow) -> Option<Stray> {
    Some(Stray {
        key: BlobKey::parse(row.try_get("key").ok()?).ok()?,
        size_bytes: row.try_get::<i64, _>("size_bytes").ok()?.unsigned_abs(),
        seen_at: Timestamp::from_millisecond(row.try_get("seen_at").ok()?).ok()?,
    })
}

/// Adds and removes strays. Returns how many changed.
pub(super) async fn note(
    found: &[Stray],
    gone: &[BlobKey],
    connection: &mut SqliteConnection,
) -> Result<u64, sqlx::Error> {
    let mut rows = 0;
    for Stray { key, size_bytes, seen_at } in found {
        let done = sqlx::query("INSERT OR IGNORE INTO strays (key, seen_at, size_bytes) VALUES (?, ?, ?)")
            .bind(key.to_string())
            .bind(seen_at.as_millisecond())
            .bind(i64::try_from(*size_bytes).unwrap_or(i64::MAX))
            .execute(&mut *connection)
            .await?;
        rows += done.rows_affected();
    }
    for key in gone {
        let done = sqlx::query("DELETE FROM strays WHERE key = ?")
            .bind(key.to_string())
            .execute(&mut *connection)
            .await?;
        rows += done.rows_affected();
    }
    Ok(rows)
}

/// How many strays there are, and how much room they take.
pub(super) async fn stored(
    least_bytes: u64,
    connection: &mut SqliteConnection,
) -> Result<Stored, sqlx::Error> {
    let row = sqlx::query(concat!(
        "SELECT COUNT(*) AS strays, CAST(TOTAL(MAX(",
        known_size!(),
        ", ?)) AS INTEGER) AS bytes FROM strays"
    ))
    .bind(i64::try_from(least_bytes).unwrap_or(i64::MAX))
    .fetch_one(connection)
    .await?;
    Ok(Stored {
        resources: row.try_get::<i64, _>("strays")?.unsigned_abs(),
        bytes: row.try_get::<i64, _>("bytes")?.unsigned_abs(),
    })
}
