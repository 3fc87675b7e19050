//! What the server tells any client about itself.

use axum::Json;
use axum::extract::State;

use crate::http::state::AppState;
use cloakroom_core::protocol::v1::ServerInfo;

/// Get the server's version, and the image with which init-containers fetch its bundles.
#[utoipa::path(
    get, path = "/api/v1", operation_id = "getServerInfo", tag = "v1",
    responses((status = 200, description = "what this server is", body = ServerInfo))
)]
pub(super) async fn get(State(state): State<AppState>) -> Json<ServerInfo> {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    Json(ServerInfo { version, fetch_image: state.settings.fetch_image.clone() })
}
