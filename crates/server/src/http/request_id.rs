//! One id for each request: in the log, in the answer, in the problem.

use axum::extract::Request;
use axum::http::HeaderValue;
use tower_http::request_id::{MakeRequestId, RequestId};

use cloakroom_core::protocol::REQUEST_ID;

/// Longer ids of a caller's own are not worth keeping.
const LONGEST: usize = 128;

/// Makes ids for requests that come without one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RandomId;

impl MakeRequestId for RandomId {
    fn make_request_id<B>(&mut self, _: &axum::http::Request<B>) -> Option<RequestId> {
        let id = format!("{:016x}", rand::random::<u64>());
        HeaderValue::from_str(&id).ok().map(RequestId::new)
    }
}

/// Drops an id that would not look well in a log, so that a new one is made.
pub(super) fn sanitize<B>(mut request: axum::http::Request<B>) -> axum::http::Request<B> {
    let is_good = |value: &HeaderValue| {
        value.len() <= LONGEST
            && !value.is_empty()
            && value.as_bytes().iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(byte))
    };
    if request.headers().get(REQUEST_ID).is_some_and(|value| !is_good(value)) {
        request.headers_mut().remove(REQUEST_ID);
    }
    request
}

/// The id of a request.
pub(super) fn of(request: &Request) -> Option<String> {
    let id = request.extensions().get::<RequestId>()?;
    id.header_value().to_str().ok().map(str::to_owned)
}
