//! The ledgers that there are.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloakroom_adapters::sqlite::SqliteLedger;
use cloakroom_storage::ledger::Ledger;
use cloakroom_testing::clock::ManualClock;
use cloakroom_testing::needs::Need;
use tempfile::TempDir;

/// Each ledger is one line here.
pub const LEDGERS: [&dyn LedgerUnderTest; 1] = [&Sqlite];

/// How tests open a ledger.
#[async_trait(?Send)]
pub trait LedgerUnderTest: Sync {
    /// The first part of the names of its tests.
    fn name(&self) -> &'static str;

    /// What it needs beyond Rust. Its tests are skipped with a message where that is missing.
    fn needs(&self) -> Vec<Need> {
        Vec::new()
    }

    /// New and empty data.
    async fn create(&self) -> LedgerData;
}

/// The data of a ledger.
pub type LedgerData = Box<dyn Reopened>;

/// Data that can be opened again and again, which shows what is durable.
#[async_trait(?Send)]
pub trait Reopened: Send + Sync {
    /// Opens it as a process does that begins; it is not loaded yet.
    async fn open(&self) -> Arc<dyn Ledger>;

    /// Lets time pass for leases.
    async fn elapse(&self, by: Duration);
}

struct Sqlite;

struct SqliteData {
    folder: TempDir,
    clock: Arc<ManualClock>,
}

#[async_trait(?Send)]
impl LedgerUnderTest for Sqlite {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    async fn create(&self) -> LedgerData {
        Box::new(SqliteData { folder: tempfile::tempdir().unwrap(), clock: Arc::new(ManualClock::new()) })
    }
}

#[async_trait(?Send)]
impl Reopened for SqliteData {
    async fn open(&self) -> Arc<dyn Ledger> {
        let path = self.folder.path().join("ledger.db");
        Arc::new(SqliteLedger::open_by(&path, Arc::clone(&self.clock) as _).await.unwrap())
    }

    async fn elapse(&self, by: Duration) {
        self.clock.advance(by);
    }
}
