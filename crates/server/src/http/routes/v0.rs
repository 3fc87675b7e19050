//! Kubespark's protocol, for clients that were written for it.

mod download;
mod form;
mod upload;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::http::state::AppState;

/// The routes with their OpenAPI descriptions.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(upload::post))
        .routes(routes!(upload::post_slash))
        .routes(routes!(download::get, download::head))
        .routes(routes!(ping))
        .routes(routes!(ping_without_version))
}

/// Check that the server answers.
#[utoipa::path(get, path = "/api/v0/ping", operation_id = "pingV0", tag = "v0", responses((status = 200, description = "pong", body = String, content_type = "text/plain")))]
async fn ping() -> &'static str {
    "pong"
}

/// Check that the server answers, at the path that kubespark's own client uses.
#[utoipa::path(get, path = "/api/ping", operation_id = "ping", tag = "v0", responses((status = 200, description = "pong", body = String, content_type = "text/plain")))]
async fn ping_without_version() -> &'static str {
    "pong"
}
