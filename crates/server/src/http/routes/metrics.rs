//! The handler of Prometheus' scrapes.

use std::collections::BTreeSet;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};

use crate::descriptors;
use crate::http::error::ApiError;
use crate::http::state::AppState;
use crate::http::tls::ServerTls;
use crate::owners::WatchState;
use cloakroom_core::metrics::{self, LimitUse, Limited};

/// All metrics, in the text format of `OpenMetrics`. A value that cannot be looked up is left out. The route is not in
/// the OpenAPI document, because client generators do not know the format.
pub(in crate::http) async fn metrics(State(state): State<AppState>) -> Result<Response, ApiError> {
    count_watches(&state);
    let mut stock = state.staging.stock().await;
    stock.limits.extend(state.owners.limits());
    stock.limits.extend(state.settings.upload_auth.limits());
    stock.limits.extend(open_files().await);
    state.metrics.certificate_ends(state.settings.tls.as_ref().and_then(ServerTls::ends));
    let text = state.metrics.exposition(&stock).map_err(|error| ApiError::internal(&error))?;
    Ok(([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response())
}

/// Counts open files on a thread that may block, because counting many of them takes long.
async fn open_files() -> Option<LimitUse> {
    let (used, limit) = tokio::task::spawn_blocking(descriptors::in_use).await.ok()??;
    Some(LimitUse::from_counts(Limited::OpenFiles, used, limit))
}

/// Sets the count of each state for each watched kind. Kinds that are not watched any more have no counts.
fn count_watches(state: &AppState) {
    let watches = state.owners.watches();
    let kinds: BTreeSet<&str> = watches.iter().map(|watch| watch.kind.as_str()).collect();
    state.metrics.forget_owner_watches();
    for kind in kinds {
        for &watch_state in WatchState::ALL {
            let count = watches
                .iter()
                .filter(|watch| watch.kind.as_str() == kind && watch.state == watch_state)
                .count();
            state.metrics.owner_watches(kind, watch_state.as_str(), count as u64);
        }
    }
}
