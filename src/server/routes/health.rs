//! What probes ask.

use axum::extract::State;

use crate::server::error::ApiError;
use crate::server::state::AppState;

/// Alive: this answers at all.
pub(in crate::server) async fn healthz() -> &'static str {
    "ok\n"
}

/// Ready: downloads can be served. A full disk does not matter, it only refuses uploads.
pub(in crate::server) async fn readyz(State(state): State<AppState>) -> Result<&'static str, ApiError> {
    if state.shutdown.is_requested() {
        return Err(ApiError::shutting_down());
    }
    state.staging.check_readable().await?;
    Ok("ready\n")
}
