//! Removes tombstones: those whose time is over, and those that are too many.

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::Row as _;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::abandoned;
use super::operation::LedgerOperation;
use cloakroom_storage::ledger::Change;

/// Removes tombstones of resources that were deleted before this time, and forgets uploads that were abandoned, and secrets that
/// were spent, before it.
///
/// A tombstone whose time of deletion is missing or no time is removed by the time of its upload; the index finds both.
/// A value that is not a number sorts after all numbers (<https://www.sqlite.org/datatype3.html>, section 4.1).
pub(super) struct ForgetTombstones {
    pub(super) before: Timestamp,
    /// The most secrets that stay.
    pub(super) most: u64,
}

#[async_trait]
impl LedgerOperation for ForgetTombstones {
    type Outcome = u64;

    async fn apply(&self, connection: &mut SqliteConnection, _: u64) -> Result<u64, sqlx::Error> {
        abandoned::forget(self.before, connection).await?;
        sqlx::query(
            "DELETE FROM spent_secrets WHERE spent_at < ?1 OR secret_hash IN (\
             SELECT secret_hash FROM spent_secrets ORDER BY spent_at DESC LIMIT -1 OFFSET ?2)",
        )
        .bind(self.before.as_millisecond())
        .bind(i64::try_from(self.most).unwrap_or(i64::MAX))
        .execute(&mut *connection)
        .await?;
        sqlx::query(
            "DELETE FROM resources WHERE id IN (\
             SELECT id FROM resources WHERE state = 'deleted' AND deleted_at < ?1 \
             UNION ALL SELECT id FROM resources WHERE state = 'deleted' AND deleted_at IS NULL AND created_at < ?1 \
             UNION ALL SELECT id FROM resources WHERE state = 'deleted' AND deleted_at > ?2 AND created_at < ?1)",
        )
        .bind(self.before.as_millisecond())
        .bind(last_milli())
        .execute(connection)
        .await
        .map(|done| done.rows_affected())
    }

    fn waits_for_log(&self, _: &Self::Outcome) -> bool {
        false
    }

    fn change<'a>(&'a self, rows: &'a u64) -> Option<Change<'a>> {
        (*rows > 0).then_some(Change::Forgotten(*rows))
    }
}

/// Removes so many tombstones before their time, each time the oldest one of the namespace that has most of them.
pub(super) struct TrimTombstones(pub(super) u64);

#[async_trait]
impl LedgerOperation for TrimTombstones {
    type Outcome = u64;

    async fn apply(&self, connection: &mut SqliteConnection, _: u64) -> Result<u64, sqlx::Error> {
        let rows = sqlx::query(
            "SELECT owner_namespace, COUNT(*) AS rows FROM resources INDEXED BY resources_tombstones_by_namespace \
             WHERE state = 'deleted' GROUP BY owner_namespace",
        )
        .fetch_all(&mut *connection)
        .await?;
        let count = |row: &SqliteRow| {
            let rows = row.try_get::<i64, _>("rows").ok()?;
            Some((row.try_get("owner_namespace").ok()?, rows.unsigned_abs()))
        };
        let counts: Vec<Count> = rows.iter().filter_map(count).collect();
        let mut removed = 0;
        for (namespace, count) in shared_out(self.0, counts) {
            removed += sqlx::query(
                "DELETE FROM resources WHERE id IN (SELECT id FROM resources WHERE state = 'deleted' \
                 AND owner_namespace IS CAST(? AS TEXT) ORDER BY deleted_at LIMIT ?)",
            )
            .bind(namespace)
            .bind(i64::try_from(count).unwrap_or(i64::MAX))
            .execute(&mut *connection)
            .await?
            .rows_affected();
        }
        Ok(removed)
    }

    fn waits_for_log(&self, _: &Self::Outcome) -> bool {
        false
    }

    fn change<'a>(&'a self, rows: &'a u64) -> Option<Change<'a>> {
        (*rows > 0).then_some(Change::Forgotten(*rows))
    }
}

/// The largest number of milliseconds that a [`Timestamp`] can be made of. A larger number in a row is not a time.
fn last_milli() -> i64 {
    Timestamp::MAX.as_second() * 1000
}

/// How many tombstones a namespace has, or loses. An upload that was never complete has no namespace, and a damaged one
/// may not be text, so the namespace is bytes.
type Count = (Option<Vec<u8>>, u64);

/// How many of `surplus` each namespace loses if the largest namespace always loses the next one.
fn shared_out(surplus: u64, mut counts: Vec<Count>) -> Vec<Count> {
    counts
        .sort_unstable_by(|(one, larger), (other, smaller)| smaller.cmp(larger).then_with(|| one.cmp(other)));
    let mut left = surplus;
    let mut level = 0;
    let mut losers = 0;
    // The largest namespaces come down together to the size of the next one.
    for place in 0..counts.len() {
        losers += 1;
        let next = counts.get(place + 1).map_or(0, |(_, count)| *count);
        let room = (counts[place].1 - next) * losers;
        if room >= left {
            level = counts[place].1 - left / losers;
            left %= losers;
            break;
        }
        left -= room;
    }
    let shares = counts.into_iter().zip(0..losers).map(|((namespace, count), place)| {
        let one_more = u64::from(place < left && level > 0);
        (namespace, count - level + one_more)
    });
    shares.filter(|(_, count)| *count > 0).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    type Counts<'a> = &'a [(&'a str, u64)];

    fn shares(surplus: u64, counts: Counts<'_>) -> Vec<(String, u64)> {
        let counts = counts.iter().map(|(name, count)| (Some(name.as_bytes().to_vec()), *count)).collect();
        let text = |name: Option<Vec<u8>>| String::from_utf8(name.unwrap()).unwrap();
        shared_out(surplus, counts).into_iter().map(|(name, count)| (text(name), count)).collect()
    }

    /// How many each namespace has left, sorted by number, because it makes no difference which of two equal ones
    /// loses.
    fn left(surplus: u64, counts: Counts<'_>) -> Vec<u64> {
        let lost: BTreeMap<String, u64> = shares(surplus, counts).into_iter().collect();
        let mut left: Vec<u64> =
            counts.iter().map(|(name, count)| count - lost.get(*name).copied().unwrap_or_default()).collect();
        left.sort_unstable();
        left
    }

    /// The same, computed one by one.
    fn plainly_left(surplus: u64, counts: Counts<'_>) -> Vec<u64> {
        let mut left: Vec<u64> = counts.iter().map(|(_, count)| *count).collect();
        for _ in 0..surplus {
            left.sort_unstable();
            if let Some(largest) = left.last_mut() {
                *largest = largest.saturating_sub(1);
            }
        }
        left.sort_unstable();
        left
    }

    #[test]
    fn the_largest_namespace_loses_first_and_small_ones_nothing() {
        assert_eq!(shares(5, &[("a", 3), ("b", 20)]), [("b".to_owned(), 5)]);
        for surplus in 0..70 {
            for counts in [
                &[("a", 3), ("b", 20), ("c", 19), ("d", 20)][..],
                &[("a", 1)],
                &[],
                &[("a", 5), ("b", 5), ("c", 5)],
            ] {
                assert_eq!(left(surplus, counts), plainly_left(surplus, counts), "{surplus} of {counts:?}");
            }
        }
    }
}
