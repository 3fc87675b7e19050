//! The write-ahead log of the ledger.

use std::sync::Arc;

use cloakroom_adapters::sqlite::SqliteLedger;
use cloakroom_storage::ledger::Ledger as _;
use futures_util::future::join_all;
use sqlx::ConnectOptions as _;
use sqlx::sqlite::SqliteConnectOptions;

use super::rows::{AnyLedger, begin, new_id};

/// A long read keeps SQLite from writing over the log, so the log grows.
#[tokio::test]
async fn the_log_shrinks_after_a_long_read_has_kept_it_growing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let ledger = SqliteLedger::open(&path).await.unwrap();
    ledger.load(0).await.unwrap();
    let ledger: AnyLedger = Arc::new(ledger);
    let log_bytes = || std::fs::metadata(folder.path().join("ledger.db-wal")).unwrap().len();
    let mut reader = SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
    sqlx::query("BEGIN").execute(&mut reader).await.unwrap();
    sqlx::query("SELECT COUNT(*) FROM resources").fetch_one(&mut reader).await.unwrap();
    while log_bytes() < 20 << 20 {
        join_all((0..200).map(|_| begin(&ledger, new_id()))).await;
    }
    sqlx::query("COMMIT").execute(&mut reader).await.unwrap();
    for _ in 0..10 {
        begin(&ledger, new_id()).await;
    }
    assert!(log_bytes() <= 8 << 20, "it has {} bytes", log_bytes());
    ledger.close().await;
}
