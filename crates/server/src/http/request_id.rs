//! The id of a request, which is in its log lines, its answer, and the body of an error.

use axum::extract::Request;
use axum::http::HeaderValue;
use tower_http::request_id::{MakeRequestId, RequestId};

use cloakroom_core::protocol::REQUEST_ID;

/// The largest length of an id that a client sends, in bytes.
const LONGEST: usize = 128;

/// Makes a random id for a request that has none.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RandomId;

impl MakeRequestId for RandomId {
    fn make_request_id<B>(&mut self, _: &axum::http::Request<B>) -> Option<RequestId> {
        let id = format!("{:016x}", rand::random::<u64>());
        HeaderValue::from_str(&id).ok().map(RequestId::new)
    }
}

/// Removes an id with unsuitable characters or length, so that a new one is made. Ids from clients go into the log.
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

/// The id of a request; `None` if no layer has set it.
pub(super) fn of(request: &Request) -> Option<String> {
    let id = request.extensions().get::<RequestId>()?;
    id.header_value().to_str().ok().map(str::to_owned)
}
