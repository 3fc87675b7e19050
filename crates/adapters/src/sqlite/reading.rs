//! Reads rows page by page.

use futures_util::StreamExt as _;
use sqlx::sqlite::SqlitePool;

use super::row;
use cloakroom_core::resource::{Resource, ResourceId, State};
use cloakroom_storage::ledger::{Page, UnreadableRow};

/// A page ends when its owners have more bytes than this.
const LARGEST_PAGE_BYTES: usize = 4 << 20;

/// Up to `limit` rows in `state` with ids after `after`.
pub(super) async fn page(
    readers: &SqlitePool,
    state: State,
    after: Option<ResourceId>,
    limit: u32,
) -> Result<Page, sqlx::Error> {
    // Few rows are pending or deleting, and an index has those. The plus makes SQLite use the ids for the others; with the index
    // on the state it would sort all of them for every page (<https://www.sqlite.org/optoverview.html>, section 6).
    let statement = match state {
        State::Pending | State::Deleting => {
            "SELECT * FROM resources WHERE id >= ?1 AND id IS NOT ?2 AND state = ?3 ORDER BY id"
        }
        State::Deleted => {
            "SELECT * FROM resources WHERE id >= ?1 AND id IS NOT ?2 AND +state = ?3 ORDER BY id"
        }
        State::Ready => {
            "SELECT * FROM resources WHERE id >= ?1 AND id IS NOT ?2 \
             AND +state IS NOT 'pending' AND +state IS NOT 'deleting' AND +state IS NOT 'deleted' ORDER BY id"
        }
    };
    let (after, limit) = (after.map(|id| id.to_string()), limit as usize);
    let begin = after.clone().unwrap_or_default();
    let mut found = sqlx::query(statement).bind(&begin).bind(&after).bind(state.as_str()).fetch(readers);
    let mut page = Page::default();
    let (mut bytes, mut damaged_ids) = (0, 0);
    while let Some(row) = found.next().await {
        let row = row?;
        // A page must end with an id from which the next one can begin. So rows with damaged ids do not end it, and
        // those behind its last id belong to the next page, which reads them again.
        let Ok(id) = row::id(&row) else {
            damaged_ids += 1;
            continue;
        };
        if page.rows.len() == limit || bytes > LARGEST_PAGE_BYTES {
            page.next = page.rows.last().map(Page::id);
            break;
        }
        page.damaged_ids += std::mem::take(&mut damaged_ids);
        let row = row::resource(id, &row);
        bytes +=
            row.as_ref().ok().and_then(Resource::acknowledged).map_or(0, |ready| ready.owner.memory_bytes());
        page.rows.push(row);
    }
    if page.next.is_none() {
        page.damaged_ids += damaged_ids;
    }
    drop(found);
    if state == State::Pending {
        add_rowless(&mut page, without_row(readers, &begin, limit).await?, limit);
    }
    Ok(page)
}

fn add_rowless(page: &mut Page, rowless: Vec<UnreadableRow>, limit: usize) {
    let end = page.next;
    let here = rowless.into_iter().filter(|row| end.is_none_or(|end| row.id <= end));
    page.rows.extend(here.map(Err));
    page.rows.sort_by_key(Page::id);
    if page.rows.len() > limit {
        page.rows.truncate(limit);
        page.next = page.rows.last().map(Page::id);
    }
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
