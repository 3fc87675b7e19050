//! The routes of v1, cloakroom's own protocol.

mod download;
mod parameters;
mod read_keys;
mod resource;
mod splice;
mod upload;

use axum::Json;
use axum::extract::State;
use cloakroom_core::time::format_duration;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::http::state::{AppState, PublicUrl};
use cloakroom_core::protocol::v1::ServerInfo;

pub use parameters::Parameters;

/// The routes with their OpenAPI descriptions.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(info))
        .routes(routes!(upload::post, upload::put))
        .routes(routes!(upload::post_slash, upload::put_slash))
        .routes(routes!(upload::put_named, download::get, download::head, resource::delete))
        .routes(routes!(download::get_named, download::head_named))
        .routes(routes!(read_keys::post, read_keys::delete))
        .routes(routes!(resource::metadata))
        .routes(routes!(upload::post_spliced))
}

/// Get the server's version, its addresses, the image with which init-containers fetch its bundles, what uploads need, and the
/// limits of bundles and keys.
#[utoipa::path(
    get, path = "/api/v1", operation_id = "getServerInfo", tag = "v1",
    responses((status = 200, description = "what this server is", body = ServerInfo))
)]
async fn info(State(state): State<AppState>) -> Json<ServerInfo> {
    let settings = &state.settings;
    Json(ServerInfo {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        fetch_image: settings.fetch_image.clone(),
        public_url: settings.public_url.as_ref().map(PublicUrl::to_string),
        internal_url: settings.internal_url.as_ref().map(PublicUrl::to_string),
        upload_auth: Some(settings.upload_auth.kind().into()),
        max_resource_size: Some(state.staging.limits().capacity.max_resource_size),
        max_proxied_size: Some(settings.max_proxied_size),
        max_key_ttl: Some(format_duration(settings.lifetimes.max_key_ttl)),
    })
}
