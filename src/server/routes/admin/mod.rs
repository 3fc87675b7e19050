//! What an admin can do: see everything that is staged, free room by hand, sweep now.
//!
//! Only for whoever shows an admin token, and only beside the other operational routes.

mod access;
mod describe;
mod filter;
mod list;
mod status;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{ConnectInfo, Path, Query, State};
use std::net::SocketAddr;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ledger::LedgerError;
use crate::protocol::admin::{Removal, ResourceDetails, SweepReport};
use crate::protocol::problem::{Code, Problem};
use crate::resource::{DeletionReason, Resource, ResourceId, State as LifeState};
use crate::server::error::ApiError;
use crate::server::state::AppState;
use crate::staging::AccessError;
use access::Administrator;

/// Pairs as they come, because a label may be repeated.
type QueryPairs = Result<Query<Vec<(String, String)>>, QueryRejection>;

/// The routes, with their documentation.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list::list))
        .routes(routes!(show, remove))
        .routes(routes!(sweep))
        .routes(routes!(status::status))
        .routes(routes!(status::accept_cluster))
}

/// All that is known of one resource, or of its tombstone.
#[utoipa::path(
    get, path = "/admin/v1/resources/{id}", tag = "admin", security(("bearer" = [])),
    params(("id" = String, Path, description = "the resource's id")),
    responses(
        (status = 200, description = "what is known", body = ResourceDetails),
        (status = 401, description = "unauthorized: no admin token, or the wrong one", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "admin-off: this server has no --admin-token-file", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "not-found", body = Problem, content_type = "application/problem+json"),
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

/// Delete a resource, whoever may need it. One that is gone already is fine.
#[utoipa::path(
    delete, path = "/admin/v1/resources/{id}", tag = "admin", security(("bearer" = [])),
    params(
        ("id" = String, Path, description = "the resource's id"),
        ("unused" = Option<bool>, Query, description = "true: only if nobody has downloaded it"),
    ),
    responses(
        (status = 200, description = "it is gone, now or before", body = Removal),
        (status = 400, description = "invalid-parameter", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "unauthorized: no admin token, or the wrong one", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "admin-off: this server has no --admin-token-file", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "not-found", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "in-use: with unused=true, and somebody has downloaded it", body = Problem, content_type = "application/problem+json"),
        (status = 507, description = "insufficient-storage: the disk is full, and the deletion cannot be written down", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn remove(
    _: Administrator,
    State(state): State<AppState>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    path: Result<Path<String>, PathRejection>,
    query: QueryPairs,
) -> Result<Json<Removal>, ApiError> {
    let only_unused = filter::only_unused(&filter::pairs(query)?)?;
    let id = parsed(path)?;
    let resource = match state.staging.look_up(id).await {
        Err(LedgerError::Unreadable(_)) if only_unused => return Err(in_use(id)),
        Err(LedgerError::Unreadable(_)) => return remove_unreadable(&state, id, peer).await.map(Json),
        found => known(found)?,
    };
    let is_there = resource.state == LifeState::Ready;
    if only_unused && is_there {
        if !state.staging.remove_unused(&resource).await? {
            return Err(in_use(id));
        }
    } else if resource.state != LifeState::Deleted {
        state.staging.remove(id).await?;
    }
    if is_there {
        log_removal(id, peer);
    }
    let (before, bundle) = (resource.deleted, resource.bundle);
    let size_of_old = before.as_ref().map_or(0, |tombstone| tombstone.size_bytes);
    Ok(Json(Removal {
        resource_id: id.to_string(),
        removed: is_there,
        size_bytes: bundle.map_or(size_of_old, |bundle| bundle.size_bytes),
        deletion_reason: before.as_ref().map(|tombstone| tombstone.reason.to_string()),
        deleted_at: before.map(|tombstone| tombstone.at),
    }))
}

/// What this version cannot read can only go whole, and what it was is not known.
async fn remove_unreadable(state: &AppState, id: ResourceId, peer: SocketAddr) -> Result<Removal, ApiError> {
    if !state.staging.remove(id).await? {
        return Err(unknown());
    }
    log_removal(id, peer);
    Ok(Removal {
        resource_id: id.to_string(),
        removed: true,
        size_bytes: 0,
        deletion_reason: None,
        deleted_at: None,
    })
}

fn log_removal(id: ResourceId, peer: SocketAddr) {
    let reason = DeletionReason::Removed;
    tracing::info!(resource_id = %id, %reason, peer = %peer.ip(), "removed by the admin");
}

/// Sweep now, and say what that did. Answers when the sweep is over.
#[utoipa::path(
    post, path = "/admin/v1/sweeps", tag = "admin", security(("bearer" = [])),
    responses(
        (status = 200, description = "what it did", body = SweepReport),
        (status = 401, description = "unauthorized: no admin token, or the wrong one", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "admin-off: this server has no --admin-token-file", body = Problem, content_type = "application/problem+json"),
        (status = 500, description = "internal: the sweep failed", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "starting, shutting-down", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn sweep(Administrator(admin): Administrator) -> Result<Json<SweepReport>, ApiError> {
    let swept = admin.cleaner.sweep().await.map_err(|_| ApiError::shutting_down())?;
    Ok(Json(describe::report(&swept?)))
}

fn parsed(path: Result<Path<String>, PathRejection>) -> Result<ResourceId, ApiError> {
    path.ok().and_then(|Path(id)| ResourceId::parse(&id).ok()).ok_or_else(unknown)
}

/// One whose upload is not finished is nobody's business yet.
fn known(found: Result<Option<Resource>, LedgerError>) -> Result<Resource, ApiError> {
    let resource = found.map_err(AccessError::from)?;
    resource.filter(|resource| resource.state != LifeState::Pending).ok_or_else(unknown)
}

fn unknown() -> ApiError {
    ApiError::new(
        Code::NotFound,
        "there is no resource with this id, and none that was deleted in the last seven days and is remembered: check the id",
    )
}

fn in_use(id: ResourceId) -> ApiError {
    ApiError::new(
        Code::InUse,
        format!(
            "resource {id} is in use since it was last looked at: remove it by its id alone if it is to go all the same"
        ),
    )
}
