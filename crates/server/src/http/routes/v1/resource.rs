//! The other operations of a ticket: metadata and release.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};

use crate::cleaner::{Decision, Judge};
use crate::http::auth::credentials;
use crate::http::error::ApiError;
use crate::http::state::AppState;
use cloakroom_core::protocol::digest;
use cloakroom_core::protocol::v1::Metadata;
use cloakroom_core::resource::{Ready, Resource, ResourceId, ResourceSecret, State as LifeState};
use cloakroom_storage::AccessError;

/// The ticket of a request. A missing secret is `401`. A malformed id is answered like an unknown one.
pub(super) fn ticket(
    id: Option<String>,
    headers: &HeaderMap,
) -> Result<(ResourceId, ResourceSecret), ApiError> {
    let secret = credentials(headers)?.ok_or_else(|| {
        ApiError::unauthorized("show the ticket: send its secret as “Authorization: Bearer SECRET”")
    })?;
    let id = id.and_then(|id| ResourceId::parse(&id).ok());
    Ok((id.ok_or(AccessError::NotFound)?, secret))
}

/// Get what the server knows of a resource. This does not count as a use.
#[utoipa::path(
    get, path = "/api/v1/resources/{id}/metadata", operation_id = "getMetadata", tag = "v1", security(("resourceSecret" = [])),
    params(("id" = String, Path, description = "the resource's id")),
    responses(
        (status = 200, description = "what is known", body = Metadata),
        (status = 401, description = "unauthorized: no ticket"),
        (status = 404, description = "not-found"),
        (status = 410, description = "gone"),
        (status = 503, description = "overloaded"),
    )
)]
pub(super) async fn metadata(
    State(state): State<AppState>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Json<Metadata>, ApiError> {
    let (id, secret) = ticket(path.ok().map(|Path(id)| id), &headers)?;
    let resource = state.staging.find(id, &secret).await?;
    Ok(Json(describe(&resource, &state.judge)))
}

fn describe(resource: &Resource<Ready>, judge: &Judge) -> Metadata {
    let Ready { arrival, owner, bundle, history, .. } = &resource.data;
    let kept = match judge.judge(resource.id, owner, &resource.life()) {
        Decision::Keep(kept) => Some(kept),
        Decision::Delete(_) => None,
    };
    Metadata {
        resource_id: resource.id.to_string(),
        state: LifeState::Ready.into(),
        size_bytes: bundle.size_bytes,
        sha256: digest::to_hex(&bundle.sha256),
        owner: owner.into(),
        file_name: arrival.file_name.as_ref().map(ToString::to_string),
        created_at: resource.created_at,
        first_used_at: history.first_used_at,
        last_used_at: history.last_used_at,
        expires_at: kept.and_then(|kept| kept.until),
        kept_because: kept.map(|kept| kept.why.into()),
        owner_seen_at: history.owner_history.seen_at,
        owner_absent_since: history.owner_history.absent_since,
        owner_finished_since: history.owner_history.finished_since,
    }
}

/// Release a resource now. To repeat it is no error.
#[utoipa::path(
    delete, path = "/api/v1/resources/{id}", operation_id = "releaseBundle", tag = "v1", security(("resourceSecret" = [])),
    params(("id" = String, Path, description = "the resource's id")),
    responses(
        (status = 204, description = "released, now or before"),
        (status = 401, description = "unauthorized: no ticket"),
        (status = 404, description = "not-found"),
        (status = 503, description = "overloaded, not-writable: the storage is read-only, or fails"),
        (status = 507, description = "insufficient-storage: the disk is full, so the deletion cannot be recorded"),
    )
)]
pub(super) async fn delete(
    State(state): State<AppState>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    let (id, secret) = ticket(path.ok().map(|Path(id)| id), &headers)?;
    state.staging.release(id, &secret).await?;
    Ok(StatusCode::NO_CONTENT)
}
