//! Reads the rows into memory: at the start, and again if another program may have changed them.

use super::SqliteLedger;
use super::operation::Operation;
use cloakroom_storage::ledger::LedgerError;

/// How many rows are read together.
const PAGE: u32 = 1000;

impl SqliteLedger {
    pub(super) async fn read_all(&self) -> Result<(), LedgerError> {
        self.change(Operation::CountRoom).await?;
        let index = self.memory.index();
        index.begin_reading();
        let read = self.read_ready().await;
        match &read {
            Ok(()) => index.finish_reading(),
            Err(_) => index.give_up_reading(),
        }
        read
    }

    async fn read_ready(&self) -> Result<(), LedgerError> {
        let mut after = None;
        loop {
            let page = self.ready(after, PAGE).await?;
            let next = page.next;
            self.memory.index().take_page(after, page);
            if next.is_none() {
                return Ok(());
            }
            after = next;
        }
    }
}
