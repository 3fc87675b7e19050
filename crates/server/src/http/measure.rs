//! Counts requests and transfers in the metrics.

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Span;

use super::error::{ApiError, SHARE};
use super::proxies::Sender;
use cloakroom_core::metrics::{DownloadMeasurement, Metrics, UploadMeasurement};
use cloakroom_core::protocol::problem::Code;
use cloakroom_core::resource::ResourceId;

/// Counts every request once: by its answer, or as given up if its client left before that.
pub(super) async fn count(State(metrics): State<Metrics>, request: Request, next: Next) -> Response {
    let mut counted = Counted {
        metrics,
        route: request.extensions().get::<MatchedPath>().cloned(),
        method: request.method().clone(),
        status: None,
    };
    let response = next.run(request).await;
    counted.status = Some(response.status().as_u16());
    response
}

struct Counted {
    metrics: Metrics,
    route: Option<MatchedPath>,
    method: axum::http::Method,
    status: Option<u16>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let route = self.route.as_ref().map(MatchedPath::as_str);
        self.metrics.http_request(route, self.method.as_str(), self.status);
    }
}

/// The values of the metric's label for refused uploads.
pub(super) fn upload_refusals() -> impl Iterator<Item = &'static str> {
    let codes = [
        Code::InvalidOwner,
        Code::InvalidParameter,
        Code::InvalidHeader,
        Code::InvalidRecipe,
        Code::DigestMismatch,
        Code::InvalidMultipart,
        Code::Unauthorized,
        Code::Forbidden,
        Code::NotFound,
        Code::Gone,
        Code::TooLarge,
        Code::UnsupportedMediaType,
        Code::Overloaded,
        Code::AuthorizationUnavailable,
        Code::InsufficientStorage,
    ];
    codes.into_iter().map(Code::as_str).chain([SHARE])
}

/// Counts an upload that ended with an error. Unless it counts as refused here, it counts as failed.
pub(super) fn not_stored(measured: &UploadMeasurement, error: &ApiError) {
    if let Some(reason) = error.refusal() {
        measured.refused(reason);
    }
}

/// Counts a download that ended with an error before its first byte.
pub(super) fn not_sent(metrics: &Metrics, error: &ApiError) {
    if error.refusal().is_some() { metrics.download_refused() } else { metrics.download_failed() }
}

/// A download that is being sent. Dropping it ends the measurement.
pub(super) struct Sending {
    measured: DownloadMeasurement,
    resource_id: ResourceId,
    sender: Sender,
    /// The span of the request, because the body is dropped outside of it when a connection ends.
    span: Span,
}

impl Sending {
    pub(super) fn begin(metrics: &Metrics, resource_id: ResourceId, bytes: u64, sender: Sender) -> Self {
        Self { measured: metrics.download(bytes), resource_id, sender, span: Span::current() }
    }

    /// Where the request came from.
    pub(super) fn sender(&self) -> Sender {
        self.sender
    }

    /// Counts bytes that were handed to the connection.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.measured.sent(bytes as u64);
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        let missing_bytes = self.measured.missing_bytes();
        if missing_bytes > 0 {
            let _in_request = self.span.enter();
            let Sender { address, proxy } = self.sender;
            tracing::info!(
                resource_id = %self.resource_id, missing_bytes, peer = %address, proxy = proxy.map(display),
                "a download broke off"
            );
        }
    }
}
