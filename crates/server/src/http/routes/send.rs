//! Answers downloads in v0 and v1: headers, conditions, ranges, and the bytes, which `WebHDFS` sends in the same way.

use std::net::SocketAddr;

use axum::body::{Body, Bytes};
use axum::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    RANGE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures_util::{Stream, TryStreamExt as _};
use tracing::field::display;

use super::conditional::{PreconditionOutcome, evaluate, range_counts};
use super::range::{Requested, parse};
use crate::http::error::ApiError;
use crate::http::measure::Sending;
use crate::http::proxies::Sender;
use crate::http::state::AppState;
use cloakroom_core::protocol::problem::Code;
use cloakroom_core::protocol::{BUNDLE_CONTENT_TYPE, REPR_DIGEST, digest};
use cloakroom_core::resource::{Bundle, FileName, Ready, Resource};
use cloakroom_core::text::chain;
use cloakroom_storage::store::StoreError;
use cloakroom_storage::{AccessError, Download};

/// A proxy must not store a bundle, because a secret protects it. It must not change the bytes, because they have a
/// digest.
const CACHING: HeaderValue = HeaderValue::from_static("private, no-transform");

/// Answers a download. Only if bytes are sent, the bundle is opened, and it counts as a use.
pub(super) async fn send(
    state: &AppState,
    resource: Resource<Ready>,
    peer: SocketAddr,
    method: &Method,
    headers: &HeaderMap,
    refused: fn(AccessError) -> ApiError,
) -> Result<Response, ApiError> {
    let bundle = resource.data.bundle;
    let etag = format!("\"{}\"", digest::to_hex(&bundle.sha256));
    match evaluate(headers, &etag) {
        PreconditionOutcome::Proceed => {}
        PreconditionOutcome::NotModified => {
            // A 304 has the length that a 200 would have (RFC 9110, sections 8.6 and 15.4.5). Otherwise hyper would
            // send a length of 0 to HEAD.
            let length = HeaderValue::from(bundle.size_bytes);
            let headers = [(ETAG, value(&etag)?), (CACHE_CONTROL, CACHING), (CONTENT_LENGTH, length)];
            return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
        }
        PreconditionOutcome::Failed => {
            return Err(ApiError::new(
                Code::PreconditionFailed,
                "If-Match names another bundle than this one",
            ));
        }
    }
    let requested = match headers.get(RANGE).and_then(|range| range.to_str().ok()) {
        // `Range` has a meaning only for GET (RFC 9110, section 14.2).
        Some(range) if method == Method::GET && range_counts(headers, &etag) => {
            parse(range, bundle.size_bytes)
        }
        _ => Requested::Whole,
    };
    let (status, range) = match requested {
        Requested::Whole => (StatusCode::OK, 0..bundle.size_bytes),
        Requested::Part(range) => (StatusCode::PARTIAL_CONTENT, range),
        Requested::Unsatisfiable => return Err(unsatisfiable(bundle.size_bytes)),
    };
    let mut answer = representation_headers(&bundle, &etag, resource.data.arrival.file_name.as_ref())?;
    answer.insert(CONTENT_LENGTH, HeaderValue::from(range.end - range.start));
    if status == StatusCode::PARTIAL_CONTENT {
        let part = format!("bytes {}-{}/{}", range.start, range.end - 1, bundle.size_bytes);
        answer.insert(CONTENT_RANGE, value(&part)?);
    }
    if method == Method::HEAD {
        return Ok((status, answer).into_response());
    }
    let (id, length) = (resource.id, range.end - range.start);
    let client = state.settings.client(peer.ip(), headers);
    let download = state.staging.open_download(resource, vec![range], client).await.map_err(refused)?;
    state.downloads.begin(download.resource()).await.map_err(refused)?;
    let sender = state.settings.trusted_proxies.sender(peer.ip(), headers);
    let sending = Sending::begin(&state.metrics, id, length, sender);
    Ok((status, answer, Body::from_stream(pieces(download, sending))).into_response())
}

fn unsatisfiable(size_bytes: u64) -> ApiError {
    let error = ApiError::new(
        Code::RangeNotSatisfiable,
        format!("the bundle has {size_bytes} bytes, and none in this range"),
    );
    match HeaderValue::from_str(&format!("bytes */{size_bytes}")) {
        Ok(all) => error.with_header(CONTENT_RANGE, all),
        Err(_) => error,
    }
}

fn representation_headers(
    bundle: &Bundle,
    etag: &str,
    name: Option<&FileName>,
) -> Result<HeaderMap, ApiError> {
    let mut headers = HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static(BUNDLE_CONTENT_TYPE)),
        (ETAG, value(etag)?),
        (ACCEPT_RANGES, HeaderValue::from_static("bytes")),
        (CACHE_CONTROL, CACHING),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ]);
    headers.insert(REPR_DIGEST, value(&digest::format(&bundle.sha256))?);
    if let Some(name) = name {
        headers.insert(CONTENT_DISPOSITION, value(&disposition(name.as_str()))?);
    }
    Ok(headers)
}

/// `Content-Disposition` by RFC 6266: an ASCII name for old clients, and the exact name for others (RFC 8187).
fn disposition(name: &str) -> String {
    use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
    const ATTRIBUTE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    let plain: String =
        name.chars().map(|c| if c.is_ascii() && !matches!(c, '"' | '\\') { c } else { '_' }).collect();
    if plain == name {
        return format!("attachment; filename=\"{plain}\"");
    }
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{}", utf8_percent_encode(name, ATTRIBUTE))
}

fn value(text: &str) -> Result<HeaderValue, ApiError> {
    HeaderValue::from_str(text).map_err(|error| ApiError::internal(&error))
}

/// The bytes, piece by piece. The head has announced the length, so after an error the connection breaks off.
pub(super) fn pieces(
    download: Download,
    mut sending: Sending,
) -> impl Stream<Item = Result<Bytes, StoreError>> + Send + use<> {
    let (id, Sender { address: peer, proxy }) = (download.resource().id, sending.sender());
    let proxy = proxy.map(display);
    let pieces = download.read().inspect_ok(move |piece| sending.sent(piece.len()));
    pieces.inspect_err(move |error| {
        if matches!(error, StoreError::Deleted) {
            tracing::info!(
                resource_id = %id, %peer, proxy, "a download was cut off, because its resource was deleted"
            );
        } else {
            tracing::error!(
                resource_id = %id, error = %chain(error), %peer, proxy, "a bundle could not be read"
            );
        }
    })
}
