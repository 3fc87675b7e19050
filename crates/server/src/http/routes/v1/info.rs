//! What the server tells any client about itself.

use axum::Json;
use axum::extract::State;

use crate::http::state::AppState;
use cloakroom_core::protocol::v1::ServerInfo;

/// Get the server's version, the image with which init-containers fetch its bundles, and the size of the largest bundle.
#[utoipa::path(
    get, path = "/api/v1", operation_id = "getServerInfo", tag = "v1",
    responses((status = 200, description = "what this server is", body = ServerInfo))
)]
pub(super) async fn get(State(state): State<AppState>) -> Json<ServerInfo> {
    Json(ServerInfo {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        fetch_image: state.settings.fetch_image.clone(),
        max_resource_size: Some(state.staging.limits().capacity.max_resource_size),
    })
}
