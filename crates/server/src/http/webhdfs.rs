//! What WebHDFS needs of the layers that every request passes.

use std::time::Duration;

use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;

use super::tokens::TokenFile;
use cloakroom_core::protocol::WireName;
use cloakroom_core::protocol::problem::{Code, Problem};
use cloakroom_core::protocol::webhdfs::{Answer, Exception};

/// How WebHDFS is served.
#[derive(Debug)]
pub struct WebHdfs {
    /// The upload keys; `None` if there is no file of them.
    pub keys: Option<TokenFile>,
    /// Whether a key counts that came unencrypted.
    pub takes_plain_keys: bool,
    /// How long after the last byte of a file its answer may come. Hadoop's client waits for a minute.
    pub answer_within: Duration,
}

impl Default for WebHdfs {
    fn default() -> Self {
        Self { keys: None, takes_plain_keys: false, answer_within: Duration::from_secs(50) }
    }
}

/// Marks the answer that a file is not there yet: Spark asks for each before it uploads it, so this is no refusal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected;

/// Turns an answer into one that Hadoop's client understands: an error is a `RemoteException`, and none has a content type,
/// because a client of Spark 4.3 fails at any. It shows no body of a 401.
pub(super) fn finish(problem: Option<Problem>, mut response: Response) -> Response {
    if let Some(Problem { code, detail, .. }) = problem {
        let (status, exception) = as_exception(&code, response.status());
        let body = body(&exception.with(detail));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        response.headers_mut().remove(WWW_AUTHENTICATE);
        *response.body_mut() = body.into();
    }
    response.headers_mut().remove(CONTENT_TYPE);
    response
}

/// The JSON of an answer.
pub(super) fn body(answer: &Answer) -> Vec<u8> {
    serde_json::to_vec(answer).unwrap_or_default()
}

fn as_exception(code: &WireName<Code>, status: StatusCode) -> (StatusCode, Exception) {
    match code {
        WireName::Known(Code::Unauthorized | Code::Forbidden | Code::InvalidOwner) => {
            (StatusCode::FORBIDDEN, Exception::AccessControl)
        }
        WireName::Known(Code::InUse) => (StatusCode::FORBIDDEN, Exception::FileAlreadyExists),
        WireName::Known(Code::NotFound | Code::Gone | Code::NoSuchPath) => {
            (StatusCode::NOT_FOUND, Exception::FileNotFound)
        }
        _ if status == StatusCode::SERVICE_UNAVAILABLE => (status, Exception::Retriable),
        _ => (status, Exception::Io),
    }
}
