//! The way to a Service through the API server.

use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Empty};
use hyper::StatusCode;
use hyper::body::Body as _;
use hyper::http::uri::PathAndQuery;
use hyper::http::{Request, Response, Uri};

use super::api_server::ApiServer;
use super::connection::{Connection, with_body};
use super::failure::ApiFailure;
use cloakroom_core::protocol::REQUEST_ID;

/// The body of a request or an answer, of any length. The transfer client has the same type.
pub type Body = BoxBody<Bytes, io::Error>;

/// A port of a Service, as the API server's proxy names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServicePort {
    pub namespace: String,
    pub name: String,
    pub port: u16,
    /// Whether the API server speaks https to it. It does not verify the certificate.
    pub has_tls: bool,
}

/// Sends requests to a Service through the API server, with the credentials for the API server.
#[derive(Clone)]
pub struct ServiceProxy {
    connection: Arc<Connection>,
    service: ServicePort,
    /// The address of the API server, for people.
    address: String,
}

/// A request to a server behind the API server had no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// Nothing was sent: the API server was not reached, or there is no credential for it.
    #[error(transparent)]
    NotSent(ApiFailure),
    /// The API server rejected the credential of a plugin, which has given another one. The body of the request is gone.
    #[error("the API server rejected the credential of the kubeconfig's plugin, which has given another one")]
    Renewed,
    /// The connection broke after the request had begun.
    #[error("{why}")]
    Broken { why: String },
}

impl From<kube::Error> for Unanswered {
    fn from(error: kube::Error) -> Self {
        Self::NotSent(error.into())
    }
}

/// As the rules of a role name it: `http:cloakroom:10000`.
impl fmt::Display for ServicePort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.has_tls { "https" } else { "http" };
        write!(f, "{scheme}:{}:{}", self.name, self.port)
    }
}

impl ApiServer {
    /// The way to a Service; `None` if the client of this API server was made elsewhere.
    pub fn service_proxy(&self, service: ServicePort) -> Option<ServiceProxy> {
        let connection = Arc::clone(self.connection()?);
        Some(ServiceProxy { connection, service, address: self.address().to_owned() })
    }
}

impl ServiceProxy {
    /// The address of the API server, for people.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Where the Service is at the API server: a path without a slash at its end.
    pub fn path(&self) -> String {
        format!("/api/v1/namespaces/{}/services/{}/proxy", self.service.namespace, self.service)
    }

    /// Sends a request, whose path is that at the Service. The answer may be the API server's.
    pub async fn send(&self, mut request: Request<Body>) -> Result<Response<Body>, Unanswered> {
        let path = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
        let uri: Result<Uri, _> = format!("{}{path}", self.path()).parse();
        let unsendable = |why: String| Unanswered::NotSent(ApiFailure::Unreachable { why });
        *request.uri_mut() = uri.map_err(|error| unsendable(error.to_string()))?;
        let again = request.body().is_end_stream().then(|| with_body(&request, nothing()));
        let built = self.connection.newest().await?;
        let mut answer = built.stream(request).await?;
        // Each answer of a staging server has this header.
        let is_rejected =
            answer.status() == StatusCode::UNAUTHORIZED && !answer.headers().contains_key(REQUEST_ID);
        if is_rejected && let Some(renewed) = self.connection.after_rejection(&built).await {
            answer = renewed.stream(again.ok_or(Unanswered::Renewed)?).await?;
        }
        Ok(answer)
    }
}

/// The body of a request that has none.
fn nothing() -> Body {
    Empty::new().map_err(|never| match never {}).boxed()
}
