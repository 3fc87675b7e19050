//! What the writing task runs.

use std::sync::Arc;

use async_trait::async_trait;
use sqlx::sqlite::SqliteConnection;
use tokio::sync::oneshot;

use super::error::failed;
use cloakroom_storage::ledger::{Change, LedgerError};

/// One change to the database.
#[async_trait]
pub(super) trait LedgerOperation: Send + Sync + 'static {
    /// What its caller gets.
    type Outcome: Send + Sync;

    /// Runs it on a connection that is in a transaction. A row counts as `least_bytes` or more where rows are added up.
    async fn apply(
        &self,
        connection: &mut SqliteConnection,
        least_bytes: u64,
    ) -> Result<Self::Outcome, sqlx::Error>;

    /// Whether its caller waits until the log has the change. It need not if a crash may take the change back.
    fn waits_for_log(&self, _outcome: &Self::Outcome) -> bool {
        true
    }

    /// The change that it made; `None` if it made none that counts.
    fn change<'a>(&'a self, outcome: &'a Self::Outcome) -> Option<Change<'a>>;
}

/// An operation that waits for its turn, with the caller that waits for its answer.
#[async_trait]
pub(super) trait Job: Send + Sync {
    /// Runs it, and keeps its outcome.
    async fn apply(
        &mut self,
        connection: &mut SqliteConnection,
        least_bytes: u64,
    ) -> Result<(), Arc<sqlx::Error>>;

    /// See [`LedgerOperation::waits_for_log`].
    fn waits_for_log(&self) -> bool;

    /// The change that it made; `None` if it failed, or made none.
    fn change(&self) -> Option<Change<'_>>;

    /// Gives its caller the outcome.
    fn answer(self: Box<Self>);

    /// Gives its caller an error instead.
    fn fail(self: Box<Self>, error: LedgerError);
}

/// The job of an operation.
pub(super) struct Asked<O: LedgerOperation> {
    operation: O,
    outcome: Option<Result<O::Outcome, Arc<sqlx::Error>>>,
    answer: oneshot::Sender<Result<O::Outcome, LedgerError>>,
}

impl<O: LedgerOperation> Asked<O> {
    pub(super) fn new(operation: O, answer: oneshot::Sender<Result<O::Outcome, LedgerError>>) -> Self {
        Self { operation, outcome: None, answer }
    }
}

#[async_trait]
impl<O: LedgerOperation> Job for Asked<O> {
    async fn apply(
        &mut self,
        connection: &mut SqliteConnection,
        least_bytes: u64,
    ) -> Result<(), Arc<sqlx::Error>> {
        let outcome = self.operation.apply(connection, least_bytes).await.map_err(Arc::new);
        let error = outcome.as_ref().err().cloned();
        self.outcome = Some(outcome);
        error.map_or(Ok(()), Err)
    }

    fn waits_for_log(&self) -> bool {
        let outcome = self.outcome.as_ref().and_then(|outcome| outcome.as_ref().ok());
        outcome.is_some_and(|outcome| self.operation.waits_for_log(outcome))
    }

    fn change(&self) -> Option<Change<'_>> {
        let outcome = self.outcome.as_ref()?.as_ref().ok()?;
        self.operation.change(outcome)
    }

    fn answer(self: Box<Self>) {
        let outcome = self.outcome.unwrap_or(Err(Arc::new(sqlx::Error::WorkerCrashed)));
        // The caller may be gone. The change is made all the same.
        let _ = self.answer.send(outcome.map_err(failed));
    }

    fn fail(self: Box<Self>, error: LedgerError) {
        let _ = self.answer.send(Err(error));
    }
}
