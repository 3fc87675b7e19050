//! The original's protocol, for clients that were written against it.

mod download;
mod form;
mod upload;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::http::state::AppState;

/// The routes, with their documentation.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(upload::post))
        .routes(routes!(upload::post_slash))
        .routes(routes!(download::get, download::head))
        .routes(routes!(ping))
        .routes(routes!(ping_without_version))
}

/// Are you there?
#[utoipa::path(get, path = "/api/v0/ping", operation_id = "pingV0", tag = "v0", responses((status = 200, description = "pong", body = String, content_type = "text/plain")))]
async fn ping() -> &'static str {
    "pong"
}

/// Are you there? Where the original's own client asks.
#[utoipa::path(get, path = "/api/ping", operation_id = "ping", tag = "v0", responses((status = 200, description = "pong", body = String, content_type = "text/plain")))]
async fn ping_without_version() -> &'static str {
    "pong"
}
