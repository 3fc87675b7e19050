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
use super::{SqliteLedger, changes, execute, facts, form};
use cloakroom_storage::ledger::{LedgerError, Restored, WrongForm};
use cloakroom_storage::log::{Group, LedgerFile, Position};
use cloakroom_storage::stamp::Installation;

/// Endings of files that an earlier process may have left beside the database: those of SQLite, and an unfinished copy.
const BESIDE: [&str; 4] = ["-wal", "-shm", "-journal", "-copy"];

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

    async fn finish(&self, installation: Installation) -> Result<(), LedgerError> {
        let connection = match self.connection.lock().await.take() {
            Some(connection) => connection,
            None => self.open().await?,
        };
        let migrated = form::MIGRATIONS.run(&connection).await;
        let found = match migrated {
            Ok(()) => Self::belongs_to(installation, &connection).await.map_err(failed),
            Err(source) => Err(not_migrated(source, self.shown())),
        };
        connection.close().await;
        match found? {
            found if found == installation.to_string() => Ok(()),
            found => {
                Err(LedgerError::OtherInstallation { path: self.shown(), found, expected: installation })
            }
        }
    }

    async fn check(&self) -> Result<(), LedgerError> {
        SqliteLedger::check_copy(&self.path).await
    }

    async fn installation(&self) -> Result<Option<Installation>, LedgerError> {
        let connection = self.open().await?;
        let found = facts::remembered("installation", &connection).await;
        connection.close().await;
        found.map_err(failed)
    }

    async fn restored(&self) -> Result<Option<Position>, LedgerError> {
        let connection = self.open().await?;
        let restored = facts::remembered::<Restored>("restored", &connection).await;
        connection.close().await;
        Ok(restored.map_err(failed)?.map(|restored| restored.copy))
    }

    async fn put_back(&self, from: &Path, at: Position) -> Result<(), LedgerError> {
        SqliteLedger::check_copy(from).await?;
        fs::rename(from, &self.path).map_err(|error| LedgerError::NotWritable(Arc::new(error)))?;
        let connection = self.open().await?;
        let restored = Restored { copy: at, is_behind: true }.to_string();
        let noted = async { facts::remember("restored", &restored, &mut *connection.acquire().await?).await };
        let noted = noted.await;
        connection.close().await;
        noted.map(drop).map_err(failed)
    }
}

impl SqliteFile {
    /// The installation that the ledger names. A new one gets this name.
    async fn belongs_to(installation: Installation, connection: &SqlitePool) -> Result<String, sqlx::Error> {
        let mut connection = connection.acquire().await?;
        if let Some(found) = facts::remembered("installation", &mut *connection).await? {
            return Ok(found);
        }
        let name = installation.to_string();
        facts::remember("installation", &name, &mut connection).await?;
        Ok(name)
    }
}
