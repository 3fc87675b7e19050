//! Downloads in v1, by a ticket or by a read key, at the resource or under any name below it: tools look at the ending of a URL.

use std::net::SocketAddr;

use axum::extract::rejection::PathRejection;
use axum::extract::{ConnectInfo, Path, State};
use axum::http::{HeaderMap, Method};
use axum::response::Response;

use super::read_keys::shown_key;
use super::resource::ticket;
use crate::http::error::ApiError;
use crate::http::measure::not_sent;
use crate::http::routes::QueryPairs;
use crate::http::routes::described::{BundleBody, Conditions, PartOfBundle, ReadKeyParameter};
use crate::http::routes::send::send;
use crate::http::state::AppState;
use cloakroom_core::resource::ResourceId;
use cloakroom_storage::AccessError;

/// The parts of a request for a bundle that say who may have it.
struct Request {
    /// Its id; `None` if it cannot be read, which is answered as an unknown one.
    id: Option<String>,
    query: QueryPairs,
    headers: HeaderMap,
}

async fn answer(
    state: &AppState,
    peer: SocketAddr,
    method: Method,
    request: Request,
) -> Result<Response, ApiError> {
    let Request { id, query, headers } = request;
    let resource = if let Some(key) = shown_key(query, &headers)? {
        let are_on = !state.settings.lifetimes.max_key_ttl.is_zero();
        let id =
            id.filter(|_| are_on).and_then(|id| ResourceId::parse(&id).ok()).ok_or(AccessError::WrongKey)?;
        state.staging.find_by_key(id, &key).await?
    } else {
        let (id, secret) = ticket(id, &headers)?;
        state.staging.find(id, &secret).await?
    };
    send(state, resource, peer, &method, &headers, ApiError::from).await
}

macro_rules! get_handler {
    ($(#[$doc:meta])* $name:ident, $path:literal, $id:literal, $($params:tt)+) => {
        $(#[$doc])*
        #[utoipa::path(
            get, path = $path, operation_id = $id, tag = "v1", security(("resourceSecret" = []), ()),
            params($($params)+, ReadKeyParameter, PartOfBundle, Conditions),
            responses(
                (status = 200, description = "the bundle", body = inline(BundleBody), content_type = "application/octet-stream",
                 headers(("etag" = String), ("repr-digest" = String), ("accept-ranges" = String), ("content-disposition" = String))),
                (status = 206, description = "a part of it", body = inline(BundleBody), content_type = "application/octet-stream", headers(("content-range" = String))),
                (status = 304, description = "the client has it", headers(("etag" = String))),
                (status = 400, description = "invalid-parameter: a read key that is there twice, or that comes through Kubernetes' API server"),
                (status = 401, description = "unauthorized: no ticket"),
                (status = 404, description = "not-found: no such resource for this ticket or key"),
                (status = 410, description = "gone: deleted, with reason and time"),
                (status = 412, description = "precondition-failed"),
                (status = 416, description = "range-not-satisfiable", headers(("content-range" = String, description = "the length of the bundle"))),
                (status = 503, description = "overloaded"),
            )
        )]
        pub(super) async fn $name(
            State(state): State<AppState>,
            ConnectInfo(peer): ConnectInfo<SocketAddr>,
            path: Result<Path<PathParts>, PathRejection>,
            query: QueryPairs,
            headers: HeaderMap,
        ) -> Result<Response, ApiError> {
            let request = Request { id: id(path), query, headers };
            let answer = answer(&state, peer, Method::GET, request).await;
            answer.inspect_err(|error| not_sent(&state.metrics, error))
        }
    };
}

macro_rules! head_handler {
    ($(#[$doc:meta])* $name:ident, $path:literal, $id:literal, $($params:tt)+) => {
        $(#[$doc])*
        #[utoipa::path(
            head, path = $path, operation_id = $id, tag = "v1", security(("resourceSecret" = []), ()),
            params($($params)+, ReadKeyParameter, Conditions),
            responses(
                (status = 200, description = "it is there", headers(("content-length" = u64), ("etag" = String), ("repr-digest" = String))),
                (status = 304, description = "the client has it"),
                (status = 400, description = "a read key that is there twice, or that comes through Kubernetes' API server"),
                (status = 401, description = "no ticket"),
                (status = 404, description = "no such resource for this ticket or key"),
                (status = 410, description = "deleted"),
                (status = 412, description = "it is another bundle than If-Match names"),
                (status = 503, description = "overloaded"),
            )
        )]
        pub(super) async fn $name(
            State(state): State<AppState>,
            ConnectInfo(peer): ConnectInfo<SocketAddr>,
            path: Result<Path<PathParts>, PathRejection>,
            query: QueryPairs,
            headers: HeaderMap,
        ) -> Result<Response, ApiError> {
            answer(&state, peer, Method::HEAD, Request { id: id(path), query, headers }).await
        }
    };
}

/// The id, and the name if there is one. What the name is does not matter.
type PathParts = Vec<String>;

fn id(path: Result<Path<PathParts>, PathRejection>) -> Option<String> {
    path.ok()?.0.into_iter().next()
}

get_handler!(
    /// Download a bundle: the whole, or the part that Range names.
    get, "/api/v1/resources/{id}", "downloadBundle", ("id" = String, Path, description = "the resource's id")
);
head_handler!(
    /// Get what a download would answer, without the bytes. This does not count as a use.
    head, "/api/v1/resources/{id}", "headBundle", ("id" = String, Path, description = "the resource's id")
);
get_handler!(
    /// Download a bundle under any name, for tools that look at the ending of a URL.
    get_named, "/api/v1/resources/{id}/content/{name}", "downloadNamedBundle",
    ("id" = String, Path, description = "the resource's id"), ("name" = String, Path, description = "any name")
);
head_handler!(
    /// Get what a download under any name would answer, without the bytes. This does not count as a use.
    head_named, "/api/v1/resources/{id}/content/{name}", "headNamedBundle",
    ("id" = String, Path, description = "the resource's id"), ("name" = String, Path, description = "any name")
);
