//! Maps paths to handlers, and adds the layers that every request passes.

use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderValue, Response};
use axum::middleware;
use axum::response::IntoResponse as _;
use axum::routing::get;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::request_id::{PropagateRequestIdLayer, SetRequestIdLayer};
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::trace::{DefaultOnFailure, TraceLayer};
use tracing::field::display;
use tracing::{Level, Span};

use super::body;
use super::error::{self, ApiError};
use super::framing;
use super::measure;
use super::pace::PaceLimits;
use super::proxies::{self, Sender, TrustedProxies};
use super::request_id::{self, RandomId};
use super::routes;
use super::state::AppState;
use cloakroom_core::metrics::Metrics;
use cloakroom_core::protocol::problem::Code;
use cloakroom_core::protocol::webhdfs::{is_below_root, shown_path};
use cloakroom_core::protocol::{HEALTHZ, METRICS, READYZ, REQUEST_ID};

/// A shared cache must keep no answer: the next client may show another secret. Bundles say so themselves.
const NOT_STORED: HeaderValue = HeaderValue::from_static("no-store");

/// Which routes a listener has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serves {
    /// The routes of v0 and v1, and the page for browsers.
    Resources,
    /// The routes for operators: health, metrics, administration.
    Operations,
    /// All routes.
    Everything,
}

/// Limits and counters of the layers that every request passes.
#[derive(Clone)]
pub(super) struct Entrance {
    /// How slow a client may be.
    pub(super) pace: PaceLimits,
    /// Where requests are counted.
    pub(super) metrics: Metrics,
}

/// The routes while the server starts: only liveness.
pub(super) fn starting(serves: Serves, entrance: &Entrance) -> Router {
    let router = match serves {
        Serves::Resources => Router::new(),
        Serves::Operations | Serves::Everything => Router::new().route(HEALTHZ, get(routes::health::healthz)),
    };
    // The settings come with the state. Until then no proxy is trusted.
    finish(router.fallback(async || ApiError::starting()), entrance, &TrustedProxies::default())
}

/// The routes while the server serves.
pub(super) fn serving(serves: Serves, state: &AppState, entrance: &Entrance) -> Router {
    state.metrics.upload_refusals_have(measure::upload_refusals());
    let webhdfs = state.settings.webhdfs.as_ref();
    let router = match serves {
        Serves::Resources => routes::api(webhdfs),
        Serves::Operations => operational_routes(),
        Serves::Everything => routes::api(webhdfs).merge(operational_routes()),
    };
    let router = router.fallback(no_such_path).with_state(state.clone());
    finish(router, entrance, &state.settings.trusted_proxies)
}

/// The routes while the server finishes its transfers: probes and metrics. All other requests are for its successor.
pub(super) fn stopping(serves: Serves, state: &AppState, entrance: &Entrance) -> Router {
    let router = match serves {
        Serves::Resources => Router::new(),
        Serves::Operations | Serves::Everything => Router::new()
            .route(HEALTHZ, get(routes::health::healthz))
            .route(READYZ, get(routes::health::still_ready))
            .route(METRICS, get(routes::metrics::metrics)),
    };
    let router = router.fallback(async || ApiError::shutting_down()).with_state(state.clone());
    finish(router, entrance, &state.settings.trusted_proxies)
}

fn operational_routes() -> Router<AppState> {
    Router::new()
        .route(HEALTHZ, get(routes::health::healthz))
        .route(READYZ, get(routes::health::readyz))
        .route(METRICS, get(routes::metrics::metrics))
        .merge(routes::administration())
}

/// Adds the layers. The layer that is added last runs first.
fn finish(router: Router, entrance: &Entrance, trusted: &TrustedProxies) -> Router {
    router
        .method_not_allowed_fallback(method_not_allowed)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(middleware::from_fn(framing::check))
        .layer(middleware::from_fn_with_state(entrance.pace, body::guard))
        .layer(middleware::from_fn(error::finish))
        .layer(SetResponseHeaderLayer::if_not_present(CACHE_CONTROL, NOT_STORED))
        .layer(middleware::from_fn_with_state(entrance.metrics.clone(), measure::count))
        .layer(middleware::from_fn_with_state(trusted.clone(), proxies::note_sender))
        .layer(
            TraceLayer::new_for_http()
                .make_span_with(span)
                .on_request(())
                .on_response(log)
                .on_failure(DefaultOnFailure::new().level(Level::DEBUG)),
        )
        .layer(PropagateRequestIdLayer::x_request_id())
        .layer(SetRequestIdLayer::x_request_id(RandomId))
        .layer(axum::middleware::map_request(async |request: Request| request_id::sanitize(request)))
}

async fn no_such_path(request: Request) -> ApiError {
    if is_below_root(request.uri().path()) {
        return ApiError::new(
            Code::NoSuchPath,
            "this server takes nothing by WebHDFS, which its admin can change (--webhdfs); or this is no path of a file, \
             /webhdfs/v1/NAMESPACE/…",
        );
    }
    let path: String = shown_path(request.uri().path()).chars().take(80).collect();
    ApiError::new(
        Code::NoSuchPath,
        format!(
            "there is nothing at {path}: resources are at /api/v1/resources, the contract at /api/openapi.json"
        ),
    )
}

async fn method_not_allowed(request: Request) -> ApiError {
    ApiError::new(
        Code::MethodNotAllowed,
        format!("{} is not possible here: the Allow header says what is", request.method()),
    )
}

/// Answers for a handler that panicked. The panic hook has logged the panic and its place.
fn panicked(_: Box<dyn std::any::Any + Send>) -> Response<axum::body::Body> {
    let error = std::io::Error::other("the handler panicked");
    ApiError::internal(&error).into_response()
}

/// The longest path that is logged, in bytes. All paths of this server are shorter.
const LONGEST_PATH: usize = 300;

/// The log span of a request. It has only the path of the URL, because a client may have put a secret into the query by
/// mistake, and of a path of WebHDFS neither key nor folder. Probes and scrapes come every few seconds, so they are logged
/// at level debug.
fn span<B>(request: &axum::http::Request<B>) -> Span {
    let id = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok());
    let method = request.method();
    let path = request.uri().path();
    let path = &*shown_path(&path[..path.floor_char_boundary(LONGEST_PATH)]);
    if matches!(path, HEALTHZ | READYZ | METRICS) {
        tracing::debug_span!("probe", request_id = id, %method, path)
    } else {
        tracing::info_span!("request", request_id = id, %method, path)
    }
}

/// Logs an answer with the client's address, so that a reader of the log sees who fetches, and who guesses tokens.
fn log<B>(response: &Response<B>, latency: Duration, span: &Span) {
    let status = response.status().as_u16();
    let sender = response.extensions().get::<Sender>();
    let peer = sender.map(|sender| display(sender.address));
    let proxy = sender.and_then(|sender| sender.proxy).map(display);
    let milliseconds = u64::try_from(latency.as_millis()).unwrap_or(u64::MAX);
    if span.metadata().is_some_and(|span| span.name() == "request") {
        tracing::info!(status, milliseconds, peer, proxy, "answered");
    } else {
        tracing::debug!(status, milliseconds, peer, proxy, "answered");
    }
}
