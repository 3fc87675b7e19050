//! The way to a Service through the API server.

use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use http_body_util::combinators::BoxBody;
use hyper::http::uri::PathAndQuery;
use hyper::http::{Request, Response, Uri};

use super::api_server::ApiServer;
use super::connection::Connection;
use super::failure::ApiFailure;

/// The body of a request or an answer, of any length. The transfer client has the same type.
pub type Body = BoxBody<Bytes, io::Error>;

/// A port of a Service, as the API server's proxy names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServicePort {
    /// The namespace of the Service.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its port.
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
    /// The Service.
    pub fn service(&self) -> &ServicePort {
        &self.service
    }

    /// The address of the API server, for people.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Where the Service is at the API server: a path without a slash at its end.
    pub fn path(&self) -> String {
        format!("/api/v1/namespaces/{}/services/{}/proxy", self.service.namespace, self.service)
    }

    /// Sends a request, whose path is that at the Service. The answer may be the API server's.
    pub async fn send(&self, mut request: Request<Body>) -> Result<Response<Body>, ApiFailure> {
        let path = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
        let uri: Result<Uri, _> = format!("{}{path}", self.path()).parse();
        *request.uri_mut() = uri.map_err(|error| ApiFailure::Unreachable { why: error.to_string() })?;
        let built = self.connection.newest().await?;
        let answer = built.stream(request).await?;
        Ok(answer.map(|body| body.map_err(io::Error::other).boxed()))
    }
}
