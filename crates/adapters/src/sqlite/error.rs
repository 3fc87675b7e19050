//! Errors of SQLite, as errors of the ledger.

use std::sync::Arc;

use cloakroom_storage::ledger::LedgerError;

/// The error of the ledger that a failure of SQLite is.
pub(super) fn failed(error: impl Into<Arc<sqlx::Error>>) -> LedgerError {
    /// The code for "unable to open database file". The file existed at the start, so the cause is the limit of
    /// open files.
    const SQLITE_CANTOPEN: i32 = 14;
    /// The code for "attempt to write a readonly database".
    const SQLITE_READONLY: i32 = 8;
    let error = error.into();
    let Some(code) = result_code(&error) else { return LedgerError::Database(error) };
    match code & 0xff {
        SQLITE_FULL => LedgerError::Full,
        SQLITE_CANTOPEN => LedgerError::OutOfDescriptors,
        SQLITE_BUSY => LedgerError::Unavailable(error),
        SQLITE_READONLY => LedgerError::NotWritable(error),
        SQLITE_CONSTRAINT => LedgerError::Refused(error),
        _ if SQLITE_IOERR_ON_WRITE.contains(&code) => LedgerError::NotWritable(error),
        _ => LedgerError::Database(error),
    }
}

/// The primary result code of SQLite for "database is locked": another process writes to it.
const SQLITE_BUSY: i32 = 5;

/// The codes for "disk I/O error" in a write, a sync or a truncation (<https://www.sqlite.org/rescode.html>). A write to a
/// read-only file system is such an error, too.
const SQLITE_IOERR_ON_WRITE: [i32; 4] = [778, 1034, 1290, 1546];

/// The codes for "disk I/O error" with the shared memory of the write-ahead log: to open it, to size it, to lock it and
/// to map it.
const SQLITE_IOERR_SHM: [i32; 4] = [4618, 4874, 5130, 5386];

/// The primary result code of SQLite for "database or disk is full".
const SQLITE_FULL: i32 = 13;

/// The primary result code of SQLite for a broken constraint of a column, or of the type of its values.
const SQLITE_CONSTRAINT: i32 = 19;

/// The extended result code of SQLite.
fn result_code(error: &sqlx::Error) -> Option<i32> {
    error.as_database_error()?.code()?.parse().ok()
}

/// Whether the disk is full; see [`LedgerError::Full`].
pub(super) fn is_full(error: &sqlx::Error) -> bool {
    result_code(error).is_some_and(|code| code & 0xff == SQLITE_FULL)
}

/// Whether the file system has no shared memory; see [`LedgerError::NoSharedMemory`].
pub(super) fn lacks_shared_memory(error: &sqlx::Error) -> bool {
    result_code(error).is_some_and(|code| SQLITE_IOERR_SHM.contains(&code))
}

/// Whether another process has locked the database.
pub(super) fn is_locked(error: &sqlx::Error) -> bool {
    result_code(error).is_some_and(|code| code & 0xff == SQLITE_BUSY)
}

/// Whether the disk failed a write; see [`LedgerError::NotWritable`].
pub(super) fn is_failed_write(error: &sqlx::Error) -> bool {
    result_code(error).is_some_and(|code| SQLITE_IOERR_ON_WRITE.contains(&code))
}

/// Whether a rule of the table forbids a change; see [`LedgerError::Refused`].
pub(super) fn is_refusal(error: &sqlx::Error) -> bool {
    result_code(error).is_some_and(|code| code & 0xff == SQLITE_CONSTRAINT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlx::{ConnectOptions as _, SqliteConnection};

    async fn failure(connection: &mut SqliteConnection, sql: &'static str) -> LedgerError {
        failed(sqlx::raw_sql(sql).execute(connection).await.unwrap_err())
    }

    #[tokio::test]
    async fn errors_of_sqlite_are_told_apart() {
        let mut memory = sqlx::sqlite::SqliteConnectOptions::new().connect().await.unwrap();
        sqlx::raw_sql("CREATE TABLE t (n INTEGER NOT NULL CHECK (n > 0)) STRICT")
            .execute(&mut memory)
            .await
            .unwrap();
        for refused in
            ["INSERT INTO t VALUES (0)", "INSERT INTO t VALUES ('text')", "INSERT INTO t VALUES (NULL)"]
        {
            let error = failure(&mut memory, refused).await;
            assert!(matches!(error, LedgerError::Refused(_)), "{refused}: {error:?}");
        }
        assert!(matches!(failure(&mut memory, "SELECT nothing").await, LedgerError::Database(_)));
        let error = failure(&mut memory, "PRAGMA query_only = ON; DELETE FROM t").await;
        assert!(matches!(error, LedgerError::NotWritable(_)), "{error:?}");
    }
}
