//! The way out.

use std::ops::Range;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    RANGE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures_util::TryStreamExt as _;

use super::conditional::{Outcome, evaluate, range_counts};
use super::range::{Requested, parse};
use super::resource::ticket;
use crate::protocol::problem::Code;
use crate::protocol::{BUNDLE_CONTENT_TYPE, REPR_DIGEST, digest};
use crate::resource::{Bundle, FileName};
use crate::server::error::ApiError;
use crate::server::measure::{Sending, not_sent};
use crate::server::routes::described::{BundleBody, Conditions, PartOfBundle};
use crate::server::state::AppState;
use crate::staging::Download;
use crate::telemetry::chain;

/// A proxy must neither keep what a secret protects nor change bytes that have a digest.
const CACHING: HeaderValue = HeaderValue::from_static("private, no-transform");

/// Download a bundle: the whole, or the part that Range names.
#[utoipa::path(
    get, path = "/api/v1/resources/{id}", operation_id = "downloadBundle", tag = "v1", security(("resourceSecret" = [])),
    params(("id" = String, Path, description = "the resource's id"), PartOfBundle, Conditions),
    responses(
        (status = 200, description = "the bundle", body = inline(BundleBody), content_type = "application/octet-stream",
         headers(("etag" = String), ("repr-digest" = String), ("accept-ranges" = String), ("content-disposition" = String))),
        (status = 206, description = "a part of it", body = inline(BundleBody), content_type = "application/octet-stream", headers(("content-range" = String))),
        (status = 304, description = "the client has it", headers(("etag" = String))),
        (status = 401, description = "unauthorized: no ticket"),
        (status = 404, description = "not-found: no such resource for this ticket"),
        (status = 410, description = "gone: deleted, with reason and time"),
        (status = 412, description = "precondition-failed"),
        (status = 416, description = "range-not-satisfiable", headers(("content-range" = String, description = "the length that there is"))),
        (status = 503, description = "overloaded"),
    )
)]
pub(super) async fn get(
    State(state): State<AppState>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let answer = async {
        let (id, secret) = ticket(path, &headers)?;
        let download = state.staging.open_download(id, &secret).await?;
        send(&state, download, &Method::GET, &headers, Ranges::Honoured).await
    };
    answer.await.inspect_err(|error| not_sent(&state.metrics, error))
}

/// What a download would answer, without the bytes. Does not count as a use.
#[utoipa::path(
    head, path = "/api/v1/resources/{id}", operation_id = "headBundle", tag = "v1", security(("resourceSecret" = [])),
    params(("id" = String, Path, description = "the resource's id"), Conditions),
    responses(
        (status = 200, description = "it is there", headers(("content-length" = u64), ("etag" = String), ("repr-digest" = String))),
        (status = 304, description = "the client has it"),
        (status = 401, description = "no ticket"),
        (status = 404, description = "no such resource for this ticket"),
        (status = 410, description = "deleted"),
        (status = 412, description = "it is another bundle than If-Match names"),
        (status = 503, description = "overloaded"),
    )
)]
pub(super) async fn head(
    State(state): State<AppState>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let (id, secret) = ticket(path, &headers)?;
    let download = state.staging.open_download(id, &secret).await?;
    send(&state, download, &Method::HEAD, &headers, Ranges::Ignored).await
}

/// Whether `Range` is looked at: it has a meaning for GET only (RFC 9110, section 14.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server::routes) enum Ranges {
    Honoured,
    Ignored,
}

/// The answer to a download in both protocols. Only bytes that are sent count as a use.
pub(in crate::server::routes) async fn send(
    state: &AppState,
    download: Download,
    method: &Method,
    headers: &HeaderMap,
    ranges: Ranges,
) -> Result<Response, ApiError> {
    let bundle = Bundle { size_bytes: download.size_bytes(), sha256: sha256(&download) };
    let etag = format!("\"{}\"", digest::to_hex(&bundle.sha256));
    match evaluate(headers, &etag) {
        Outcome::Proceed => {}
        Outcome::NotModified => {
            // What a 200 would say (RFC 9110, sections 8.6 and 15.4.5); left out, HEAD would get a length of 0.
            let length = HeaderValue::from(bundle.size_bytes);
            let headers = [(ETAG, value(&etag)?), (CACHE_CONTROL, CACHING), (CONTENT_LENGTH, length)];
            return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
        }
        Outcome::Failed => {
            return Err(ApiError::new(
                Code::PreconditionFailed,
                "If-Match names another bundle than this one",
            ));
        }
    }
    let requested = match headers.get(RANGE).and_then(|range| range.to_str().ok()) {
        Some(range) if ranges == Ranges::Honoured && range_counts(headers, &etag) => {
            parse(range, bundle.size_bytes)
        }
        _ => Requested::Whole,
    };
    let (status, range) = match requested {
        Requested::Whole => (StatusCode::OK, 0..bundle.size_bytes),
        Requested::Part(range) => (StatusCode::PARTIAL_CONTENT, range),
        Requested::Unsatisfiable => return Err(unsatisfiable(bundle.size_bytes)),
    };
    let mut answer = representation_headers(&bundle, &etag, download.resource().file_name.as_ref())?;
    answer.insert(CONTENT_LENGTH, HeaderValue::from(range.end - range.start));
    if status == StatusCode::PARTIAL_CONTENT {
        let part = format!("bytes {}-{}/{}", range.start, range.end - 1, bundle.size_bytes);
        answer.insert(CONTENT_RANGE, value(&part)?);
    }
    if method == Method::HEAD {
        return Ok((status, answer).into_response());
    }
    state.staging.mark_used(&download).await?;
    state.judge.look_at_download(download.resource()).await;
    let sending = Sending::begin(&state.metrics, download.resource().id, range.end - range.start);
    Ok((status, answer, content(download, range, sending)).into_response())
}

fn sha256(download: &Download) -> [u8; 32] {
    download.resource().bundle.map(|bundle| bundle.sha256).unwrap_or_default()
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

/// RFC 6266: a plain name for old readers, the true one for the rest (RFC 8187).
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

/// The bytes, piece by piece. The length was promised in the head: what is short breaks off.
fn content(download: Download, range: Range<u64>, mut sending: Sending) -> Body {
    let id = download.resource().id;
    let pieces = download.read(range).inspect_ok(move |piece| sending.sent(piece.len()));
    Body::from_stream(pieces.inspect_err(move |error| {
        tracing::error!(resource_id = %id, error = %chain(error), "a bundle could not be read");
    }))
}
