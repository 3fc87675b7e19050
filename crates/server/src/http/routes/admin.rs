//! Administration: lists what is staged, removes resources, and sweeps now.
//!
//! These routes need an admin token, and are on the listener of the other operational routes.

mod access;
mod describe;
mod filter;
mod list;
mod status;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use tracing::field::display;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::http::error::ApiError;
use crate::http::proxies::Sender;
use crate::http::routes::QueryPairs;
use crate::http::state::AppState;
use access::Administrator;
use cloakroom_core::protocol::admin::{Removal, ResourceDetails, SweepReport};
use cloakroom_core::protocol::problem::Code;
use cloakroom_core::resource::{DeletionReason, Resource, ResourceId, State as LifeState};
use cloakroom_storage::AccessError;
use cloakroom_storage::ledger::{LedgerError, UnreadableRow};

/// The routes with their OpenAPI descriptions.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list::list))
        .routes(routes!(show, remove))
        .routes(routes!(sweep))
        .routes(routes!(status::status))
        .routes(routes!(status::accept_cluster))
        .routes(routes!(status::resume_deletions))
}

/// Get all that is known of one resource, or of its tombstone.
#[utoipa::path(
    get, path = "/admin/v1/resources/{id}", operation_id = "getResource", tag = "admin", security(("adminToken" = [])),
    params(("id" = String, Path, description = "the resource's id")),
    responses(
        (status = 200, description = "what is known", body = ResourceDetails),
        (status = 410, description = "gone: deleted, but time and reason cannot be read"),
        (status = 401, description = "unauthorized: no admin token, or the wrong one"),
        (status = 403, description = "admin-off: this server has no --admin-token-file"),
        (status = 404, description = "not-found"),
        (status = 500, description = "internal: this version of the server cannot read it"),
        (status = 503, description = "overloaded"),
    )
)]
async fn show(
    _: Administrator,
    State(state): State<AppState>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<ResourceDetails>, ApiError> {
    let resource = known(state.staging.look_up(parsed(path)?).await)?;
    let now = state.staging.clock().now();
    describe::details(resource, &state.judge, now).map(Json).ok_or_else(unknown)
}

/// Delete a resource, whether it is in use or not. If it is deleted already, that is no error.
#[utoipa::path(
    delete, path = "/admin/v1/resources/{id}", operation_id = "removeResource", tag = "admin", security(("adminToken" = [])),
    params(
        ("id" = String, Path, description = "the resource's id"),
        ("unused" = Option<bool>, Query, description = "true: only if it was never downloaded"),
    ),
    responses(
        (status = 200, description = "it is gone, now or before", body = Removal),
        (status = 400, description = "invalid-parameter"),
        (status = 401, description = "unauthorized: no admin token, or the wrong one"),
        (status = 403, description = "admin-off: this server has no --admin-token-file"),
        (status = 404, description = "not-found"),
        (status = 409, description = "in-use: with unused=true, and it was downloaded"),
        (status = 503, description = "overloaded, not-writable: the storage is read-only, or fails"),
        (status = 507, description = "insufficient-storage: the disk is full, so the deletion cannot be recorded"),
    )
)]
async fn remove(
    admin: Administrator,
    State(state): State<AppState>,
    path: Result<Path<String>, PathRejection>,
    query: QueryPairs,
) -> Result<Json<Removal>, ApiError> {
    let only_unused = filter::only_unused(&filter::pairs(query)?)?;
    let id = parsed(path)?;
    let resource = match state.staging.look_up(id).await {
        Err(LedgerError::Unreadable(row)) => {
            return remove_unreadable(&state, row, only_unused, &admin).await.map(Json);
        }
        found => known(found)?,
    };
    let (before, size_bytes) = (resource.ending(), describe::size_bytes(&resource));
    let is_gone = resource.state() == LifeState::Deleted;
    let ready = resource.into_ready();
    let is_there = ready.is_some();
    if let Some(ready) = ready.filter(|_| only_unused) {
        if !state.staging.remove_unused(&ready).await? {
            return Err(in_use(id));
        }
    } else if !is_gone {
        state.staging.remove(id).await?;
    }
    if is_there {
        log_removal(id, &admin);
    }
    Ok(Json(Removal {
        resource_id: id.to_string(),
        removed: is_there,
        size_bytes,
        deletion_reason: before.map(|ending| ending.reason.into()),
        deleted_at: before.map(|ending| ending.at),
    }))
}

/// Removes a row that this version cannot read. Whether it is used is unknown, so it is not removed if only unused
/// resources may be.
async fn remove_unreadable(
    state: &AppState,
    row: UnreadableRow,
    only_unused: bool,
    admin: &Administrator,
) -> Result<Removal, ApiError> {
    let is_there = row.state != Some(LifeState::Deleted);
    if is_there && only_unused {
        return Err(in_use(row.id));
    }
    if is_there {
        match state.staging.remove(row.id).await {
            Ok(true) => {}
            Ok(false) | Err(AccessError::Ledger(LedgerError::Refused(_))) => return Err(unchangeable(&row)),
            Err(error) => return Err(error.into()),
        }
        log_removal(row.id, admin);
    }
    Ok(Removal {
        resource_id: row.id.to_string(),
        removed: is_there,
        size_bytes: row.size_bytes,
        deletion_reason: None,
        deleted_at: None,
    })
}

fn log_removal(id: ResourceId, admin: &Administrator) {
    let Administrator { name: by, sender: Sender { address: peer, proxy }, .. } = admin;
    let (reason, proxy) = (DeletionReason::Removed, proxy.map(display));
    tracing::info!(resource_id = %id, %reason, by = by.as_deref(), %peer, proxy, "removed by the admin");
}

/// Sweep now, and report what the sweep did. The answer comes when the sweep is over.
#[utoipa::path(
    post, path = "/admin/v1/sweeps", operation_id = "sweep", tag = "admin", security(("adminToken" = [])),
    params(
        ("strays" = Option<bool>, Query, description = "true: also remove the bundles without a resource that the status counts, whatever their age"),
        ("releaseHeld" = Option<String>, Query, description = "end the hour of the guard against mass deletion for this namespace, or for all"),
    ),
    responses(
        (status = 200, description = "what it did", body = SweepReport),
        (status = 400, description = "invalid-parameter"),
        (status = 401, description = "unauthorized: no admin token, or the wrong one"),
        (status = 403, description = "admin-off: this server has no --admin-token-file"),
        (status = 500, description = "internal: the sweep failed"),
        (status = 503, description = "overloaded, not-writable"),
    )
)]
async fn sweep(
    Administrator { admin, .. }: Administrator,
    query: QueryPairs,
) -> Result<Json<SweepReport>, ApiError> {
    let request = filter::sweep_request(&filter::pairs(query)?)?;
    let swept = admin.cleaner.sweep(request).await.map_err(|_| ApiError::shutting_down())?;
    Ok(Json(describe::report(&swept?)))
}

fn parsed(path: Result<Path<String>, PathRejection>) -> Result<ResourceId, ApiError> {
    path.ok().and_then(|Path(id)| ResourceId::parse(&id).ok()).ok_or_else(unknown)
}

/// The resource of a lookup. A resource whose upload is not finished counts as unknown.
fn known(found: Result<Option<Resource>, LedgerError>) -> Result<Resource, ApiError> {
    let resource = found.map_err(AccessError::from)?;
    resource.filter(|resource| resource.state() != LifeState::Pending).ok_or_else(unknown)
}

fn unknown() -> ApiError {
    ApiError::new(
        Code::NotFound,
        "there is no resource with this id, and none that was deleted in the last seven days and is remembered: check the id",
    )
}

fn unchangeable(UnreadableRow { id, column, .. }: &UnreadableRow) -> ApiError {
    ApiError::new(
        Code::Internal,
        format!(
            "the ledger's row of resource {id} is too damaged to be changed ({column}), so the resource stays: put an earlier ledger \
             back (docs/run.md: a lost or damaged ledger)"
        ),
    )
}

fn in_use(id: ResourceId) -> ApiError {
    ApiError::new(
        Code::InUse,
        format!("resource {id} may be in use: to remove it in any case, remove it by its id alone"),
    )
}
