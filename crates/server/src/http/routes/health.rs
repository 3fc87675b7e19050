//! What probes ask.

use axum::extract::State;

use crate::http::error::ApiError;
use crate::http::state::AppState;

const READY: &str = "ready\n";

/// Alive: this answers at all.
#[utoipa::path(get, path = "/healthz", operation_id = "getHealth", tag = "operations", responses((status = 200, description = "alive", body = String, content_type = "text/plain")))]
pub(in crate::http) async fn healthz() -> &'static str {
    "ok\n"
}

/// Ready: downloads can be served. A full disk does not matter, it only refuses uploads. A server that stops stays
/// ready until it has gone.
#[utoipa::path(
    get, path = "/readyz", operation_id = "getReadiness", tag = "operations",
    responses(
        (status = 200, description = "ready", body = String, content_type = "text/plain"),
        (status = 503, description = "not-ready"),
    )
)]
pub(in crate::http) async fn readyz(State(state): State<AppState>) -> Result<&'static str, ApiError> {
    state.staging.check_readable().await.map_err(|error| ApiError::not_ready(&error))?;
    Ok(READY)
}

/// What [`readyz`] says while the server stops. Where no other endpoint is ready, kube-proxy sends new connections to a
/// pod that terminates as long as its readiness probe succeeds (condition `serving` of its endpoint, KEP-1669), and this
/// is the only pod: so clients get an answer, `shutting-down`, and not a refused connection.
pub(in crate::http) async fn still_ready() -> &'static str {
    READY
}
