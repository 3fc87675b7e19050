//! The ledgers that there are.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloakroom_adapters::Place;
use cloakroom_adapters::sqlite::{Changes, SqliteFile, SqliteLedger};
use cloakroom_storage::ledger::Ledger;
use cloakroom_storage::log::{
    Appender, LogError, LogStore, Position, Progress, Started, Starting, Timing, WriterState,
};
use cloakroom_storage::stamp::Installation;
use cloakroom_testing::wait::BOUND;
use tempfile::TempDir;

use crate::Implementation;
use crate::memory_log::MemoryLog;

/// Each ledger is one line here.
pub const LEDGERS: [&Implementation<LedgerData>; 2] = [&SQLITE, &LOGGED];

static SQLITE: Implementation<LedgerData> =
    Implementation { name: "sqlite", needs: Vec::new, create: || Box::pin(in_sqlite()) };

/// Nothing lasts but its log and the copies, which are in a bucket.
static LOGGED: Implementation<LedgerData> =
    Implementation { name: "logged", needs: Vec::new, create: || Box::pin(in_a_log()) };

/// The data of a ledger.
pub type LedgerData = Box<dyn Reopened>;

/// Data that can be opened again and again, which shows what is durable.
#[async_trait(?Send)]
pub trait Reopened {
    /// Opens it as a process does that begins; it is not loaded yet.
    async fn open(&self) -> Arc<dyn Ledger>;

    /// Whether it can be open twice, and each of the two can write.
    fn has_other_hands(&self) -> bool;
}

struct SqliteData(TempDir);

async fn in_sqlite() -> LedgerData {
    Box::new(SqliteData(tempfile::tempdir().unwrap()))
}

#[async_trait(?Send)]
impl Reopened for SqliteData {
    async fn open(&self) -> Arc<dyn Ledger> {
        let path = self.0.path().join("ledger.db");
        Arc::new(SqliteLedger::open(&path).await.unwrap())
    }

    fn has_other_hands(&self) -> bool {
        true
    }
}

#[derive(Default)]
struct LoggedData {
    log: Arc<MemoryLog>,
    last: RefCell<Option<Opened>>,
}

/// A ledger whose log is in a bucket, as a process that has taken over has it.
pub struct Opened {
    pub folder: TempDir,
    pub ledger: Arc<SqliteLedger>,
    pub started: Started,
    pub progress: Arc<Progress>,
}

/// Takes over from a server that has stopped or yields, and opens the ledger. It beats after `beat`.
pub async fn opened(store: Arc<dyn LogStore>, beat: Duration) -> Opened {
    took_over(store, Timing { patience: BOUND, look: BOUND, beat }, None).await.unwrap()
}

/// Takes over with an empty folder, and opens the ledger.
pub async fn took_over(
    store: Arc<dyn LogStore>,
    timing: Timing,
    restore: Option<Position>,
) -> Result<Opened, LogError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let starting = Starting {
        store: Arc::clone(&store),
        file: &SqliteFile::new(path.clone()),
        timing,
        installation: Installation::generate(&mut rand::rng()),
        restore,
        tell: &|_, _| {},
    };
    let started = starting.run().await?;
    let appender = Appender::new(store, &started);
    let progress = Arc::clone(appender.progress());
    let changes = Changes::Logged(appender);
    let ledger = Arc::new(SqliteLedger::open_in(&Place::default(), &path, changes).await.unwrap());
    Ok(Opened { folder, ledger, started, progress })
}

async fn in_a_log() -> LedgerData {
    Box::new(LoggedData::default())
}

#[async_trait(?Send)]
impl Reopened for LoggedData {
    async fn open(&self) -> Arc<dyn Ledger> {
        if let Some(last) = self.last.take() {
            // This waits until the log has all changes. A ledger that is closed has logged them.
            let _ = last.ledger.totals().await;
            let (heartbeat, _beats) = last.started.heartbeat;
            heartbeat.say(WriterState::Stopped);
            heartbeat.beat().await.unwrap();
        }
        let opened = opened(Arc::clone(&self.log) as _, Duration::from_secs(1)).await;
        let ledger = Arc::clone(&opened.ledger);
        self.last.replace(Some(opened));
        ledger
    }
    fn has_other_hands(&self) -> bool {
        false
    }
}
