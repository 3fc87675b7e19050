//! Lists staged resources, page by page. Most of the data comes from memory.

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;

use super::access::Administrator;
use super::filter::{self, Filter};
use super::{QueryPairs, describe};
use crate::cleaner::Decision;
use crate::http::error::ApiError;
use crate::http::state::AppState;
use cloakroom_core::protocol::admin::ResourcePage;
use cloakroom_core::resource::{Resource, ResourceId};
use cloakroom_storage::AccessError;
use cloakroom_storage::ledger::LedgerError;
use cloakroom_storage::ready::Listed;

/// How many resources are looked at before other requests get their turn.
const CHUNK: u32 = 1000;

/// The most resources that one answer looks at, so that a filter with few matches does not keep a request running
/// without end.
const MOST_LOOKED_AT: usize = 10 * CHUNK as usize;

/// A page ends when its owners take more bytes than this.
const MOST_OWNER_BYTES: usize = 4 << 20;

/// List staged resources in the order of their ids. Resources that come or go between two pages do not change the rest:
/// no resource is listed twice, and none that stays is left out.
#[utoipa::path(
    get, path = "/admin/v1/resources", operation_id = "listResources", tag = "admin", security(("adminToken" = [])),
    params(
        ("after" = Option<String>, Query, description = "the “next” of the page before"),
        ("limit" = Option<u32>, Query, description = "the most resources on a page, up to 1000, which is the default"),
        ("namespace" = Option<String>, Query, description = "only owners in this namespace"),
        ("kind" = Option<String>, Query, description = "only owners of this kind"),
        ("label" = Option<Vec<String>>, Query, description = "KEY=VALUE; repeatable: only owners with all of them"),
        ("name" = Option<String>, Query, description = "only the owner of this name"),
        ("why" = Option<Vec<String>>, Query, description = "repeatable: only resources that are kept for one of these reasons, such as owner-present; due selects those that the next sweep deletes"),
        ("unused" = Option<bool>, Query, description = "true: only resources that were never downloaded"),
        ("olderThan" = Option<String>, Query, description = "only resources that were staged at least this long ago, such as 2d"),
        ("id" = Option<String>, Query, description = "only resources whose ids begin with this text"),
        ("deleted" = Option<bool>, Query, description = "true: resources that were deleted in the last seven days and are remembered, in place of staged ones; not with label, name or why"),
    ),
    responses(
        (status = 200, description = "one page", body = ResourcePage),
        (status = 400, description = "invalid-parameter"),
        (status = 401, description = "unauthorized: no admin token, or the wrong one"),
        (status = 403, description = "admin-off: this server has no --admin-token-file"),
        (status = 503, description = "overloaded"),
    )
)]
pub(super) async fn list(
    _: Administrator,
    State(state): State<AppState>,
    query: QueryPairs,
) -> Result<Json<ResourcePage>, ApiError> {
    let now = state.staging.clock().now();
    let filter = Filter::parse(&filter::pairs(query)?, now)?;
    let page = if filter.deleted {
        deleted_page(&state, &filter, now).await
    } else {
        page(&state, &filter, now).await
    };
    Ok(Json(page.map_err(AccessError::from)?))
}

async fn page(state: &AppState, filter: &Filter, now: Timestamp) -> Result<ResourcePage, LedgerError> {
    let (mut resources, mut after) = (Vec::new(), filter.after);
    let (mut looked_at, mut owner_bytes) = (0, 0);
    while looked_at < MOST_LOOKED_AT {
        let chunk = state.staging.ready(after, CHUNK as usize);
        if chunk.is_empty() {
            return named(state, ResourcePage { now, resources, next: None }).await;
        }
        looked_at += chunk.len();
        for listed in chunk {
            if resources.len() == filter.limit || owner_bytes > MOST_OWNER_BYTES {
                let next = after.map(|id| id.to_string());
                return named(state, ResourcePage { now, resources, next }).await;
            }
            after = Some(listed.id);
            if let Some(decision) = passes(state, filter, &listed) {
                owner_bytes += listed.owner.memory_bytes();
                resources.push(describe::listed(&listed, decision));
            }
        }
        tokio::task::yield_now().await;
    }
    named(state, ResourcePage { now, resources, next: after.map(|id| id.to_string()) }).await
}

/// Adds the names of the uploaders, which are not in memory.
async fn named(state: &AppState, mut page: ResourcePage) -> Result<ResourcePage, LedgerError> {
    for row in &mut page.resources {
        let Ok(id) = ResourceId::parse(&row.resource_id) else { continue };
        match state.staging.look_up(id).await {
            // It was listed a moment ago, as it could be read.
            Err(LedgerError::Unreadable(_)) => {}
            found => {
                row.uploaded_by =
                    found?.and_then(Resource::into_ready).and_then(|row| row.data.arrival.uploaded_by);
            }
        }
    }
    Ok(page)
}

async fn deleted_page(
    state: &AppState,
    filter: &Filter,
    now: Timestamp,
) -> Result<ResourcePage, LedgerError> {
    let (mut resources, mut after, mut looked_at) = (Vec::new(), filter.after, 0);
    while looked_at < MOST_LOOKED_AT {
        let chunk = state.staging.tombstones(after, CHUNK).await?;
        looked_at += chunk.rows.len();
        for tombstone in chunk.rows.iter().flatten() {
            if resources.len() == filter.limit {
                return Ok(ResourcePage { now, resources, next: after.map(|id| id.to_string()) });
            }
            after = Some(tombstone.id);
            resources.extend(describe::staged(tombstone).filter(|row| filter.matches_deleted(row)));
        }
        if chunk.next.is_none() {
            return Ok(ResourcePage { now, resources, next: None });
        }
        after = chunk.next;
    }
    Ok(ResourcePage { now, resources, next: after.map(|id| id.to_string()) })
}

/// The decision of a sweep about this resource; `None` if the list does not have it.
fn passes(state: &AppState, filter: &Filter, listed: &Listed) -> Option<Decision> {
    let decision = || state.judge.judge(listed.id, &listed.owner, &listed.life);
    filter.matches(listed).then(decision).filter(|decision| filter.has(decision))
}
