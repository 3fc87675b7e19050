//! The way to a staging server through the API server, for users who have only a kubeconfig. If the server names an address
//! that this machine reaches, that is the way.

mod directly;
mod forwarded;
mod refusal;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use async_trait::async_trait;
use http_body_util::{BodyExt as _, Collected, Limited};
use hyper::header::WWW_AUTHENTICATE;
use hyper::http::{Request, Response};

use self::directly::Directly;
use self::forwarded::{Forwarded, HEAD_START};
use self::refusal::Words;
use super::place::{PORT, Route, ServerService};
use cloakroom_cluster::calls::{self, Calls};
use cloakroom_cluster::{ApiFailure, ApiServer, ServicePort, ServiceProxy, Unanswered};
use cloakroom_core::protocol::v1::UploadAuthKind;
use cloakroom_core::protocol::{CHALLENGE, PROXIED_AUTHORIZATION, REQUEST_ID, WireName};
use cloakroom_spark::keys;
use cloakroom_transfer::client::{
    Body, Failure, GivenUp, HttpClient, RetryPolicy, ServerAddress, Told, Tried, Way,
};

/// Words of the API server that has no way to a pod. The second ones are those of one that opens its connections through a
/// tunnel, such as that of k3s.
const NO_WAY: [&str; 2] = ["dial tcp", "while dialing "];

/// Its words if the server has TLS and was asked by http, or the other way round. Such a server has not taken the request.
const OTHER_SCHEME: [&str; 2] =
    ["malformed HTTP response", "first record does not look like a TLS handshake"];

/// How much of an answer of the API server is read.
const LONGEST_ANSWER: usize = 16 << 10;

/// A staging server that was reached through the API server.
pub struct Reached {
    /// Sends its requests that way.
    pub http: HttpClient,
    /// The server, as this client names it.
    pub address: ServerAddress,
    /// The Service, with what is known of it now.
    pub service: ServerService,
    /// How URLs begin by which pods reach the server.
    pub internal_url: ServerAddress,
    /// The image that the server advertises for init-containers.
    pub fetch_image: Option<String>,
    /// The credential that uploads need; `None` if the server does not tell.
    pub upload_auth: Option<WireName<UploadAuthKind>>,
    /// A warning about the way.
    pub warning: Option<String>,
}

impl Reached {
    /// The way to the server, as the end of a sentence.
    pub fn way(&self, api_server: &ApiServer) -> String {
        let way = api_server.way();
        match &self.service.route {
            Some(Route::Direct(address)) => format!("at {address}"),
            Some(Route::Stream) => {
                format!("by a stream to its pod through the API server {way}, whose proxy does not reach it")
            }
            Some(Route::Proxy { .. }) | None => format!("through the API server {way}"),
        }
    }
}

impl ServerService {
    /// Finds the way to the server, also if the one server in the namespace has another name than the usual one. A Service
    /// without a ready pod is waited for, because the server may be on its way to another node.
    pub async fn reach(
        &self,
        api_server: &ApiServer,
        http: &HttpClient,
        policy: RetryPolicy,
        told: Told<'_>,
    ) -> Result<Reached, GivenUp> {
        let reached = self.reach_named(api_server, http, policy, told).await;
        let Err(given_up) = reached else { return reached };
        let may_have_another_name = matches!(given_up.failure, Failure::Way { status: Some(403 | 404), .. });
        if self.is_named || !may_have_another_name {
            return Err(given_up);
        }
        match service_names(api_server, &self.namespace).await.as_slice() {
            [] => Err(given_up),
            [name] if *name == self.name => Err(given_up),
            [name] => {
                let service = Self { name: name.clone(), ..self.clone() };
                service.reach_named(api_server, http, policy, told).await
            }
            names => Err(GivenUp { failure: self.ambiguous(names), tried: Tried::Once }),
        }
    }

    async fn reach_named(
        &self,
        api_server: &ApiServer,
        http: &HttpClient,
        policy: RetryPolicy,
        told: Told<'_>,
    ) -> Result<Reached, GivenUp> {
        let failed = |failure| GivenUp { failure, tried: Tried::Once };
        let (_, address) = self.proxy(api_server, false).map_err(failed)?;
        http.retried(&address, policy, told, || self.reach_once(api_server, http)).await
    }

    fn ambiguous(&self, names: &[String]) -> Failure {
        let (namespace, names) = (&self.namespace, names.join(", "));
        let why = format!(
            "the namespace {namespace} has several staging servers, behind the Services {names}: name one by \
             --server-service, in a submission by `{}`",
            keys::CLOAKROOM_SERVER_SERVICE
        );
        unusable(why)
    }

    /// Asks through the proxy. If that has no way to the pod, or says nothing for a while, a stream to the pod may be one.
    async fn reach_once(&self, api_server: &ApiServer, http: &HttpClient) -> Result<Reached, Failure> {
        let mut by_proxy = Box::pin(self.reach_by_proxy(api_server, http));
        let mut by_stream = Box::pin(self.reach_by(api_server, http, Route::Stream));
        let failed = tokio::select! {
            biased;
            reached = &mut by_proxy => match reached {
                Err(failure) if forwarded::may_help(&failure) => failure,
                reached => return reached,
            },
            reached = async { tokio::time::sleep(HEAD_START).await; by_stream.as_mut().await } => {
                return match reached {
                    Ok(reached) => Ok(reached),
                    Err(by_stream) => by_proxy.await.map_err(|failed| forwarded::neither(failed, &by_stream)),
                };
            }
        };
        by_stream.await.map_err(|by_stream| forwarded::neither(failed, &by_stream))
    }

    /// Asks by http first, because only the Service's port is known and not whether it has TLS.
    async fn reach_by_proxy(&self, api_server: &ApiServer, http: &HttpClient) -> Result<Reached, Failure> {
        let by_http = self.reach_by(api_server, http, Route::Proxy { has_tls: false }).await;
        // Without an answer, another question would only take as long again.
        let Err(failure @ Failure::Way { status: Some(_), .. }) = by_http else { return by_http };
        let by_https = self.reach_by(api_server, http, Route::Proxy { has_tls: true }).await;
        let Err(other) = by_https else { return by_https };
        // The right names one of the two, so the other one is always forbidden. If it names the wrong one, the refusal of
        // the right one says more.
        let is_allowed = is_forbidden(&failure) && !is_forbidden(&other) && !speaks_otherwise(&other);
        let is_about_https = is_allowed || speaks_otherwise(&failure);
        Err(if is_about_https { other } else { failure })
    }

    async fn reach_by(
        &self,
        api_server: &ApiServer,
        http: &HttpClient,
        route: Route,
    ) -> Result<Reached, Failure> {
        let (proxied, address) = self.client_by(&route, api_server, http)?;
        let began = Instant::now();
        let info = proxied.server_info(&address).await?;
        let mut service = Self { route: Some(route), ..self.clone() };
        let internal_url = info.internal_url.unwrap_or_else(|| service.url_of_pods());
        let internal_url = ServerAddress::parse(&internal_url).map_err(|error| Failure::Foreign {
            why: format!("pods cannot use the address that it has for them (--internal-url): {error}"),
        })?;
        let mut warning = None;
        match directly::ask(info.public_url.as_deref(), http, began.elapsed()).await {
            Directly::Reached(address) => service.route = Some(Route::Direct(address)),
            Directly::Unverified(told) => warning = Some(told),
            Directly::No => {}
        }
        let (http, address) = service.client(api_server, http)?;
        let (fetch_image, upload_auth) = (info.fetch_image, info.upload_auth);
        Ok(Reached { http, address, service, internal_url, fetch_image, upload_auth, warning })
    }

    /// A client that sends its requests that way, with the server's address in it.
    pub fn client(
        &self,
        api_server: &ApiServer,
        http: &HttpClient,
    ) -> Result<(HttpClient, ServerAddress), Failure> {
        let route = self.route.as_ref().unwrap_or(&Route::Proxy { has_tls: false });
        self.client_by(route, api_server, http)
    }

    fn client_by(
        &self,
        route: &Route,
        api_server: &ApiServer,
        http: &HttpClient,
    ) -> Result<(HttpClient, ServerAddress), Failure> {
        let has_tls = match route {
            Route::Direct(address) => return Ok((http.clone(), address.clone())),
            Route::Stream => false,
            Route::Proxy { has_tls } => *has_tls,
        };
        let (proxy, address) = self.proxy(api_server, has_tls)?;
        let (at, service) = (address.clone(), self.clone());
        let way: Arc<dyn Way> = if *route == Route::Stream {
            let (api_server, was_away) = (api_server.clone(), AtomicBool::default());
            Arc::new(Forwarded { api_server, address: at, service, was_away })
        } else {
            Arc::new(ThroughApiServer { proxy, address: at, service, was_away: AtomicBool::default() })
        };
        Ok((http.clone().by(way, self.has_answered()), address))
    }

    /// Whether it has answered this client.
    fn has_answered(&self) -> bool {
        self.route.is_some()
    }

    /// The way to the Service, and its address at the API server.
    fn proxy(&self, api_server: &ApiServer, has_tls: bool) -> Result<(ServiceProxy, ServerAddress), Failure> {
        let (namespace, name) = (self.namespace.clone(), self.name.clone());
        let service = ServicePort { namespace, name, port: PORT, has_tls };
        let proxy = api_server
            .service_proxy(service)
            .ok_or_else(|| unusable("the API server cannot be asked: its client was made elsewhere"))?;
        let address = format!("{}{}", proxy.address().trim_end_matches('/'), proxy.path());
        let address = ServerAddress::parse(&address).map_err(|error| unusable(error.to_string()))?;
        Ok((proxy, address.called(&self.to_string())))
    }
}

fn is_forbidden(failure: &Failure) -> bool {
    matches!(failure, Failure::Way { status: Some(403), .. })
}

/// Whether the server has TLS and was asked by http, or the other way round.
fn speaks_otherwise(failure: &Failure) -> bool {
    matches!(failure, Failure::Way { why, .. } if has_any(why, &OTHER_SCHEME))
}

fn has_any(text: &str, parts: &[&str]) -> bool {
    parts.iter().any(|part| text.contains(part))
}

/// The failure of a way that cannot be used at all.
pub fn unusable(why: impl Into<String>) -> Failure {
    Failure::Way { why: why.into(), status: None, is_transient: false, may_have_arrived: false }
}

/// The failure of a call on the way to the API server at this address.
fn failed_call(failure: &ApiFailure, address: &str) -> Failure {
    let (mut why, is_transient) = (calls::said(failure), failure.is_transient());
    match failure {
        ApiFailure::Untrusted { .. } => why.push_str(
            ": name the CA that signed its certificate by certificate-authority in the kubeconfig, and a host name that the \
             certificate is for",
        ),
        ApiFailure::Unreachable { why: cause } => why = calls::unreachable(address, cause),
        _ => {}
    }
    Failure::Way { why, status: None, is_transient, may_have_arrived: false }
}

/// The failure of a request to the server that had no answer.
fn failed_request(failure: Unanswered, address: &str) -> Failure {
    match failure {
        Unanswered::NotSent(failure) => failed_call(&failure, address),
        Unanswered::Renewed => Failure::Way {
            why: failure.to_string(),
            status: None,
            is_transient: true,
            may_have_arrived: false,
        },
        Unanswered::Broken { why } => Failure::Broken { why: format!("through the API server: {why}") },
    }
}

struct ThroughApiServer {
    proxy: ServiceProxy,
    address: ServerAddress,
    service: ServerService,
    /// Whether a connection broke on the way since the last answer of the server.
    was_away: AtomicBool,
}

impl fmt::Debug for ThroughApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ThroughApiServer({})", self.address)
    }
}

#[async_trait]
impl Way for ThroughApiServer {
    fn address(&self) -> &ServerAddress {
        &self.address
    }

    async fn send(&self, request: Request<Body>) -> Result<Response<Body>, Failure> {
        let secret = request.headers().get(PROXIED_AUTHORIZATION).and_then(|value| value.to_str().ok());
        let secret = secret.map(|value| value.trim_start_matches("Bearer ").to_owned()).unwrap_or_default();
        let answer = match self.proxy.send(request).await {
            Ok(answer) => answer,
            Err(failure) => {
                self.was_away.store(true, Ordering::Relaxed);
                return Err(failed_request(failure, self.proxy.address()));
            }
        };
        // Each answer of a staging server has it, and none of the API server.
        if answer.headers().contains_key(REQUEST_ID) || answer.status().is_success() {
            self.was_away.store(false, Ordering::Relaxed);
            let is_challenge = answer.headers().get(WWW_AUTHENTICATE).is_some_and(|value| value == CHALLENGE);
            return if is_challenge && !secret.is_empty() { Err(self.dropped_secret()) } else { Ok(answer) };
        }
        let (parts, body) = answer.into_parts();
        let body = Limited::new(body, LONGEST_ANSWER).collect().await.map(Collected::to_bytes);
        let failure = self.refusal(parts.status, &Words::read(&body.unwrap_or_default(), &secret));
        if failure.is_break() {
            self.was_away.store(true, Ordering::Relaxed);
        }
        Err(failure)
    }
}

/// Manifests and chart give it to all that they make.
const SELECTOR: &str = "app.kubernetes.io/name=cloakroom";

/// They give it to the Service of the operational port only.
const COMPONENT: &str = "app.kubernetes.io/component";

/// The largest number of Services that are looked at.
const MOST_SERVICES: usize = 100;

/// The names of the Services for clients in a namespace: a staging server may have another name than the usual one. There are none for a user who may not list them.
async fn service_names(api_server: &ApiServer, namespace: &str) -> Vec<String> {
    let services = Calls::new(api_server, namespace).list("services", SELECTOR, MOST_SERVICES).await;
    let services = services.unwrap_or_default().into_iter();
    let for_clients = services.filter(|service| service["metadata"]["labels"][COMPONENT].is_null());
    let mut names: Vec<String> =
        for_clients.filter_map(|service| service["metadata"]["name"].as_str().map(str::to_owned)).collect();
    names.sort();
    names
}
