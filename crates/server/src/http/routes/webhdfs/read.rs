//! Answers GET: the status of a file, and its bytes.

use axum::body::Body;
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures_util::TryStreamExt as _;
use tokio::runtime::Handle;
use tracing::{Instrument as _, Span};

use super::{Call, json};
use crate::http::error::ApiError;
use crate::http::measure::{Sending, not_sent};
use crate::http::routes::send::pieces;
use crate::http::webhdfs::Expected;
use cloakroom_core::protocol::problem::Code;
use cloakroom_core::protocol::webhdfs::{Answer, FileStatus, Get};
use cloakroom_core::resource::{Ready, Resource};
use cloakroom_core::text::chain;
use cloakroom_storage::{AccessError, Staging};

pub(super) async fn answer(call: &Call, get: Get) -> Result<Response, ApiError> {
    match get {
        Get::Status => status(call).await,
        Get::Open => {
            find(call).await.map_err(not_found)?;
            call.second_step()
        }
        Get::Read { offset, length } => {
            let answered = read(call, offset, length).await;
            answered.inspect_err(|error| not_sent(&call.state.metrics, error))
        }
    }
}

/// Does not count as a read.
async fn status(call: &Call) -> Result<Response, ApiError> {
    match find(call).await {
        Ok(resource) => {
            let written_at = resource.created_at.as_millisecond();
            Ok(json(&Answer::FileStatus(FileStatus::new(resource.data.bundle.size_bytes, written_at))))
        }
        Err(error @ AccessError::NotFound) => {
            let mut response = not_found(error).into_response();
            response.extensions_mut().insert(Expected);
            Ok(response)
        }
        Err(error) => Err(error.into()),
    }
}

/// The file of this name in the folder.
async fn find(call: &Call) -> Result<Resource<Ready>, AccessError> {
    let resource = call.state.staging.find_by_secret(&call.place.secret()).await?;
    let is_named = resource.data.arrival.file_name == call.place.name;
    if is_named { Ok(resource) } else { Err(AccessError::NotFound) }
}

fn not_found(error: AccessError) -> ApiError {
    match error {
        AccessError::NotFound => ApiError::new(
            Code::NotFound,
            "there is no such file: it was never uploaded, or is deleted, because it was not read for a while; submit again",
        ),
        error => error.into(),
    }
}

async fn read(call: &Call, offset: u64, length: Option<u64>) -> Result<Response, ApiError> {
    let (state, headers, peer) = (&call.state, &call.head.headers, call.peer.ip());
    let resource = find(call).await.map_err(not_found)?;
    let size_bytes = resource.data.bundle.size_bytes;
    if offset > size_bytes {
        let detail = format!("the file has {size_bytes} bytes, and none at {offset}");
        return Err(ApiError::new(Code::RangeNotSatisfiable, detail));
    }
    let end = length.map_or(size_bytes, |length| offset.saturating_add(length).min(size_bytes));
    let client = state.settings.client(peer, headers);
    let download = state.staging.open_download(resource.clone(), vec![offset..end], client).await?;
    if resource.is_used() {
        // The time since the last read begins anew.
        state.staging.mark_used(&resource).await?;
    }
    let sending = Sending::begin(&state.metrics, resource.id, end - offset, call.sender());
    let mut reading = Reading {
        is_to_end: end == size_bytes && (offset < end || size_bytes == 0),
        left_bytes: end - offset,
        staging: state.staging.clone(),
        resource,
        span: Span::current(),
    };
    let pieces = pieces(download, sending).inspect_ok(move |piece| reading.sent(piece.len() as u64));
    let length = HeaderValue::from(end - offset);
    Ok((StatusCode::OK, [(CONTENT_LENGTH, length)], Body::from_stream(pieces)).into_response())
}

/// A read. If it sends the last byte of the file, it counts as a use when it ends.
struct Reading {
    is_to_end: bool,
    left_bytes: u64,
    staging: Staging,
    resource: Resource<Ready>,
    span: Span,
}

impl Reading {
    fn sent(&mut self, bytes: u64) {
        self.left_bytes = self.left_bytes.saturating_sub(bytes);
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let Ok(runtime) = Handle::try_current() else { return };
        if !self.is_to_end || self.left_bytes > 0 {
            return;
        }
        let (staging, resource) = (self.staging.clone(), self.resource.clone());
        let marking = async move {
            if let Err(error) = staging.mark_used(&resource).await {
                tracing::warn!(resource_id = %resource.id, error = %chain(&error), "that a file was read could not be noted");
            }
        };
        runtime.spawn(marking.instrument(self.span.clone()));
    }
}
