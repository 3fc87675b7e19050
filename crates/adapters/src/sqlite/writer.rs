//! The one task that writes. Operations that wait at the same time share a transaction, and so one fsync.

use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection as _};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinHandle;

use super::BUSY_TIMEOUT;
use super::error::{failed, is_locked};
use super::memory::Memory;
use super::operation::{Operation, Outcome};
use crate::place::Place;
use cloakroom_core::text::chain;
use cloakroom_storage::Replaced;
use cloakroom_storage::ledger::LedgerError;

/// How many operations may wait. When the queue is full, senders wait.
const QUEUE: usize = 1024;

/// How many operations one transaction has at most.
const LARGEST_GROUP: usize = 256;

struct Job {
    operation: Operation,
    answer: oneshot::Sender<Result<Outcome, LedgerError>>,
}

/// Sends operations to the writing task.
pub(super) struct Writer {
    jobs: mpsc::Sender<Job>,
    task: Mutex<Option<JoinHandle<()>>>,
    stop: Mutex<Option<oneshot::Sender<()>>>,
}

impl Writer {
    /// Starts the task.
    pub(super) fn start(connection: SqliteConnection, memory: Arc<Memory>, place: Place) -> Self {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(write(connection, memory, place, queue, stopped));
        Self { jobs, task: Mutex::new(Some(task)), stop: Mutex::new(Some(stop)) }
    }

    /// Runs one operation and returns once it is committed.
    pub(super) async fn run(&self, operation: Operation) -> Result<Outcome, LedgerError> {
        let (answer, outcome) = oneshot::channel();
        self.jobs.send(Job { operation, answer }).await.map_err(|_| LedgerError::Closed)?;
        outcome.await.map_err(|_| LedgerError::Closed)?
    }

    /// Finishes what is queued, then closes the database.
    pub(super) async fn close(&self) {
        drop(self.stop.lock().await.take());
        if let Some(task) = self.task.lock().await.take() {
            // The task ends by itself. A panic in it was reported when it happened.
            let _ = task.await;
        }
    }
}

async fn write(
    mut connection: SqliteConnection,
    memory: Arc<Memory>,
    place: Place,
    mut queue: mpsc::Receiver<Job>,
    mut stop: oneshot::Receiver<()>,
) {
    let mut group = Vec::with_capacity(LARGEST_GROUP);
    let mut is_locked = false;
    loop {
        tokio::select! {
            biased;
            received = queue.recv_many(&mut group, LARGEST_GROUP) => {
                if received == 0 {
                    break;
                }
                let was_locked = is_locked;
                is_locked = commit(&mut connection, &memory, &place, &mut group).await;
                if is_locked != was_locked {
                    wait_for_locks(&mut connection, !is_locked).await;
                }
            }
            _ = &mut stop, if !queue.is_closed() => queue.close(),
        }
    }
    if let Err(error) = connection.close().await {
        tracing::warn!(error = %error, "the ledger did not close cleanly; it recovers at the next start");
    }
}

/// Runs a group in one transaction. Answers each operation after the commit, once the memory is up to date. An
/// acknowledgement needs a ledger that is still at its path. Returns whether another process has locked the database.
async fn commit(
    connection: &mut SqliteConnection,
    memory: &Memory,
    place: &Place,
    group: &mut Vec<Job>,
) -> bool {
    let (operations, answers): (Vec<_>, Vec<_>) =
        group.drain(..).map(|job| (job.operation, job.answer)).unzip();
    if let Err(replaced) = place.known() {
        refuse(answers, &replaced);
        return false;
    }
    let written = transact(connection, memory, &operations).await;
    if written.is_ok()
        && let Err(replaced) = place.check().await
    {
        save(connection).await;
        refuse(answers, &replaced);
        return false;
    }
    match written {
        Ok(outcomes) => {
            for (operation, outcome) in operations.iter().zip(&outcomes) {
                if let Ok(outcome) = outcome {
                    operation.committed(outcome, memory);
                }
            }
            for (answer, outcome) in answers.into_iter().zip(outcomes) {
                // The caller may be gone. The change is made all the same.
                let _ = answer.send(outcome.map_err(failed));
            }
            false
        }
        Err(error) => {
            // On a full disk SQLite has rolled back by itself. The statement then fails, which does no harm.
            let _ = execute(connection, "ROLLBACK").await;
            // The commit may have reached the disk although it failed, so the index must be read again.
            memory.index().doubt();
            let is_locked = is_locked(&error);
            let error = Arc::new(error);
            for answer in answers {
                let _ = answer.send(Err(failed(Arc::clone(&error))));
            }
            is_locked
        }
    }
}

/// While another process has the lock, only the first group waits for it. Otherwise each change of an upload would wait, and
/// the uploads would fill all places.
async fn wait_for_locks(connection: &mut SqliteConnection, waits: bool) {
    let time = if waits { BUSY_TIMEOUT } else { Duration::ZERO };
    let pragma = format!("PRAGMA busy_timeout = {}", time.as_millis());
    if let Err(error) = sqlx::query(AssertSqlSafe(pragma)).execute(connection).await {
        tracing::warn!(error = %chain(&error), "the ledger does not change how long it waits for a lock");
    }
}

fn refuse(answers: Vec<oneshot::Sender<Result<Outcome, LedgerError>>>, replaced: &Replaced) {
    for answer in answers {
        let _ = answer.send(Err(replaced.clone().into()));
    }
}

/// Writes all that is committed into the database itself. If only the write-ahead log was removed, it has what was
/// acknowledged, and goes with this process.
async fn save(connection: &mut SqliteConnection) {
    if let Err(error) = execute(connection, "PRAGMA wal_checkpoint(TRUNCATE)").await {
        tracing::error!(error = %chain(&error), "the ledger's write-ahead log could not be saved");
    }
}

/// Each operation has its own savepoint, so that one that fails does not undo the others.
///
/// The statements are written out because sqlx counts how deep its transactions are nested. Its count stays wrong once
/// SQLite has rolled back by itself (<https://www.sqlite.org/lang_transaction.html>, section 3).
async fn transact(
    connection: &mut SqliteConnection,
    memory: &Memory,
    operations: &[Operation],
) -> Result<Vec<Result<Outcome, sqlx::Error>>, sqlx::Error> {
    execute(connection, "BEGIN IMMEDIATE").await?;
    let mut outcomes = Vec::with_capacity(operations.len());
    for operation in operations {
        execute(connection, "SAVEPOINT operation").await?;
        let outcome = operation.apply(connection, memory).await;
        if outcome.is_err() && execute(connection, "ROLLBACK TO operation").await.is_err() {
            // SQLite has rolled back the whole transaction, with the changes of the other operations of the group.
            return outcome.map(|_| Vec::new());
        }
        execute(connection, "RELEASE operation").await?;
        outcomes.push(outcome);
    }
    execute(connection, "COMMIT").await?;
    Ok(outcomes)
}

async fn execute(connection: &mut SqliteConnection, statement: &'static str) -> Result<(), sqlx::Error> {
    sqlx::query(statement).execute(connection).await.map(drop)
}
