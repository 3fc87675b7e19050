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
    let resource = find(&state, path).await?;
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
    let resource = find(&state, path).await?;
    let is_there = resource.state == LifeState::Ready;
    if only_unused && is_there {
        if !state.staging.remove_unused(&resource).await? {
            return Err(in_use(resource.id));
        }
    } else if resource.state != LifeState::Deleted {
        state.staging.remove(&resource).await?;
    }
    if is_there {
        let reason = DeletionReason::Removed;
        tracing::info!(resource_id = %resource.id, %reason, peer = %peer.ip(), "removed by the admin");
    }
    let before = resource.deleted;
    Ok(Json(Removal {
        resource_id: resource.id.to_string(),
        removed: is_there,
        size_bytes: resource.bundle.map_or(0, |bundle| bundle.size_bytes),
        deletion_reason: before.map(|(_, reason)| reason.to_string()),
        deleted_at: before.map(|(at, _)| at),
    }))
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

/// One whose upload is not finished is nobody's business yet.
async fn find(state: &AppState, path: Result<Path<String>, PathRejection>) -> Result<Resource, ApiError> {
    let id = path.ok().and_then(|Path(id)| ResourceId::parse(&id).ok()).ok_or_else(unknown)?;
    let resource = state.staging.look_up(id).await.map_err(AccessError::from)?;
    resource.filter(|resource| resource.state != LifeState::Pending).ok_or_else(unknown)
}

fn unknown() -> ApiError {
    ApiError::new(
        Code::NotFound,
        "there is no resource with this id, and none that was deleted in the last seven days: check the id",
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
