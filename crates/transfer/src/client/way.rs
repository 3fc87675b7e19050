//! A way to a staging server that is no connection of this client's own.

use std::fmt;
use std::io;

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use http_body_util::combinators::BoxBody;
use hyper::header::AUTHORIZATION;
use hyper::http::uri::PathAndQuery;
use hyper::http::{HeaderName, Request, Response, Uri};
use reqwest::{ResponseBuilderExt as _, Url};

use super::address::ServerAddress;
use super::failure::Failure;
use cloakroom_core::protocol::PROXIED_AUTHORIZATION;

/// The body of a request or an answer, of any length.
pub type Body = BoxBody<Bytes, io::Error>;

/// Carries requests to one staging server, past something that keeps `Authorization` for itself.
#[async_trait]
pub trait Way: fmt::Debug + Send + Sync {
    /// The address of the server, as this client names it.
    fn address(&self) -> &ServerAddress;

    /// Sends a request, whose path is that at the server.
    async fn send(&self, request: Request<Body>) -> Result<Response<Body>, Failure>;
}

/// Sends a request by that way.
pub(super) async fn send(way: &dyn Way, request: reqwest::Request) -> Result<reqwest::Response, Failure> {
    let malformed =
        |why: String| Failure::Way { why, status: None, is_transient: false, may_have_arrived: false };
    let url = request.url().clone();
    let request: Request<reqwest::Body> = request.try_into().map_err(|_| malformed(unsendable(&url)))?;
    let mut request = request.map(|body| body.map_err(io::Error::other).boxed());
    let at_server =
        path_at_server(way.address(), request.uri()).ok_or_else(|| malformed(unsendable(&url)))?;
    *request.uri_mut() = at_server;
    if let Some(secret) = request.headers_mut().remove(AUTHORIZATION) {
        request.headers_mut().insert(HeaderName::from_static(PROXIED_AUTHORIZATION), secret);
    }
    let (parts, body) = way.send(request).await?.into_parts();
    let mut response = Response::builder().status(parts.status).url(url.clone());
    if let Some(headers) = response.headers_mut() {
        *headers = parts.headers;
    }
    let response = response.body(reqwest::Body::wrap(body)).map_err(|_| malformed(unsendable(&url)))?;
    Ok(response.into())
}

/// The path of an address that begins with that of the server, without that beginning.
fn path_at_server(server: &ServerAddress, uri: &Uri) -> Option<Uri> {
    let base = server.join("/");
    let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    path.strip_prefix(base.path().trim_end_matches('/'))?.parse().ok()
}

fn unsendable(url: &Url) -> String {
    format!("no request can be sent to {}", super::shown(url))
}
