//! What Prometheus scrapes.

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};

use crate::metrics;
use crate::protocol::problem::Problem;
use crate::server::error::ApiError;
use crate::server::state::AppState;

/// All metrics, in the text format of `OpenMetrics`. What cannot be looked up is left out, the rest is there.
#[utoipa::path(
    get, path = "/metrics", tag = "operations",
    responses(
        (status = 200, description = "all metrics", body = String, content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8"),
        (status = 500, description = "internal", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::server) async fn metrics(State(state): State<AppState>) -> Result<Response, ApiError> {
    let stock = state.staging.stock().await;
    let text = state.metrics.exposition(&stock).map_err(|error| ApiError::internal(&error))?;
    Ok(([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response())
}
