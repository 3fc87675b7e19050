//! The way to a Service through the API server. As the real one, it keeps `Authorization` for itself, and it sends the body on while
//! it arrives.

use axum::body::Body;
use axum::http::header::{AUTHORIZATION, HOST};
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::response::Response;
use serde_json::Value;

use super::Shared;
use super::access::Attributes;
use super::answers::Refusal;
use super::faults::{Call, Verb};
use crate::tls;
use cloakroom_core::protocol::FORWARDED_URI;

/// A request for a Service.
pub struct Wanted {
    request: axum::extract::Request,
    namespace: String,
    /// `http:NAME:PORT`
    service: String,
    /// The path at the Service, and the query.
    path: String,
}

impl Wanted {
    /// Returns any other request as it is.
    pub fn read(request: axum::extract::Request) -> Result<Self, Box<axum::extract::Request>> {
        let uri = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
        let parts: Vec<&str> = uri.splitn(9, '/').collect();
        match parts[..] {
            ["", "api", "v1", "namespaces", namespace, "services", service, "proxy", path] => Ok(Self {
                namespace: namespace.to_owned(),
                service: service.to_owned(),
                path: path.to_owned(),
                request,
            }),
            _ => Err(Box::new(request)),
        }
    }

    pub async fn answer(self, shared: &Shared) -> Result<Response, Refusal> {
        let Self { request, namespace, service, path } = self;
        let to = {
            let mut inside = shared.lock();
            let user = inside.access.user(token(request.headers()));
            let user = user.cloned().ok_or_else(|| Refusal::new(401, "Unauthorized"))?;
            inside.calls.push(Call {
                verb: Verb::Any,
                user: user.name.clone(),
                path: request.uri().path().to_owned(),
                query: Vec::new(),
                content_type: String::new(),
                body: Value::Null,
            });
            let wanted = Attributes {
                verb: verb(request.method()).to_owned(),
                group: String::new(),
                resource: "services/proxy".to_owned(),
                namespace: namespace.clone(),
                name: service.clone(),
            };
            if !inside.access.allows(&user.name, &user.groups, &wanted) {
                return Err(Refusal::new(403, wanted.refusal(&user.name)));
            }
            inside.services.get(&(namespace, service.clone())).copied()
        };
        let name = service.split(':').nth(1).unwrap_or_default();
        let to = to.ok_or_else(|| Refusal::new(404, format!("services \"{name}\" not found")))?;
        let (parts, body) = request.into_parts();
        let mut headers = parts.headers;
        headers.remove(AUTHORIZATION);
        headers.remove(HOST);
        headers.insert(FORWARDED_URI, HeaderValue::from_str(parts.uri.path()).unwrap());
        let client = reqwest::Client::builder().no_proxy().tls_backend_preconfigured(tls::no_roots());
        let sent = client
            .build()
            .unwrap()
            .request(parts.method, format!("http://{to}/{path}"))
            .headers(headers)
            .body(reqwest::Body::wrap_stream(body.into_data_stream()))
            .send();
        match sent.await {
            Ok(answer) => Ok(axum::http::Response::from(answer).map(Body::new)),
            Err(error) if error.is_connect() => Err(Refusal::new(
                503,
                format!("error trying to reach service: dial tcp {to}: connect: connection refused"),
            )),
            Err(_) => Err(Refusal::new(503, "error trying to reach service: EOF")),
        }
    }
}

fn token(headers: &HeaderMap) -> &str {
    let value = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.strip_prefix("Bearer ").unwrap_or_default()
}

/// As the API server names a method for a proxy.
fn verb(method: &Method) -> &'static str {
    match *method {
        Method::POST => "create",
        Method::PUT => "update",
        Method::DELETE => "delete",
        _ => "get",
    }
}
