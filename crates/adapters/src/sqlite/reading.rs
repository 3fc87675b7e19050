//! Reads rows page by page, and into memory: at the start, and again if another program may have changed them.

use futures_util::StreamExt as _;
use sqlx::sqlite::SqlitePool;

use super::operation::Operation;
use super::{SqliteLedger, row};
use cloakroom_core::resource::{ResourceId, State};
use cloakroom_storage::ledger::{LedgerError, Page, UnreadableRow};

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

/// Up to `limit` rows in `state` with ids after `after`.
pub(super) async fn page(
    readers: &SqlitePool,
    state: State,
    after: Option<ResourceId>,
    limit: u32,
) -> Result<Page, sqlx::Error> {
    let (begin, limit) = (after.map(|id| id.to_string()).unwrap_or_default(), limit as usize);
    // Few rows are pending or deleting, and an index has those. The plus makes SQLite use the ids for the others; with the index
    // on the state it would sort all of them for every page (<https://www.sqlite.org/optoverview.html>, section 6).
    let statement = match state {
        State::Pending | State::Deleting => "SELECT * FROM resources WHERE state = ? AND id > ? ORDER BY id",
        State::Ready | State::Deleted => "SELECT * FROM resources WHERE +state = ? AND id > ? ORDER BY id",
    };
    let mut found = sqlx::query(statement).bind(state.as_str()).bind(&begin).fetch(readers);
    let mut rows = Vec::new();
    while rows.len() <= limit
        && let Some(row) = found.next().await
    {
        let row = row?;
        rows.extend(row::id(&row).ok().map(|id| row::resource(id, &row)));
    }
    drop(found);
    if state == State::Pending {
        rows.extend(without_row(readers, &begin, limit).await?.into_iter().map(Err));
    }
    let mut page = Page { rows, next: None };
    page.rows.sort_by_key(Page::id);
    if page.rows.len() > limit {
        page.rows.truncate(limit);
        page.next = page.rows.last().map(Page::id);
    }
    Ok(page)
}

/// Uploads that have a handle and no row.
async fn without_row(
    readers: &SqlitePool,
    begin: &str,
    limit: usize,
) -> Result<Vec<UnreadableRow>, sqlx::Error> {
    let mut found = sqlx::query(
        "SELECT resource AS id FROM upload_handles WHERE resource > ? \
         AND NOT EXISTS (SELECT 1 FROM resources WHERE resources.id = resource) ORDER BY resource",
    )
    .bind(begin)
    .fetch(readers);
    let mut rows = Vec::new();
    while rows.len() <= limit
        && let Some(row) = found.next().await
    {
        rows.extend(row::id(&row?).ok().map(|id| UnreadableRow {
            id,
            column: "id",
            state: Some(State::Pending),
            namespace: None,
            size_bytes: None,
            secret_hash: None,
        }));
    }
    Ok(rows)
}
