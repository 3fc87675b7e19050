//! Downloads in v1.

use std::net::SocketAddr;

use axum::extract::rejection::PathRejection;
use axum::extract::{ConnectInfo, Path, State};
use axum::http::{HeaderMap, Method};
use axum::response::Response;

use super::resource::ticket;
use crate::http::error::ApiError;
use crate::http::measure::not_sent;
use crate::http::routes::described::{BundleBody, Conditions, PartOfBundle};
use crate::http::routes::send::send;
use crate::http::state::AppState;

/// Download a bundle: the whole, or the part that Range names.
#[utoipa::path(
    get, path = "/api/v1/resources/{id}", operation_id = "downloadBundle", tag = "v1", security(("resourceSecret" = [])),
    params(("id" = String, Path, description = "the resource's id"), PartOfBundle, Conditions),
    responses(
        (status = 200, description = "the bundle", body = inline(BundleBody), content_type = "application/octet-stream",
         headers(("etag" = String), ("repr-digest" = String), ("accept-ranges" = String), ("content-disposition" = String))),
        (status = 206, description = "a part of it", body = inline(BundleBody), content_type = "application/octet-stream", headers(("content-range" = String))),
        (status = 304, description = "the client has it", headers(("etag" = String))),
        (status = 401, description = "unauthorized: no ticket"),
        (status = 404, description = "not-found: no such resource for this ticket"),
        (status = 410, description = "gone: deleted, with reason and time"),
        (status = 412, description = "precondition-failed"),
        (status = 416, description = "range-not-satisfiable", headers(("content-range" = String, description = "the length of the bundle"))),
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
        let (id, secret) = ticket(path, &headers)?;
        let resource = state.staging.find(id, &secret).await?;
        send(&state, resource, peer, &Method::GET, &headers, ApiError::from).await
    };
    answer.await.inspect_err(|error| not_sent(&state.metrics, error))
}

/// Get what a download would answer, without the bytes. This does not count as a use.
#[utoipa::path(
    head, path = "/api/v1/resources/{id}", operation_id = "headBundle", tag = "v1", security(("resourceSecret" = [])),
    params(("id" = String, Path, description = "the resource's id"), Conditions),
    responses(
        (status = 200, description = "it is there", headers(("content-length" = u64), ("etag" = String), ("repr-digest" = String))),
        (status = 304, description = "the client has it"),
        (status = 401, description = "no ticket"),
        (status = 404, description = "no such resource for this ticket"),
        (status = 410, description = "deleted"),
        (status = 412, description = "it is another bundle than If-Match names"),
        (status = 503, description = "overloaded"),
    )
)]
pub(super) async fn head(
    State(state): State<AppState>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let (id, secret) = ticket(path, &headers)?;
    let resource = state.staging.find(id, &secret).await?;
    send(&state, resource, peer, &Method::HEAD, &headers, ApiError::from).await
}
