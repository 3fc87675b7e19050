//! What probes ask.

use axum::extract::State;

use crate::protocol::problem::Problem;
use crate::server::error::ApiError;
use crate::server::state::AppState;

/// Alive: this answers at all.
#[utoipa::path(get, path = "/healthz", tag = "operations", responses((status = 200, description = "alive", body = String, content_type = "text/plain")))]
pub(in crate::server) async fn healthz() -> &'static str {
    "ok\n"
}

/// Ready: downloads can be served. A full disk does not matter, it only refuses uploads.
#[utoipa::path(
    get, path = "/readyz", tag = "operations",
    responses(
        (status = 200, description = "ready", body = String, content_type = "text/plain"),
        (status = 500, description = "internal", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "shutting-down", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::server) async fn readyz(State(state): State<AppState>) -> Result<&'static str, ApiError> {
    if state.shutdown.is_requested() {
        return Err(ApiError::shutting_down());
    }
    state.staging.check_readable().await?;
    Ok("ready\n")
}
