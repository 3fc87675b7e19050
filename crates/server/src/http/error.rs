//! Maps every error to its answer. There is no other map.

use std::error::Error;

use axum::extract::Request;
use axum::http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;

use super::request_id;
use super::webhdfs;
use crate::owners::NotAdmitted;
use cloakroom_core::protocol::problem::{self, Code, Problem};
use cloakroom_core::protocol::webhdfs::is_below_root;
use cloakroom_core::protocol::{CHALLENGE, WRONG_SECRET};
use cloakroom_core::resource::{DeletionReason, OwnerError};
use cloakroom_core::text::chain;
use cloakroom_storage::ledger::LedgerError;
use cloakroom_storage::store::StoreError;
use cloakroom_storage::{AccessError, UploadError};

/// The value of the metric's label for a refusal that concerns only one namespace or user.
pub(super) const SHARE: &str = "share";

/// An error answer.
#[derive(Debug)]
pub struct ApiError {
    code: Code,
    status: StatusCode,
    detail: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Whether only one namespace or user has used up its share, while others can go on.
    is_share: bool,
    deleted: Option<(Timestamp, DeletionReason)>,
    /// Whether the request showed a token that this server knows.
    is_of_known_token: bool,
}

/// Marks the answer to a request with a token that this server knows.
#[derive(Debug, Clone, Copy)]
pub(super) struct OfKnownToken;

impl ApiError {
    /// Makes an answer with this code; `detail` is for people.
    pub(super) fn new(code: Code, detail: impl Into<String>) -> Self {
        let status = StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self {
            code,
            status,
            detail: detail.into(),
            headers: Vec::new(),
            is_share: false,
            deleted: None,
            is_of_known_token: false,
        }
    }

    /// Adds a header to the answer.
    pub(super) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The same answer, to a request whose token is known.
    pub(super) fn of_known_token(self) -> Self {
        Self { is_of_known_token: true, ..self }
    }

    /// The request has no ticket or token.
    pub(super) fn unauthorized(detail: &str) -> Self {
        Self::new(Code::Unauthorized, detail)
            .with_header(WWW_AUTHENTICATE, HeaderValue::from_static(CHALLENGE))
    }

    /// The request has a wrong one. The header tells that apart (RFC 6750, section 3), so that a client knows whether what it
    /// sent has arrived.
    pub(super) fn wrong_secret(detail: &str) -> Self {
        Self::new(Code::Unauthorized, detail)
            .with_header(WWW_AUTHENTICATE, HeaderValue::from_static(WRONG_SECRET))
    }

    /// The request cannot be served now. The client may try again after two seconds.
    pub(super) fn try_again(code: Code, detail: impl Into<String>) -> Self {
        Self::new(code, detail).with_header(RETRY_AFTER, HeaderValue::from_static("2"))
    }

    /// The client is too slow. The connection is closed, because what the client still sends is not read.
    pub(super) fn too_slow(detail: impl Into<String>) -> Self {
        Self::new(Code::TooSlow, detail).with_header(CONNECTION, HeaderValue::from_static("close"))
    }

    /// The server is still starting.
    pub(super) fn starting() -> Self {
        Self::try_again(
            Code::Starting,
            "this server is starting: it waits until another one has stopped, or finishes what a crash interrupted; try again",
        )
    }

    /// Downloads cannot be served. This is the answer to readiness probes.
    pub(super) fn not_ready(error: &AccessError) -> Self {
        tracing::warn!(error = %chain(error), "not ready");
        Self::try_again(Code::NotReady, format!("downloads cannot be served: {}", chain(error)))
    }

    /// The server is about to stop. Its successor may answer in a moment.
    pub(super) fn shutting_down() -> Self {
        Self::new(Code::ShuttingDown, "this server is about to stop: try again, its successor will answer")
            .with_header(RETRY_AFTER, HeaderValue::from_static("1"))
    }

    /// The storage takes no further call now, or as many files are open as may be.
    fn throttled(error: &dyn Error) -> Self {
        tracing::warn!(error = %chain(error), "the storage takes no further call");
        Self::try_again(
            Code::Overloaded,
            "this server's storage takes no further call, or as many files are open as may be: try again in a moment",
        )
    }

    /// The storage answers no calls, or does not allow them.
    fn unavailable(error: &dyn Error) -> Self {
        tracing::error!(error = %chain(error), "the storage cannot be read");
        Self::try_again(
            Code::Overloaded,
            "this server's storage does not answer, or does not let it read: try again later; its admin must find out why",
        )
    }

    /// The storage is read-only or fails. This may pass, so the client may try again; the log has the error.
    fn not_writable(error: &dyn Error) -> Self {
        tracing::error!(error = %chain(error), "the storage cannot be written");
        Self::try_again(Code::NotWritable, error.to_string())
    }

    /// The storage refuses to give out this bundle, and no later attempt helps.
    fn unreadable(error: &dyn Error) -> Self {
        tracing::error!(error = %chain(error), "request failed");
        let mut cause = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        Self::new(Code::Internal, format!("the server's storage does not give this bundle out: {cause}"))
    }

    /// An error of the server itself. The log has the details, and the client learns only that it happened.
    pub(super) fn internal(error: &dyn Error) -> Self {
        tracing::error!(error = %chain(error), "request failed");
        Self::new(Code::Internal, "the server failed; its log says why, under this request's id")
    }

    /// The reason of a refusal, as a value of the metric's label. `None` if the server failed, or the client left or
    /// was too slow.
    pub(super) fn refusal(&self) -> Option<&'static str> {
        match self.code {
            Code::Internal | Code::NotWritable | Code::IncompleteBody | Code::TooSlow => None,
            _ if self.is_share => Some(SHARE),
            code => Some(code.as_str()),
        }
    }

    /// Answers as kubespark does where v1 is more precise: a deleted resource is `404`, and a wrong secret is `401`.
    pub(super) fn for_v0(error: AccessError) -> Self {
        match error {
            AccessError::WrongSecret => Self::wrong_secret("this is not the resource's secret"),
            AccessError::Gone { .. } => Self { status: StatusCode::NOT_FOUND, ..Self::from(error) },
            other => other.into(),
        }
    }
}

impl From<OwnerError> for ApiError {
    fn from(error: OwnerError) -> Self {
        Self::new(Code::InvalidOwner, error.to_string())
    }
}

impl From<NotAdmitted> for ApiError {
    fn from(error: NotAdmitted) -> Self {
        Self::new(Code::InvalidOwner, error.to_string())
    }
}

impl From<UploadError> for ApiError {
    fn from(error: UploadError) -> Self {
        let is_share = matches!(&error, UploadError::NoRoom(no_room) if no_room.holder().is_some());
        let code = match &error {
            UploadError::TooLarge { .. } => Code::TooLarge,
            UploadError::NoRoom(no_room) if no_room.is_passing() => {
                return Self { is_share, ..Self::try_again(Code::Overloaded, error.to_string()) };
            }
            UploadError::Ledger(LedgerError::Taken) => Code::InUse,
            UploadError::Abandoned => return Self::try_again(Code::Overloaded, error.to_string()),
            UploadError::NoRoom(_) | UploadError::Full { .. } => Code::InsufficientStorage,
            UploadError::NotWritable(_) => return Self::not_writable(&error),
            UploadError::DigestMismatch => Code::DigestMismatch,
            UploadError::WrongLength { .. } => Code::IncompleteBody,
            UploadError::Store(slow @ StoreError::TooSlow) => {
                tracing::info!(error = %slow, "upload refused");
                return Self::try_again(Code::Overloaded, slow.to_string());
            }
            UploadError::Store(StoreError::Throttled(_))
            | UploadError::Ledger(LedgerError::OutOfDescriptors) => return Self::throttled(&error),
            UploadError::Ledger(stalled @ LedgerError::Stalled) => {
                return Self::try_again(Code::Overloaded, stalled.to_string());
            }
            // The server ends for that, and says why in its log.
            UploadError::Store(StoreError::Replaced(_))
            | UploadError::Ledger(LedgerError::Replaced(_) | LedgerError::Ended(_)) => {
                return Self::shutting_down();
            }
            UploadError::Store(_) | UploadError::Ledger(_) => return Self::internal(&error),
        };
        match code {
            Code::InsufficientStorage if is_share => {
                tracing::info!(error = %chain(&error), "upload refused");
            }
            Code::InsufficientStorage => tracing::warn!(error = %chain(&error), "upload refused"),
            _ => {}
        }
        Self { is_share, ..Self::new(code, error.to_string()) }
    }
}

impl From<AccessError> for ApiError {
    fn from(error: AccessError) -> Self {
        match error {
            AccessError::NotFound | AccessError::WrongSecret => Self::new(
                Code::NotFound,
                "there is no resource with this id and secret: check both, or stage it again",
            ),
            AccessError::WrongKey => Self::new(
                Code::NotFound,
                "there is no resource with this id and key: a key ends after its time, with its resource, or when all keys \
                 are ended; ask for a new one",
            ),
            AccessError::TooManyKeys => Self::new(Code::TooManyKeys, error.to_string()),
            AccessError::Gone { deleted, .. } => Self {
                deleted,
                ..Self::new(Code::Gone, format!("{error}: stage it again if it is still needed"))
            },
            AccessError::TooManyDownloads | AccessError::TooManyDownloadsOf { .. } => {
                Self::try_again(Code::Overloaded, error.to_string())
            }
            AccessError::Store(StoreError::Throttled(_))
            | AccessError::Ledger(LedgerError::OutOfDescriptors) => Self::throttled(&error),
            AccessError::Store(StoreError::Unavailable(_) | StoreError::Denied(_)) => {
                Self::unavailable(&error)
            }
            AccessError::Ledger(stalled @ LedgerError::Stalled) => {
                Self::try_again(Code::Overloaded, stalled.to_string())
            }
            // The server ends for that, and says why in its log.
            AccessError::Store(StoreError::Replaced(_))
            | AccessError::Ledger(LedgerError::Replaced(_) | LedgerError::Ended(_)) => Self::shutting_down(),
            AccessError::DiskFull => {
                tracing::warn!(error = %chain(&error), "change refused");
                Self::new(Code::InsufficientStorage, error.to_string())
            }
            AccessError::NotWritable(_) | AccessError::Denied(_) => Self::not_writable(&error),
            // The log has the cause since the row was set aside.
            AccessError::SetAside { .. } => Self::new(Code::Internal, error.to_string()),
            AccessError::Store(fault @ StoreError::Fault(_)) => Self::unreadable(&fault),
            AccessError::BytesLost { .. } | AccessError::Store(_) | AccessError::Ledger(_) => {
                Self::internal(&error)
            }
        }
    }
}

/// The body is written by `finish`, which knows the request's id.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let problem = Problem {
            kind: "about:blank".to_owned(),
            title: self.status.canonical_reason().unwrap_or_default().to_owned(),
            status: self.status.as_u16(),
            code: self.code.into(),
            detail: self.detail,
            request_id: None,
            deletion_reason: self.deleted.map(|(_, reason)| reason.into()),
            deleted_at: self.deleted.map(|(at, _)| at),
        };
        let mut response = self.status.into_response();
        response.headers_mut().extend(self.headers);
        response.extensions_mut().insert(problem);
        if self.is_of_known_token {
            response.extensions_mut().insert(OfKnownToken);
        }
        response
    }
}

/// Writes the bodies of error answers.
pub(super) async fn finish(request: Request, next: Next) -> Response {
    let request_id = request_id::of(&request);
    let is_webhdfs = is_below_root(request.uri().path());
    let mut response = next.run(request).await;
    if is_webhdfs {
        let problem = response.extensions_mut().remove::<Problem>();
        return webhdfs::finish(problem, response);
    }
    let Some(mut problem) = response.extensions_mut().remove::<Problem>() else { return response };
    problem.request_id = request_id;
    let body = serde_json::to_vec(&problem).unwrap_or_default();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(problem::CONTENT_TYPE));
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    *response.body_mut() = body.into();
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_that_lost_its_memory_is_told_why() {
        let told = ApiError::from(UploadError::from(StoreError::TooSlow));
        assert_eq!((told.status.as_u16(), told.code), (503, Code::Overloaded));
        assert!(
            told.detail.contains("too slow") && told.detail.contains("--store-memory"),
            "{}",
            told.detail
        );
    }

    #[test]
    fn every_code_has_a_status_that_exists() {
        for code in Code::ALL {
            assert_eq!(ApiError::new(*code, "").status.as_u16(), code.status(), "{}", code.as_str());
        }
    }
}
