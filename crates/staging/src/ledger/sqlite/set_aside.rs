//! Resources that this version cannot read. They are kept and logged once, and do not hold up other resources.

use std::collections::BTreeMap;

use crate::ledger::{Unreadable, UnreadableRow};
use cloakroom_core::resource::RowName;

/// How many of them the log and the status name. For the others they only have the number.
const NAMED: usize = 20;

/// The rows, with the parts of them that can be read.
#[derive(Debug, Default)]
pub(super) struct SetAside {
    known: BTreeMap<RowName, UnreadableRow>,
    /// The rows that were found so far while everything is read again.
    found: BTreeMap<RowName, UnreadableRow>,
}

impl SetAside {
    pub(super) fn begin_reading(&mut self) {
        self.found.clear();
    }

    pub(super) fn take(&mut self, rows: Vec<UnreadableRow>) {
        self.found.extend(rows.into_iter().map(|row| (row.name.clone(), row)));
    }

    /// Logs the rows that were not known before.
    pub(super) fn finish_reading(&mut self) {
        let known = std::mem::replace(&mut self.known, std::mem::take(&mut self.found));
        let mut new = self.known.iter().filter(|(name, _)| !known.contains_key(*name));
        for (name, row) in new.by_ref().take(NAMED) {
            tracing::error!(
                resource_id = %name, column = row.column,
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
    }

    pub(super) fn remove(&mut self, name: &RowName) {
        self.known.remove(name);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    pub(super) fn summary(&self) -> Unreadable {
        Unreadable {
            count: self.known.len(),
            first: self.known.values().take(NAMED).cloned().collect(),
            has_damaged_ids: self.known.keys().any(|name| name.id().is_none()),
        }
    }

    /// The readable parts of one row.
    pub(super) fn find(&self, name: &RowName) -> Option<UnreadableRow> {
        self.known.get(name).cloned()
    }
}
