//! The changes of what decides how long a resource lives.

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::sqlite::SqliteConnection;

use super::error::is_refusal;
use super::operation::LedgerOperation;
use cloakroom_core::resource::ResourceId;
use cloakroom_storage::ledger::{Change, Observation};

/// Records a download. One that is recorded late does not set an earlier time of use.
pub(super) struct MarkUsed {
    pub(super) id: ResourceId,
    pub(super) at: Timestamp,
}

/// A download that was recorded.
pub(super) struct Used {
    /// Whether it is the first one.
    is_first: bool,
}

#[async_trait]
impl LedgerOperation for MarkUsed {
    /// `None` if there is no such resource.
    type Outcome = Option<Used>;

    async fn apply(&self, connection: &mut SqliteConnection, _: u64) -> Result<Option<Used>, sqlx::Error> {
        let is_first = sqlx::query_scalar(
            "UPDATE resources SET first_used_at = COALESCE(first_used_at, ?1), \
             last_used_at = MAX(COALESCE(last_used_at, ?1), ?1) WHERE id = ?2 AND state = 'ready' \
             RETURNING first_used_at = ?1",
        )
        .bind(self.at.as_millisecond())
        .bind(self.id.to_string())
        .fetch_optional(connection)
        .await?;
        Ok(is_first.map(|is_first| Used { is_first }))
    }

    /// From the first use on the owner decides. A crash in the second after a later one takes that one back.
    fn waits_for_log(&self, used: &Option<Used>) -> bool {
        used.as_ref().is_some_and(|used| used.is_first)
    }

    fn change<'a>(&'a self, used: &'a Option<Used>) -> Option<Change<'a>> {
        Some(if used.is_some() { Change::Used(self.id, self.at) } else { Change::NotUsed(self.id) })
    }
}

/// Stores what was seen of owners.
pub(super) struct Observe(pub(super) Vec<Observation>);

#[async_trait]
impl LedgerOperation for Observe {
    /// Those that were stored.
    type Outcome = Vec<Observation>;

    async fn apply(
        &self,
        connection: &mut SqliteConnection,
        _: u64,
    ) -> Result<Vec<Observation>, sqlx::Error> {
        let mut stored = Vec::new();
        for observation in &self.0 {
            let Observation { id, before, after } = observation;
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
                Ok(done) => stored.extend((done.rows_affected() > 0).then_some(*observation)),
                // Another value in this row is damaged. The other rows are still written.
                Err(error) if is_refusal(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(stored)
    }

    fn waits_for_log(&self, _: &Self::Outcome) -> bool {
        false
    }

    fn change<'a>(&'a self, stored: &'a Vec<Observation>) -> Option<Change<'a>> {
        (!stored.is_empty()).then_some(Change::Observed(stored))
    }
}
