//! Opens the database and its connections, and says why it cannot be opened.

use std::path::Path;
use std::sync::Arc;

use sqlx::ConnectOptions as _;
use sqlx::migrate::MigrateError;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};

use super::{BUSY_TIMEOUT, error};
use crate::inodes;
use crate::place::Place;
use cloakroom_storage::ledger::LedgerError;

/// The size that the write-ahead log shrinks to after a long read has kept it growing, in bytes.
const LARGEST_LOG_BYTES: u64 = 8 << 20;

/// How many look-ups run at once. Others wait their turn.
const READERS: u32 = 4;

/// All connections for look-ups. They are opened at once and never again: the path may lead to another file later.
pub(super) async fn readers(options: SqliteConnectOptions) -> Result<SqlitePool, sqlx::Error> {
    // A file does not go away like a database server, so a connection needs no test before each look-up.
    let readers = SqlitePoolOptions::new()
        .max_connections(READERS)
        .max_lifetime(None)
        .idle_timeout(None)
        .test_before_acquire(false)
        .connect_lazy_with(options.read_only(true));
    let mut opened = Vec::new();
    for _ in 0..READERS {
        let mut reader = readers.acquire().await?;
        // SQLite opens its files with the first look-up.
        sqlx::query("SELECT COUNT(*) FROM facts").fetch_one(&mut *reader).await?;
        opened.push(reader);
    }
    Ok(readers)
}

/// Watches the database and its write-ahead log, which exists once the database was read.
pub(super) fn watch(place: &Place, path: &Path) -> std::io::Result<()> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    place.watch_ledger(path)?;
    place.watch_ledger(Path::new(&log))
}

/// Tells a file system that cannot hold a ledger from other failures.
pub(super) fn not_opened(source: sqlx::Error, path: String) -> LedgerError {
    if error::lacks_shared_memory(&source) {
        LedgerError::NoSharedMemory { path }
    } else if inodes::are_used_up(Path::new(&path)) {
        LedgerError::OutOfInodes { path }
    } else {
        LedgerError::Open { path, source: Arc::new(source) }
    }
}

/// Tells a full or failing disk from a migration that failed for another reason.
pub(super) fn not_migrated(source: MigrateError, path: String) -> LedgerError {
    match source {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) if error::is_full(&error) => {
            LedgerError::Full
        }
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)
            if error::is_failed_write(&error) =>
        {
            LedgerError::NotWritable(Arc::new(error))
        }
        MigrateError::Execute(error) if error::lacks_shared_memory(&error) => {
            LedgerError::NoSharedMemory { path }
        }
        _ if inodes::are_used_up(Path::new(&path)) => LedgerError::OutOfInodes { path },
        source => LedgerError::Migrate { path, source: Arc::new(source) },
    }
}

/// Write-ahead log and `synchronous=FULL`: a committed transaction survives power loss
/// (<https://www.sqlite.org/pragma.html#pragma_synchronous>).
pub(super) fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(BUSY_TIMEOUT)
        .pragma("journal_size_limit", LARGEST_LOG_BYTES.to_string())
        .disable_statement_logging()
}
