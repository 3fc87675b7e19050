use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use super::super::form::MIGRATIONS;
use super::*;
use cloakroom_storage::log::{Group, Position};

async fn ledger() -> SqliteConnection {
    migrated(SqliteConnectOptions::new().in_memory(true)).await
}

async fn migrated(options: SqliteConnectOptions) -> SqliteConnection {
    let mut connection = options.disable_statement_logging().connect().await.unwrap();
    MIGRATIONS.run(&mut connection).await.unwrap();
    connection
}

/// All rows of all tables.
async fn rows(connection: &mut SqliteConnection) -> BTreeMap<String, Vec<Columns>> {
    let mut found = BTreeMap::new();
    for table in tables(connection).await.unwrap() {
        let key = list(&table.key, ", ", str::to_owned);
        let statement = format!("SELECT * FROM {} ORDER BY {key}", quoted(&table.name));
        let rows = all(connection, statement).await.unwrap();
        found.insert(table.name, rows.iter().map(|row| columns(row).unwrap()).collect());
    }
    found
}

/// A change as the ledger could make it, or a stranger with the same database.
fn statement() -> impl Strategy<Value = String> {
    let insert = prop::sample::select(vec!["INSERT", "INSERT OR IGNORE", "INSERT OR REPLACE"]);
    let table = prop::sample::select(vec![
        ("resources", "id", "created_at"),
        ("upload_handles", "resource", "handle"),
        ("abandoned_uploads", "key", "abandoned_at"),
        ("strays", "key", "size_bytes"),
        ("spent_secrets", "secret_hash", "spent_at"),
        ("watched_kinds", "namespace", "kind"),
        ("facts", "name", "value"),
    ]);
    (0..6, table, insert, 0..4, 0..4, any::<u32>()).prop_map(
        |(what, (table, key, value), insert, one, other, number)| match what {
            0 | 1 => format!("{insert} INTO {}", values(table, one, number)),
            2 => format!("UPDATE {table} SET {value} = {number} WHERE {key} <> 'k{one}'"),
            3 => format!("UPDATE OR REPLACE {table} SET {key} = 'k{other}' WHERE {key} = 'k{one}'"),
            4 => format!("DELETE FROM {table} WHERE {key} = 'k{one}' RETURNING *"),
            _ => format!("DELETE FROM {table}"),
        },
    )
}

fn values(table: &str, key: i32, number: u32) -> String {
    let rest = match table {
        "resources" => format!(
            "(id, secret_hash, state, created_at, unused_timeout_millis) VALUES ('k{key}', zeroblob(32), 'pending', {number}, -1)"
        ),
        "strays" => format!("(key, seen_at, size_bytes) VALUES ('k{key}', -{number}, 0)"),
        "abandoned_uploads" | "spent_secrets" => format!("VALUES ('k{key}', {number})"),
        // Text that is not in UTF-8.
        _ if number.is_multiple_of(3) => {
            format!("VALUES ('k{key}', CAST(x'ff00{:02x}' AS TEXT))", number % 256)
        }
        _ => format!("VALUES ('k{key}', 'it''s \"{number}\" ü')"),
    };
    format!("{table} {rest}")
}

/// Statements, each of which may be undone, and whether all of them are.
type Transaction = (Vec<(String, bool)>, bool);

async fn follow(transactions: Vec<Transaction>) {
    let (mut ledger, mut copy) = (ledger().await, ledger().await);
    let watched = RowChanges::watch(&mut ledger).await.unwrap();
    for (number, (statements, is_undone)) in (1..).zip(transactions) {
        execute(&mut ledger, "BEGIN IMMEDIATE".into()).await.unwrap();
        for (statement, is_undone) in statements {
            execute(&mut ledger, "SAVEPOINT operation".into()).await.unwrap();
            let done = execute(&mut ledger, statement).await;
            if is_undone || done.is_err() {
                execute(&mut ledger, "ROLLBACK TO operation".into()).await.unwrap();
            }
            execute(&mut ledger, "RELEASE operation".into()).await.unwrap();
        }
        let changes = watched.take(&mut ledger).await.unwrap();
        assert_eq!(watched.take(&mut ledger).await.unwrap(), []);
        if is_undone {
            execute(&mut ledger, "ROLLBACK".into()).await.unwrap();
            continue;
        }
        execute(&mut ledger, "COMMIT".into()).await.unwrap();
        let at = Position { epoch: 1, number };
        let group = Group { installation: "00000000000000ab".parse().unwrap(), at, form: 1, changes };
        let read = Group::decode(&group.encode().unwrap()).unwrap();
        apply(&mut copy, &read.changes).await.unwrap();
        assert_eq!(rows(&mut copy).await, rows(&mut ledger).await);
    }
    ledger.close().await.unwrap();
    copy.close().await.unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn the_changed_rows_make_a_copy_the_same(
        transactions in vec((vec((statement(), prop::bool::weighted(0.2)), 0..8), prop::bool::weighted(0.2)), 1..5)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(follow(transactions));
    }
}

#[tokio::test]
async fn every_table_is_watched_and_a_copy_has_no_trace_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let mut ledger = migrated(SqliteConnectOptions::new().filename(path).create_if_missing(true)).await;
    let watched = RowChanges::watch(&mut ledger).await.unwrap();
    let names: Vec<&str> = watched.tables.iter().map(|table| table.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "abandoned_uploads",
            "facts",
            "resources",
            "spent_secrets",
            "strays",
            "upload_handles",
            "watched_kinds"
        ],
        "a table that is missing here loses its rows with the server that wrote them"
    );
    assert!(watched.tables.iter().all(|table| !table.key.is_empty()), "{watched:?}");
    execute(&mut ledger, "INSERT INTO facts VALUES ('a', 'b')".into()).await.unwrap();
    let path = folder.path().join("copy.db");
    execute(&mut ledger, format!("VACUUM INTO '{}'", path.display())).await.unwrap();
    let options = SqliteConnectOptions::new().filename(&path).read_only(true);
    let mut copy = options.connect().await.unwrap();
    let names = "SELECT name FROM sqlite_schema WHERE name LIKE 'changed%' OR type = 'trigger'";
    assert_eq!(all(&mut copy, names.into()).await.unwrap().len(), 0);
}

#[tokio::test]
async fn a_change_of_an_unknown_table_or_column_is_refused() {
    let mut ledger = ledger().await;
    let key = Columns::from([("name".to_owned(), Value::Text("a".into()))]);
    let change =
        |table: &str, row: Columns| RowChange { table: table.into(), key: key.clone(), row: Some(row) };
    for (change, unknown) in [
        (change("facts; --", key.clone()), "table"),
        (change("facts", [("name\"".to_owned(), Value::Null)].into()), "column"),
        (RowChange { table: "facts".into(), key: Columns::new(), row: None }, "column"),
    ] {
        let refused = apply(&mut ledger, &[change]).await.unwrap_err().to_string();
        assert!(refused.ends_with(&format!("the log has an unknown {unknown}")), "{refused}");
    }
}
