//! Copies of the database.

use std::fs;
use std::path::Path;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use super::error::failed;
use super::opening::not_opened;
use super::{SqliteLedger, form};
use cloakroom_storage::ledger::{LedgerError, WrongForm};

impl SqliteLedger {
    /// Writes a copy of the ledger, as it is at one moment, into a new file at `path`. Changes go on meanwhile. After an error
    /// the file may be there, and is not whole.
    pub async fn copy_to(&self, path: &Path) -> Result<(), LedgerError> {
        let path = path.to_string_lossy().into_owned();
        sqlx::query("VACUUM INTO ?1").bind(path).execute(&self.readers).await.map_err(failed)?;
        Ok(())
    }

    /// Reads all of the copy at `path`, and says whether it is whole, and a ledger that this version can use.
    pub async fn check_copy(path: &Path) -> Result<(), LedgerError> {
        form::check(path).await?;
        let shown = || path.display().to_string();
        if fs::metadata(path).map_err(|error| not_opened(error.into(), shown()))?.len() == 0 {
            return Err(LedgerError::WrongForm { path: shown(), form: WrongForm::NoDatabase });
        }
        let options = SqliteConnectOptions::new().filename(path).read_only(true).disable_statement_logging();
        let mut copy = options.connect().await.map_err(|source| not_opened(source, shown()))?;
        let found: String =
            sqlx::query_scalar("PRAGMA quick_check(1)").fetch_one(&mut copy).await.map_err(failed)?;
        copy.close().await.map_err(failed)?;
        if found == "ok" { Ok(()) } else { Err(failed(sqlx::Error::Protocol(found))) }
    }
}
