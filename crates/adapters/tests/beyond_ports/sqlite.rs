//! What SQLite has beyond other ledgers.

use std::sync::Arc;

use cloakroom_adapters::sqlite::SqliteLedger;
use cloakroom_core::resource::State;
use cloakroom_storage::ledger::{Ledger as _, Page};
use cloakroom_suites::ledger::rows::{AnyLedger, begin, new_id};
use futures_util::future::join_all;
use sqlx::ConnectOptions as _;
use sqlx::sqlite::SqliteConnectOptions;

/// A long read keeps SQLite from writing over the log, so the log grows.
#[tokio::test]
async fn the_log_shrinks_after_a_long_read_has_kept_it_growing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let ledger = AnyLedger::load(Arc::new(SqliteLedger::open(&path).await.unwrap()), 0).await;
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

/// Another program wrote into the table of handles.
#[tokio::test]
async fn handles_with_damaged_ids_take_no_place_on_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let ledger = SqliteLedger::open(&path).await.unwrap();
    let id = new_id();
    let mut connection = SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
    for resource in ["0", "00", &id.to_string()] {
        let row = sqlx::query("INSERT INTO upload_handles VALUES (?1, 'handle')").bind(resource);
        row.execute(&mut connection).await.unwrap();
    }
    let page = ledger.page(State::Pending, None, 1).await.unwrap();
    assert_eq!(page.rows.iter().map(Page::id).collect::<Vec<_>>(), [id]);
    assert!(page.next.is_none());
}
