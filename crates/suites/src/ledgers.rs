//! The ledgers that there are.

use std::sync::Arc;

use async_trait::async_trait;
use cloakroom_adapters::sqlite::SqliteLedger;
use cloakroom_storage::ledger::Ledger;
use tempfile::TempDir;

use crate::Implementation;

/// Each ledger is one line here.
pub const LEDGERS: [&Implementation<LedgerData>; 1] = [&SQLITE];

static SQLITE: Implementation<LedgerData> =
    Implementation { name: "sqlite", needs: Vec::new, create: || Box::pin(in_sqlite()) };

/// The data of a ledger.
pub type LedgerData = Box<dyn Reopened>;

/// Data that can be opened again and again, which shows what is durable.
#[async_trait(?Send)]
pub trait Reopened {
    /// Opens it as a process does that begins; it is not loaded yet.
    async fn open(&self) -> Arc<dyn Ledger>;
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
}
