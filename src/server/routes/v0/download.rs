//! The way out: the bare secret in `Authorization`, `404` for an unknown id, `401` for a wrong secret.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Method};
use axum::response::Response;

use crate::protocol::problem::Problem;
use crate::resource::{ResourceId, ResourceSecret};
use crate::server::auth::credentials;
use crate::server::error::ApiError;
use crate::server::routes::v1::{Ranges, send};
use crate::server::state::AppState;
use crate::staging::AccessError;

/// Download a bundle.
#[utoipa::path(
    get, path = "/api/v0/resources/{id}", tag = "v0",
    params(
        ("id" = String, Path, description = "the resource's id"),
        ("authorization" = String, Header, description = "the resource's secret, bare or after Bearer"),
    ),
    responses(
        (status = 200, description = "the bundle, byte for byte as it was uploaded", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 401, description = "unauthorized: no secret, or the wrong one", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "not-found, gone", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn get(
    State(state): State<AppState>,
    method: Method,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let id = path.ok().and_then(|Path(id)| ResourceId::parse(&id).ok()).ok_or(AccessError::NotFound)?;
    // No secret is a wrong one: whether the id is known is answered first, as the original did.
    let secret = credentials(&headers).unwrap_or_else(|| ResourceSecret::from_text(""));
    let download = state.staging.open_download(id, &secret).await.map_err(ApiError::for_v0)?;
    send(&state.staging, download, &method, &headers, Ranges::Honoured).await
}
