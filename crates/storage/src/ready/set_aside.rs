//! Resources that this version cannot read. They are kept and logged once, and do not hold up other resources.

use std::collections::BTreeMap;

use super::Unreadable;
use crate::ledger::UnreadableRow;
use cloakroom_core::resource::ResourceId;

/// How many of them the log and the status name. For the others they only have the number.
const NAMED: usize = 20;

/// What this version cannot read.
#[derive(Debug, Default)]
pub(super) struct SetAside {
    known: Rows,
    /// What was found so far while everything is read again.
    found: Rows,
}

#[derive(Debug, Default)]
struct Rows {
    /// The rows, with the parts of them that can be read.
    by_id: BTreeMap<ResourceId, UnreadableRow>,
    /// How many further rows have a damaged id.
    damaged_ids: usize,
}

impl SetAside {
    pub(super) fn begin_reading(&mut self) {
        self.found = Rows::default();
    }

    pub(super) fn take(&mut self, rows: impl IntoIterator<Item = UnreadableRow>, damaged_ids: usize) {
        self.found.by_id.extend(rows.into_iter().map(|row| (row.id, row)));
        self.found.damaged_ids += damaged_ids;
    }

    /// Logs what was not known before.
    pub(super) fn finish_reading(&mut self) {
        let known = std::mem::replace(&mut self.known, std::mem::take(&mut self.found));
        let mut new = self.known.by_id.iter().filter(|(id, _)| !known.by_id.contains_key(*id));
        for (id, row) in new.by_ref().take(NAMED) {
            tracing::error!(
                resource_id = %id, column = row.column,
                "this version cannot read a resource in the ledger: it is set aside, and its ticket is answered with 500; \
                 if a newer version has run on this data directory, start that one again, else remove the resource with \
                 cloakroom rm"
            );
        }
        let more = new.count();
        if more > 0 {
            tracing::error!(
                resources = more,
                "this version cannot read more resources, which are not named here"
            );
        }
        let damaged_ids = self.known.damaged_ids;
        if damaged_ids > known.damaged_ids {
            tracing::error!(
                resources = damaged_ids,
                "the ledger has resources whose ids are damaged: no ticket finds them, and no stray is removed, because it \
                 may belong to one of them; put a copy of the ledger back, or remove the strays with cloakroom clean --strays"
            );
        }
    }

    pub(super) fn remove(&mut self, id: ResourceId) {
        self.known.by_id.remove(&id);
    }

    pub(super) fn summary(&self) -> Unreadable {
        let Rows { by_id, damaged_ids } = &self.known;
        Unreadable {
            count: by_id.len() + damaged_ids,
            first: by_id.values().take(NAMED).cloned().collect(),
            damaged_ids: *damaged_ids,
        }
    }
}
