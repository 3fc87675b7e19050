//! The one task that writes. Operations that wait at the same time share a transaction, and so one fsync.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection as _};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::error::{failed, is_locked};
use super::logged::{NotCommitted, TaskLog};
use super::operation::{Asked, Job, LedgerOperation};
use super::{BUSY_TIMEOUT, execute};
use crate::place::Place;
use cloakroom_core::lock::lock;
use cloakroom_core::text::chain;
use cloakroom_storage::ledger::{LedgerError, Mirror};

/// How many operations may wait. When the queue is full, senders wait.
const QUEUE: usize = 1024;

/// How many operations one transaction has at most.
const LARGEST_GROUP: usize = 256;

/// What the writing task and the ledger share.
#[derive(Default)]
pub(super) struct Feed {
    mirror: Mutex<Option<Arc<dyn Mirror>>>,
    changes: AtomicU64,
}

impl Feed {
    pub(super) fn follow(&self, mirror: Arc<dyn Mirror>) {
        *lock(&self.mirror) = Some(mirror);
    }

    /// How many changes were committed.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    fn least_bytes(&self) -> u64 {
        lock(&self.mirror).as_ref().map_or(0, |mirror| mirror.least_bytes())
    }

    fn committed(&self, job: &dyn Job) {
        let Some(change) = job.change() else { return };
        self.changes.fetch_add(u64::from(change.is_real()), Ordering::Relaxed);
        if let Some(mirror) = &*lock(&self.mirror) {
            mirror.committed(&change);
        }
    }

    fn doubt(&self) {
        if let Some(mirror) = &*lock(&self.mirror) {
            mirror.doubt();
        }
    }
}

/// Sends operations to the writing task.
pub(super) struct Writer {
    jobs: mpsc::Sender<Box<dyn Job>>,
    task: tokio::sync::Mutex<Option<JoinHandle<()>>>,
    stop: tokio::sync::Mutex<Option<oneshot::Sender<()>>>,
}

impl Writer {
    /// Starts the task. With a log, no change is acted on before it is there. `begin` begins each transaction.
    pub(super) fn start(
        connection: SqliteConnection,
        feed: Arc<Feed>,
        place: Place,
        log: Option<TaskLog>,
        begin: &'static str,
    ) -> Self {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(WritingTask { connection, feed, place, log, begin }.run(queue, stopped));
        Self { jobs, task: Some(task).into(), stop: Some(stop).into() }
    }

    /// Runs one operation and returns once it is committed.
    pub(super) async fn run<O: LedgerOperation>(&self, operation: O) -> Result<O::Outcome, LedgerError> {
        let (answer, outcome) = oneshot::channel();
        self.jobs.send(Box::new(Asked::new(operation, answer))).await.map_err(|_| LedgerError::Closed)?;
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

struct WritingTask {
    connection: SqliteConnection,
    feed: Arc<Feed>,
    place: Place,
    log: Option<TaskLog>,
    /// Begins a transaction.
    begin: &'static str,
}

impl WritingTask {
    async fn run(mut self, mut queue: mpsc::Receiver<Box<dyn Job>>, mut stop: oneshot::Receiver<()>) {
        let mut group = Vec::with_capacity(LARGEST_GROUP);
        let mut is_locked = false;
        loop {
            tokio::select! {
                biased;
                () = due(self.log.as_ref()) => self.log_the_rest().await,
                received = queue.recv_many(&mut group, LARGEST_GROUP) => {
                    if received == 0 {
                        break;
                    }
                    let was_locked = is_locked;
                    is_locked = self.commit(&mut group).await;
                    if is_locked != was_locked {
                        wait_for_locks(&mut self.connection, !is_locked).await;
                    }
                }
                _ = &mut stop, if !queue.is_closed() => queue.close(),
            }
        }
        self.log_the_rest().await;
        if let Err(error) = self.connection.close().await {
            tracing::warn!(error = %error, "the ledger did not close cleanly; it recovers at the next start");
        }
    }

    /// Runs a group in one transaction. Answers each operation after the commit, once the mirror has been told. An
    /// acknowledgement needs a ledger that is still at its path. Returns whether another process has locked the database.
    async fn commit(&mut self, group: &mut Vec<Box<dyn Job>>) -> bool {
        if let Err(replaced) = self.place.known() {
            refuse(group, || replaced.clone().into());
            return false;
        }
        let written = self.transact(group).await;
        if written.is_ok()
            && let Err(replaced) = self.place.check().await
        {
            save(&mut self.connection).await;
            refuse(group, || replaced.clone().into());
            return false;
        }
        match written {
            Ok(()) => {
                for job in group.iter() {
                    self.feed.committed(&**job);
                }
                group.drain(..).for_each(Job::answer);
                false
            }
            Err(NotCommitted::Ended(end)) => {
                self.roll_back().await;
                refuse(group, || end.into());
                false
            }
            Err(NotCommitted::Database(error)) => {
                self.roll_back().await;
                // The commit may have reached the disk although it failed.
                self.feed.doubt();
                refuse(group, || failed(Arc::clone(&error)));
                is_locked(&error)
            }
        }
    }

    /// Each operation has its own savepoint, so that one that fails does not undo the others.
    ///
    /// The statements are written out because sqlx counts how deep its transactions are nested. Its count stays wrong once
    /// SQLite has rolled back by itself (<https://www.sqlite.org/lang_transaction.html>, section 3).
    async fn transact(&mut self, group: &mut [Box<dyn Job>]) -> Result<(), NotCommitted> {
        if let Some(log) = &self.log {
            log.check().map_err(NotCommitted::Ended)?;
        }
        let (connection, least_bytes) = (&mut self.connection, self.feed.least_bytes());
        execute(connection, self.begin).await?;
        for job in group.iter_mut() {
            execute(connection, "SAVEPOINT operation").await?;
            if let Err(error) = job.apply(connection, least_bytes).await
                && execute(connection, "ROLLBACK TO operation").await.is_err()
            {
                // SQLite has rolled back the whole transaction, with the changes of the other operations of the group.
                return Err(NotCommitted::Database(error));
            }
            execute(connection, "RELEASE operation").await?;
        }
        let waits = group.iter().any(|job| job.waits_for_log());
        match &mut self.log {
            Some(log) => log.commit(connection, waits).await,
            None => Ok(execute(connection, "COMMIT").await?),
        }
    }

    /// Logs the changes for which no caller waits.
    async fn log_the_rest(&mut self) {
        let Some(log) = self.log.as_mut().filter(|log| log.has_unlogged()) else { return };
        let logged = async {
            log.check().map_err(NotCommitted::Ended)?;
            execute(&mut self.connection, "BEGIN IMMEDIATE").await?;
            log.commit(&mut self.connection, true).await
        };
        if let Err(not_committed) = logged.await {
            log.put_off();
            self.roll_back().await;
            if let NotCommitted::Database(error) = not_committed {
                tracing::warn!(error = %chain(&error), "changes of the ledger could not be read for its log; trying again");
            }
        }
    }

    /// On a full disk SQLite has rolled back by itself. The statement then fails, which does no harm.
    async fn roll_back(&mut self) {
        let _ = execute(&mut self.connection, "ROLLBACK").await;
    }
}

async fn due(log: Option<&TaskLog>) {
    match log {
        Some(log) => log.due().await,
        None => std::future::pending().await,
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

fn refuse(group: &mut Vec<Box<dyn Job>>, why: impl Fn() -> LedgerError) {
    group.drain(..).for_each(|job| job.fail(why()));
}

/// Writes all that is committed into the database itself. If only the write-ahead log was removed, it has what was
/// acknowledged, and goes with this process.
async fn save(connection: &mut SqliteConnection) {
    if let Err(error) = execute(connection, "PRAGMA wal_checkpoint(TRUNCATE)").await {
        tracing::error!(error = %chain(&error), "the ledger's write-ahead log could not be saved");
    }
}
