//! The log of a ledger that is in a bucket: what a transaction has changed goes there before it is committed.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::SqliteConnection;
use tokio::time::{Instant, sleep_until};

use super::changes::RowChanges;
use super::{execute, form};
use cloakroom_core::text::chain;
use cloakroom_storage::log::{Appender, WriterEnd};

/// After how long a change is logged if no caller waits for it.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// The log of one writing task.
pub(super) struct TaskLog {
    appender: Appender,
    changes: RowChanges,
    /// When the changes must be in the log that were committed without it; `None` if there are none.
    due_at: Option<Instant>,
}

/// Why a transaction was not committed.
pub(super) enum NotCommitted {
    /// The database failed.
    Database(Arc<sqlx::Error>),
    /// This server must not write any more.
    Ended(WriterEnd),
}

impl From<sqlx::Error> for NotCommitted {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(Arc::new(error))
    }
}

impl TaskLog {
    /// Begins to note the changes of this connection.
    pub(super) async fn begin(
        appender: Appender,
        connection: &mut SqliteConnection,
    ) -> Result<Self, sqlx::Error> {
        Ok(Self { appender, changes: RowChanges::watch(connection).await?, due_at: None })
    }

    pub(super) fn check(&self) -> Result<(), WriterEnd> {
        self.appender.check()
    }

    /// Waits until changes must be logged for which no caller waits.
    pub(super) async fn due(&self) {
        match self.due_at {
            Some(at) => sleep_until(at).await,
            None => pending().await,
        }
    }

    pub(super) fn has_unlogged(&self) -> bool {
        self.due_at.is_some()
    }

    /// Tries again later.
    pub(super) fn put_off(&mut self) {
        self.due_at = self.check().is_ok().then(|| Instant::now() + LONGEST_WAIT);
    }

    /// Commits the transaction. If it `waits`, the log has all changes before that, also those of earlier transactions.
    pub(super) async fn commit(
        &mut self,
        connection: &mut SqliteConnection,
        waits: bool,
    ) -> Result<(), NotCommitted> {
        if !waits {
            execute(connection, "COMMIT").await?;
            self.due_at.get_or_insert_with(|| Instant::now() + LONGEST_WAIT);
            return Ok(());
        }
        let changes = self.changes.take(connection).await?;
        if changes.is_empty() {
            execute(connection, "COMMIT").await?;
        } else {
            let group = self.appender.group(form::newest(), changes);
            let group = group.map_err(|error| sqlx::Error::Encode(error.into()))?;
            self.appender.append(&group).await.map_err(NotCommitted::Ended)?;
            let committed = execute(connection, "COMMIT").await;
            self.appender.committed(committed.is_ok(), &group);
            if let Err(error) = committed {
                tracing::error!(error = %chain(&error), "a change that is in the log could not be committed to the ledger");
                return Err(NotCommitted::Ended(WriterEnd::NotCommitted));
            }
        }
        self.due_at = None;
        Ok(())
    }
}
