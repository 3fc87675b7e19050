//! The file of a ledger that is made from what is in a bucket.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use sqlx::ConnectOptions as _;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use tokio::sync::Mutex;

use super::error::failed;
use super::opening::{not_migrated, not_opened};
use super::writer::execute;
use super::{changes, form};
use cloakroom_storage::ledger::{LedgerError, WrongForm};
use cloakroom_storage::log::{Group, LedgerFile};

/// What SQLite has beside a database while it is open.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// The file of a ledger that is being made.
pub struct SqliteFile {
    path: PathBuf,
    /// One connection. It is open while groups are put into the file.
    connection: Mutex<Option<SqlitePool>>,
}

impl SqliteFile {
    /// The file at `path`, which may be missing.
    pub fn new(path: PathBuf) -> Self {
        Self { path, connection: Mutex::default() }
    }

    fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// Opens the file. A crash leaves nothing to repair, because the next start begins with [`LedgerFile::clear`]: so nothing is
    /// synced.
    async fn open(&self) -> Result<SqlitePool, LedgerError> {
        form::check(&self.path).await?;
        let options = SqliteConnectOptions::new()
            .filename(&self.path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Memory)
            .synchronous(SqliteSynchronous::Off)
            .disable_statement_logging();
        let connection = SqlitePoolOptions::new().max_connections(1).connect_with(options).await;
        connection.map_err(|source| not_opened(source, self.shown()))
    }
}

#[async_trait]
impl LedgerFile for SqliteFile {
    fn path(&self) -> &Path {
        &self.path
    }

    async fn clear(&self) -> Result<(), LedgerError> {
        if let Some(connection) = self.connection.lock().await.take() {
            connection.close().await;
        }
        let beside = BESIDE.iter().map(|ending| {
            let mut name = self.path.clone().into_os_string();
            name.push(ending);
            PathBuf::from(name)
        });
        for path in beside.chain([self.path.clone()]) {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(LedgerError::NotWritable(Arc::new(error)));
                }
                _ => {}
            }
        }
        Ok(())
    }

    async fn apply(&self, group: Group) -> Result<(), LedgerError> {
        let mut opened = self.connection.lock().await;
        if group.form > form::newest() {
            let form = WrongForm::Newer { form: group.form, known: form::newest() };
            return Err(LedgerError::WrongForm { path: format!("the group {} of the log", group.at), form });
        }
        let connection = match &mut *opened {
            Some(connection) => connection,
            none => none.insert(self.open().await?),
        };
        let applied = async {
            let mut connection = connection.acquire().await?;
            execute(&mut connection, "BEGIN IMMEDIATE").await?;
            changes::apply(&mut connection, &group.changes).await?;
            execute(&mut connection, "COMMIT").await
        };
        applied.await.map_err(failed)
    }

    async fn finish(&self) -> Result<(), LedgerError> {
        let connection = match self.connection.lock().await.take() {
            Some(connection) => connection,
            None => self.open().await?,
        };
        let migrated = form::MIGRATIONS.run(&connection).await;
        connection.close().await;
        migrated.map_err(|source| not_migrated(source, self.shown()))
    }
}
