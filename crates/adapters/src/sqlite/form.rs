//! Whose file it is, and of which form, before SQLite may write to it.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _};

use super::opening::not_opened;
use cloakroom_storage::ledger::{LedgerError, WrongForm};

pub(super) static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations/sqlite");

/// What every ledger has as its application id (<https://www.sqlite.org/pragma.html#pragma_application_id>).
const APPLICATION_ID: i64 = 0x434c_4b52;

/// How a file of SQLite begins (<https://www.sqlite.org/fileformat2.html#the_database_header>).
const MAGIC: &[u8] = b"SQLite format 3\0";

/// Refuses a file that this version must not change, without a change to it. There may be no file, or one that a start has
/// left which was interrupted before the first table.
pub(super) async fn check(path: &Path) -> Result<(), LedgerError> {
    let wrong = |form| LedgerError::WrongForm { path: path.display().to_string(), form };
    let failed = |source| not_opened(source, path.display().to_string());
    let Some(beginning) = beginning(path).map_err(|error| failed(error.into()))? else { return Ok(()) };
    if beginning != MAGIC {
        return Err(wrong(WrongForm::NoDatabase));
    }
    let options = SqliteConnectOptions::new().filename(path).read_only(true).disable_statement_logging();
    let mut connection = options.connect().await.map_err(failed)?;
    let found = form(&mut connection).await;
    connection.close().await.map_err(failed)?;
    found.map_err(failed)?.map_or(Ok(()), |form| Err(wrong(form)))
}

/// The first bytes; `None` if there are none at all.
fn beginning(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened?.take(MAGIC.len() as u64).read_to_end(&mut bytes)?,
    };
    Ok((!bytes.is_empty()).then_some(bytes))
}

async fn form(connection: &mut SqliteConnection) -> Result<Option<WrongForm>, sqlx::Error> {
    let id: i64 = sqlx::query_scalar("PRAGMA application_id").fetch_one(&mut *connection).await?;
    let tables: Vec<String> = sqlx::query_scalar("SELECT name FROM sqlite_schema WHERE type = 'table'")
        .fetch_all(&mut *connection)
        .await?;
    let has = |name: &str| tables.iter().any(|table| table == name);
    if id != APPLICATION_ID {
        // The history of the forms is made before the first of them.
        let is_begun = id == 0 && tables.iter().all(|table| table == "_sqlx_migrations");
        let is_earlier = id == 0 && has("_sqlx_migrations") && has("resources");
        return Ok(if is_begun {
            None
        } else if is_earlier {
            Some(WrongForm::Earlier)
        } else {
            Some(WrongForm::OfAnotherProgram)
        });
    }
    let form: Option<i64> =
        sqlx::query_scalar("SELECT MAX(version) FROM _sqlx_migrations").fetch_one(connection).await?;
    Ok(form.filter(|form| *form > newest()).map(|form| WrongForm::Newer { form, known: newest() }))
}

/// The form of the ledgers of this version: the version of its last migration.
pub(super) fn newest() -> i64 {
    MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or(0)
}
