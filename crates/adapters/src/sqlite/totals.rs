//! Counts all rows.

use std::collections::BTreeMap;

use async_trait::async_trait;
use sqlx::Row as _;
use sqlx::sqlite::SqliteConnection;

use super::operation::LedgerOperation;
use super::row::{known_size, namespace, state};
use super::strays;
use cloakroom_storage::ledger::{Change, Stored, Totals};

/// Counts all rows. It is an operation, so that no change is counted twice or missed.
pub(super) struct Count;

#[async_trait]
impl LedgerOperation for Count {
    type Outcome = Totals;

    async fn apply(
        &self,
        connection: &mut SqliteConnection,
        least_bytes: u64,
    ) -> Result<Totals, sqlx::Error> {
        Ok(Totals {
            stored: stored(least_bytes, connection).await?,
            strays: strays::stored(least_bytes, connection).await?,
            by_state: by_state(connection).await?,
        })
    }

    fn change<'a>(&'a self, totals: &'a Totals) -> Option<Change<'a>> {
        Some(Change::Counted(totals))
    }
}

/// The resources that are acknowledged and not yet removed, by namespace.
async fn stored(
    least_bytes: u64,
    connection: &mut SqliteConnection,
) -> Result<BTreeMap<String, Stored>, sqlx::Error> {
    // A sum of integers fails on overflow. TOTAL does not fail, and CAST stops at the largest integer.
    let rows = sqlx::query(concat!(
        "SELECT owner_namespace, COUNT(*) AS resources, CAST(TOTAL(MAX(",
        known_size!(),
        ", ?)) AS INTEGER) AS bytes FROM resources WHERE state IS NOT 'pending' AND state IS NOT 'deleted' \
         GROUP BY owner_namespace"
    ))
    .bind(i64::try_from(least_bytes).unwrap_or(i64::MAX))
    .fetch_all(connection)
    .await?;
    let mut stored: BTreeMap<String, Stored> = BTreeMap::new();
    for row in &rows {
        let here = Stored {
            resources: row.try_get::<i64, _>("resources")?.unsigned_abs(),
            bytes: row.try_get::<i64, _>("bytes")?.unsigned_abs(),
        };
        let all = stored.entry(namespace(row)).or_default();
        *all = [*all, here].into_iter().sum();
    }
    Ok(stored)
}

async fn by_state(connection: &mut SqliteConnection) -> Result<BTreeMap<&'static str, u64>, sqlx::Error> {
    let rows = sqlx::query("SELECT state, COUNT(*) AS rows FROM resources GROUP BY state")
        .fetch_all(connection)
        .await?;
    let known = rows.iter().filter_map(|row| Some((state(row).ok()?, row)));
    known.map(|(state, row)| Ok((state.as_str(), row.try_get::<i64, _>("rows")?.unsigned_abs()))).collect()
}
