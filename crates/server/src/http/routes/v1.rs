//! The routes of v1, cloakroom's own protocol.

mod download;
mod info;
mod parameters;
mod read_keys;
mod resource;
mod splice;
mod upload;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::http::state::AppState;

pub use parameters::Parameters;

/// The routes with their OpenAPI descriptions.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(info::get))
        .routes(routes!(upload::post, upload::put))
        .routes(routes!(upload::post_slash, upload::put_slash))
        .routes(routes!(upload::put_named, download::get, download::head, resource::delete))
        .routes(routes!(download::get_named, download::head_named))
        .routes(routes!(read_keys::post, read_keys::delete))
        .routes(routes!(resource::metadata))
        .routes(routes!(upload::post_spliced))
}
