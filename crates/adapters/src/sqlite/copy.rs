//! Copies of the database.

use std::path::Path;

use super::SqliteLedger;
use super::error::failed;
use cloakroom_storage::ledger::LedgerError;

impl SqliteLedger {
    /// Writes a copy of the ledger, as it is at one moment, into a new file at `path`. Changes go on meanwhile. After an error
    /// the file may be there, and is not whole.
    pub async fn copy_to(&self, path: &Path) -> Result<(), LedgerError> {
        let path = path.to_string_lossy().into_owned();
        sqlx::query("VACUUM INTO ?1").bind(path).execute(&self.readers).await.map_err(failed)?;
        Ok(())
    }
}
