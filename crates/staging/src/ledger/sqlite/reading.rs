//! Reads the rows into memory: at the start, and again if another program may have changed them.

use std::collections::BTreeMap;

use super::SqliteLedger;
use super::index::Entry;
use super::operation::Operation;
use crate::ledger::{Ledger as _, LedgerError, Listed};
use cloakroom_core::resource::{Owner, ResourceId};

/// How many rows are read together.
const PAGE: u32 = 1000;

/// How many owners are looked up together.
const LOOK_UP: usize = 100;

/// A page ends when the owners that were looked up for it have more bytes than this.
const LARGEST_PAGE_BYTES: usize = 4 << 20;

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

    pub(super) async fn list(
        &self,
        after: Option<ResourceId>,
        limit: usize,
    ) -> Result<Vec<Listed>, LedgerError> {
        let mut after = after;
        loop {
            let entries = self.memory.index().page(after, limit);
            if entries.is_empty() {
                return Ok(Vec::new());
            }
            let (listed, to) = self.with_owners(entries).await?;
            if !listed.is_empty() {
                return Ok(listed);
            }
            // All resources of this part were deleted meanwhile, so the next part is read.
            after = to;
        }
    }

    /// Looks up the owners that are not in memory. Also returns the last id that was looked at.
    async fn with_owners(
        &self,
        entries: Vec<(ResourceId, Entry)>,
    ) -> Result<(Vec<Listed>, Option<ResourceId>), LedgerError> {
        let mut listed = Vec::with_capacity(entries.len());
        let (mut bytes, mut to) = (0, None);
        for part in entries.chunks(LOOK_UP) {
            let unknown = part.iter().filter(|(_, entry)| entry.has_unknown_owner());
            let unknown: Vec<ResourceId> = unknown.map(|(id, _)| *id).collect();
            let mut found = if unknown.is_empty() { BTreeMap::new() } else { self.owners(&unknown).await? };
            bytes += found.values().map(Owner::memory_bytes).sum::<usize>();
            listed.extend(part.iter().filter_map(|(id, entry)| entry.listed(*id, || found.remove(id))));
            to = part.last().map(|(id, _)| *id);
            if bytes > LARGEST_PAGE_BYTES {
                break;
            }
        }
        Ok((listed, to))
    }
}
