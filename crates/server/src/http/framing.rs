//! Refuses requests that two readers could understand in different ways, before anything is done, and closes their
//! connections.

use axum::extract::Request;
use axum::http::header::{CONNECTION, HOST, TRANSFER_ENCODING};
use axum::http::{HeaderValue, Version};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::error::ApiError;
use cloakroom_core::protocol::problem::Code;

/// Lets a request pass only if its host and its framing are unambiguous.
pub(super) async fn check(request: Request, next: Next) -> Response {
    match host(&request).and_then(|()| coding(&request)) {
        Ok(()) => next.run(request).await,
        Err(error) => error.with_header(CONNECTION, HeaderValue::from_static("close")).into_response(),
    }
}

/// RFC 9112, section 3.2: HTTP/1.1 needs exactly one `Host`, and no version allows two.
fn host(request: &Request) -> Result<(), ApiError> {
    match request.headers().get_all(HOST).iter().count() {
        0 if request.version() >= Version::HTTP_11 => {
            Err(ApiError::new(Code::InvalidHeader, "the request has no Host header: HTTP/1.1 needs one"))
        }
        0 | 1 => Ok(()),
        _ => Err(ApiError::new(Code::InvalidHeader, "the request has more than one Host header: send one")),
    }
}

/// RFC 9112, section 6.1: `chunked` must be the last coding and occur once. A server answers 501 to a coding that it
/// does not know.
fn coding(request: &Request) -> Result<(), ApiError> {
    let values = request.headers().get_all(TRANSFER_ENCODING).iter();
    let codings: Vec<String> = values.flat_map(|value| words(value.to_str().unwrap_or("?"))).collect();
    match codings.iter().position(|coding| coding == "chunked") {
        _ if codings.is_empty() => Ok(()),
        Some(0) if codings.len() == 1 => Ok(()),
        Some(first) if first + 1 == codings.len() => Err(ApiError::new(
            Code::UnsupportedTransferCoding,
            "the body is sent with a transfer coding besides chunked: send it chunked alone, or with its length",
        )),
        _ => Err(ApiError::new(
            Code::InvalidHeader,
            "Transfer-Encoding must end with chunked, once: send the body chunked alone, or with its length",
        )),
    }
}

fn words(value: &str) -> Vec<String> {
    value.split(',').map(|word| word.trim().to_ascii_lowercase()).filter(|word| !word.is_empty()).collect()
}
