//! Ready resources that this version cannot read: they stay, are said once, and hold up no others.

use std::collections::BTreeMap;

use crate::ledger::UnreadableRow;
use crate::resource::ResourceId;

/// The log names so many; of more it has the number.
const NAMED: usize = 20;

/// Which ones, with the column.
#[derive(Debug, Default)]
pub(super) struct SetAside {
    known: BTreeMap<String, &'static str>,
    /// What is found while everything is read again.
    found: BTreeMap<String, &'static str>,
}

impl SetAside {
    pub(super) fn begin_reading(&mut self) {
        self.found.clear();
    }

    pub(super) fn take(&mut self, rows: Vec<UnreadableRow>) {
        self.found.extend(rows.into_iter().map(|row| (row.id, row.column)));
    }

    /// Says what is new, and returns how many there are.
    pub(super) fn finish_reading(&mut self) -> usize {
        let known = std::mem::replace(&mut self.known, std::mem::take(&mut self.found));
        let mut new = self.known.iter().filter(|(id, _)| !known.contains_key(*id));
        for (id, column) in new.by_ref().take(NAMED) {
            tracing::error!(
                resource_id = %id, column,
                "this version cannot read a resource in the ledger: it is set aside, and its ticket is answered with 500; \
                 start the version that wrote it, or remove it with cloakroom rm"
            );
        }
        let more = new.count();
        if more > 0 {
            tracing::error!(resources = more, "this version cannot read more resources than were named");
        }
        self.count()
    }

    pub(super) fn remove(&mut self, id: ResourceId) {
        if !self.known.is_empty() {
            self.known.remove(&id.to_string());
        }
    }

    pub(super) fn count(&self) -> usize {
        self.known.len()
    }
}
