//! Downloads in v0: the secret stands alone in `Authorization`. An unknown id is `404`, a wrong secret is `401`.

use std::net::SocketAddr;

use axum::extract::rejection::PathRejection;
use axum::extract::{ConnectInfo, Path, State};
use axum::http::{HeaderMap, Method};
use axum::response::Response;

use crate::http::auth::credentials;
use crate::http::error::ApiError;
use crate::http::measure::not_sent;
use crate::http::routes::described::{BundleBody, Conditions, PartOfBundle};
use crate::http::routes::send::send;
use crate::http::state::AppState;
use cloakroom_core::resource::{Ready, Resource, ResourceId, ResourceSecret};
use cloakroom_storage::AccessError;

/// Download a bundle: the whole, or the part that Range names.
#[utoipa::path(
    get, path = "/api/v0/resources/{id}", operation_id = "downloadBundleV0", tag = "v0",
    security(("bareResourceSecret" = []), ("resourceSecret" = [])),
    params(("id" = String, Path, description = "the resource's id"), PartOfBundle, Conditions),
    responses(
        (status = 200, description = "the bundle, byte for byte as it was uploaded", body = inline(BundleBody), content_type = "application/octet-stream"),
        (status = 206, description = "a part of it", body = inline(BundleBody), content_type = "application/octet-stream"),
        (status = 304, description = "the client has it"),
        (status = 401, description = "unauthorized: no secret, or the wrong one"),
        (status = 404, description = "not-found, gone"),
        (status = 412, description = "precondition-failed"),
        (status = 416, description = "range-not-satisfiable"),
        (status = 503, description = "overloaded"),
    )
)]
pub(super) async fn get(
    State(state): State<AppState>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let answer = async {
        let resource = find(&state, path, &headers).await?;
        send(&state, resource, peer, &Method::GET, &headers, ApiError::for_v0).await
    };
    answer.await.inspect_err(|error| not_sent(&state.metrics, error))
}

/// Get what a download would answer, without the bytes. This does not count as a use.
#[utoipa::path(
    head, path = "/api/v0/resources/{id}", operation_id = "headBundleV0", tag = "v0",
    security(("bareResourceSecret" = []), ("resourceSecret" = [])),
    params(("id" = String, Path, description = "the resource's id"), Conditions),
    responses(
        (status = 200, description = "it is there"),
        (status = 304, description = "the client has it"),
        (status = 401, description = "no secret, or the wrong one"),
        (status = 404, description = "no such resource, or deleted"),
        (status = 412, description = "If-Match names another bundle"),
        (status = 503, description = "overloaded"),
    )
)]
pub(super) async fn head(
    State(state): State<AppState>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let resource = find(&state, path, &headers).await?;
    send(&state, resource, peer, &Method::HEAD, &headers, ApiError::for_v0).await
}

async fn find(
    state: &AppState,
    path: Result<Path<String>, PathRejection>,
    headers: &HeaderMap,
) -> Result<Resource<Ready>, ApiError> {
    let id = path.ok().and_then(|Path(id)| ResourceId::parse(&id).ok()).ok_or(AccessError::NotFound)?;
    // A missing secret counts as a wrong one. So an unknown id gets `404` even without a secret, as with kubespark.
    let secret = credentials(headers)?;
    let secret = secret.unwrap_or_else(|| ResourceSecret::from_text(""));
    state.staging.find(id, &secret).await.map_err(ApiError::for_v0)
}
