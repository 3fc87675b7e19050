//! WebHDFS, as far as Spark uses it: each file is a resource, and the name of its folder is the right to read it.

mod access;
mod read;
mod upload;

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use percent_encoding::{CONTROLS, utf8_percent_encode};

use super::address::{host, scheme};
use crate::http::error::ApiError;
use crate::http::proxies::Sender;
use crate::http::state::AppState;
use crate::http::webhdfs::{WebHdfs, body};
use cloakroom_core::protocol::problem::Code;
use cloakroom_core::protocol::webhdfs::{Answer, Operation, Place};
use cloakroom_core::resource::FileName;

/// Everything below the root of WebHDFS.
const BELOW: &str = "/webhdfs/v1/{*below}";

pub(super) fn routes(webhdfs: &Arc<WebHdfs>) -> Router<AppState> {
    let webhdfs = Arc::clone(webhdfs);
    let handler =
        move |State(state): State<AppState>, ConnectInfo(peer): ConnectInfo<SocketAddr>, request: Request| {
            let webhdfs = Arc::clone(&webhdfs);
            async move { answer(&webhdfs, state, peer, request).await }
        };
    Router::new().route(BELOW, any(handler))
}

/// A request that names a place.
struct Call {
    state: AppState,
    peer: SocketAddr,
    place: Place,
    head: Parts,
}

impl Call {
    /// The name of the file, without which there is none to write or to read.
    fn file_name(&self) -> Result<&FileName, ApiError> {
        let missing = || ApiError::new(Code::Forbidden, "the path of a folder: name the file in it");
        self.place.name.as_ref().ok_or_else(missing)
    }

    fn sender(&self) -> Sender {
        self.state.settings.trusted_proxies.sender(self.peer.ip(), &self.head.headers)
    }

    fn query(&self) -> &str {
        self.head.uri.query().unwrap_or_default()
    }

    /// The first step of an operation that has two: the address of the second one. That needs no state, so another server can
    /// answer it.
    fn second_step(&self) -> Result<Response, ApiError> {
        let (settings, headers) = (&self.state.settings, &self.head.headers);
        let host = host(headers).ok_or_else(|| {
            ApiError::new(
                Code::InvalidHeader,
                "the header Host must name this server: it is where the file goes to",
            )
        })?;
        let scheme = scheme(settings, self.peer.ip(), headers, &host);
        let path_and_query = format!("{}?{}", self.head.uri.path(), Operation::second_step(self.query()));
        // Java writes names as they are, and reads this header as Latin-1.
        let location = format!("{scheme}://{host}{}", utf8_percent_encode(&path_and_query, CONTROLS));
        let location = HeaderValue::from_str(&location).map_err(|error| ApiError::internal(&error))?;
        Ok((StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, location)]).into_response())
    }
}

async fn answer(
    webhdfs: &WebHdfs,
    state: AppState,
    peer: SocketAddr,
    request: Request,
) -> Result<Response, ApiError> {
    let (head, body) = request.into_parts();
    let query = head.uri.query().unwrap_or_default();
    let operation = Operation::parse(head.method.as_str(), query).map_err(|error| forbidden(&error))?;
    let place = Place::parse(head.uri.path()).map_err(|error| forbidden(&error))?;
    if let Some(namespaces) = &state.settings.namespaces {
        namespaces.check(&place.namespace)?;
    }
    let call = Call { state, peer, place, head };
    match operation {
        Operation::Put(put) => upload::answer(webhdfs, &call, put, body).await,
        Operation::Get(get) => read::answer(&call, get).await,
    }
}

fn forbidden(error: &dyn Error) -> ApiError {
    ApiError::new(Code::Forbidden, error.to_string())
}

fn json(answer: &Answer) -> Response {
    body(answer).into_response()
}
