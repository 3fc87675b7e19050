//! The handlers of probes.

use axum::extract::State;

use crate::http::error::ApiError;
use crate::http::state::AppState;

const READY: &str = "ready\n";
const READY_AND_BEHIND: &str = "ready\nledger-behind: the ledger is an earlier copy, or its bundles were replaced, so no \
    sweep deletes anything until cloakroom resume-deletions\n";

const READY_AND_READ_ONLY: &str = "ready\nread-only: the bucket takes no writes, so downloads are served, and nothing is staged or \
    deleted until it does\n";

const READY_AND_STALLED: &str = "ready\nlog-stalled: the bucket does not take the log of the ledger or the stamp of this server, as \
    its log says, so uploads, deletions and first downloads may get 503 until it does\n";

/// Get whether the server is alive: it is if it answers at all.
#[utoipa::path(get, path = "/healthz", operation_id = "getHealth", tag = "operations", responses((status = 200, description = "alive", body = String, content_type = "text/plain")))]
pub(in crate::http) async fn healthz() -> &'static str {
    "ok\n"
}

/// Get whether the server is ready: whether it can serve downloads. A full disk does not matter, because it only
/// refuses uploads. A server that stops stays ready until it ends.
#[utoipa::path(
    get, path = "/readyz", operation_id = "getReadiness", tag = "operations",
    responses(
        (status = 200, description = "ready", body = String, content_type = "text/plain"),
        (status = 503, description = "not-ready"),
    )
)]
pub(in crate::http) async fn readyz(State(state): State<AppState>) -> Result<&'static str, ApiError> {
    state.staging.check_readable().await.map_err(|error| ApiError::not_ready(&error))?;
    Ok(match &state.staging {
        staging if staging.is_read_only() => READY_AND_READ_ONLY,
        staging if staging.is_stalled() => READY_AND_STALLED,
        staging if staging.is_behind() => READY_AND_BEHIND,
        _ => READY,
    })
}

/// The answer of [`readyz`] while the server stops. If no other endpoint is ready, kube-proxy sends new connections to
/// a terminating pod while its readiness probe succeeds (condition `serving` of its endpoint, KEP-1669). So clients of
/// a single pod get the answer `shutting-down`, and not a refused connection.
pub(in crate::http) async fn still_ready() -> &'static str {
    READY
}
