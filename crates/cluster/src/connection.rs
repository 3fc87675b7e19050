//! A client that is built again when one of its files changes, or when a credential expires, because tokens,
//! certificates and CAs rotate.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::StatusCode;
use hyper::http::{Request, Response};
use hyper_util::client::legacy::Error as ClientError;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tower::ServiceExt as _;

use super::access::{Access, Reading};
use super::api_server::Timeouts;
use super::connect_error::ConnectError;
use super::failure::{ApiFailure, Detour};
use super::identity::ClientIdentity;
use super::service_proxy::{self, Unanswered};
use super::throttled::with_retry_after;
use super::transport::{Streams, Target};
use cloakroom_core::reload::{Reload, Seen};
use cloakroom_core::text::chain;
use cloakroom_outbound::causes::find;
use cloakroom_outbound::proxies::Proxy;
use cloakroom_outbound::refusal::Refusal;

/// How long before its expiry the credential of a plugin is renewed.
const BEFORE_EXPIRY: SignedDuration = SignedDuration::from_secs(60);
/// How long a credential that followed a rejection must have counted before another rejection asks the plugin again.
const SETTLED: Duration = Duration::from_mins(1);

/// Sends each request with the newest client.
pub(super) struct Connection {
    access: Access,
    timeouts: Timeouts,
    address: String,
    /// The proxy on the way at the start.
    proxy: Option<Proxy>,
    context_namespace: Option<String>,
    current: Mutex<Current>,
}

struct Current {
    /// `None` until the plugin has given its first credential.
    newest: Option<Built>,
    files: Reload,
    /// It runs apart from the calls that wait for it: a call that gives up does not end it.
    renewal: Option<Renewal>,
    /// The last renewal began then.
    renewed: Instant,
    /// Why the last renewal failed, and when.
    failed: Option<(Instant, NoClient)>,
}

/// There is no client yet, because a plugin gave no credential.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(super) struct NoClient(String);

/// A client, as long as its credential counts.
#[derive(Clone)]
pub(super) struct Built {
    client: Client,
    streams: Streams,
    /// The proxy on the way, for messages.
    proxy: Option<Proxy>,
    by_plugin: bool,
    expires_at: Option<Timestamp>,
    /// Whether the API server had rejected the credential before this one.
    after_rejection: bool,
    at: Instant,
}

struct Renewal {
    /// The stamps of the files before they are read.
    seen: Seen,
    task: JoinHandle<Result<(Built, Seen), ConnectError>>,
}

impl Connection {
    /// Reads the files, and builds the first client unless a plugin must be asked for it.
    pub(super) fn open(access: &Access, timeouts: Timeouts) -> Result<Self, ConnectError> {
        let reading = access.read()?;
        let (address, files) = (reading.address.clone(), Reload::new(reading.seen.clone()));
        let (proxy, context_namespace) = (reading.proxy.clone(), reading.context_namespace.clone());
        let built = Built::new(&reading, None, timeouts)?;
        let newest = reading.plugin.is_none().then_some(built);
        let current = Current { newest, files, renewal: None, renewed: Instant::now(), failed: None };
        Ok(Self {
            access: access.clone(),
            timeouts,
            address,
            proxy,
            context_namespace,
            current: Mutex::new(current),
        })
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    pub(super) fn proxy(&self) -> Option<&Proxy> {
        self.proxy.as_ref()
    }

    pub(super) fn context_namespace(&self) -> Option<&str> {
        self.context_namespace.as_deref()
    }

    /// A client that sends all its requests through this connection.
    pub(super) fn client(self: Arc<Self>) -> Client {
        let service = tower::service_fn(move |request| Arc::clone(&self).send(request));
        Client::new(service, "default")
    }

    async fn send(self: Arc<Self>, request: Request<Body>) -> kube::Result<Response<Body>> {
        let built = self.newest().await?;
        let again = built.by_plugin.then(|| copy(&request)).flatten();
        let answer = built.send(request).await?;
        let Some(again) = again.filter(|_| answer.status() == StatusCode::UNAUTHORIZED) else {
            return Ok(answer);
        };
        // A call that was rejected did nothing.
        match self.after_rejection(&built).await {
            Some(renewed) => renewed.send(again).await,
            None => Ok(answer),
        }
    }

    /// The newest client. Waits for the plugin if there is none yet, or if the credential expires.
    pub(super) async fn newest(&self) -> kube::Result<Built> {
        let asked_at = Instant::now();
        let mut current = self.current.lock().await;
        // Calls that waited for the same run of a plugin share its failure.
        if let (None, Some((_, why))) =
            (&current.newest, current.failed.as_ref().filter(|(at, _)| *at >= asked_at))
        {
            return Err(kube::Error::Service(why.clone().into()));
        }
        let is_due = current.files.is_due(self.timeouts.look_again);
        let now = is_due.then(|| current.files.look());
        let has_changed = now.as_ref().is_some_and(|now| current.files.has_changed(now));
        if has_changed || self.must_ask_plugin(&current) {
            let now = now.unwrap_or_else(|| current.files.look());
            self.begin_renewal(&mut current, now, false);
        }
        if let (Some(built), Some(renewal)) = (&current.newest, &current.renewal)
            && !(has_changed || renewal.task.is_finished() || built.has_expired())
        {
            // Its credential counts until the plugin has given the next one.
            return Ok(built.clone());
        }
        match (self.end_renewal(&mut current).await, &current.newest) {
            (Err(why), None) => Err(kube::Error::Service(why.into())),
            (_, Some(built)) => Ok(built.clone()),
            (Ok(()), None) => Err(kube::Error::Service("there is no client for the API server yet".into())),
        }
    }

    /// Reads all files again, even if they have not changed.
    pub(super) async fn look(&self) {
        let mut current = self.current.lock().await;
        let now = current.files.look_anew();
        self.begin_renewal(&mut current, now, false);
        // Its failure is logged.
        let _ = self.end_renewal(&mut current).await;
    }

    /// Asks the plugin again, once, after the API server has rejected what it gave. `None` if that does not help, or if the
    /// credential is no plugin's.
    pub(super) async fn after_rejection(&self, rejected: &Built) -> Option<Built> {
        if !rejected.by_plugin {
            return None;
        }
        let mut current = self.current.lock().await;
        let is_newest = current.newest.as_ref().is_none_or(|newest| newest.at == rejected.at);
        if !is_newest {
            return current.newest.clone();
        }
        if rejected.after_rejection && rejected.at.elapsed() < SETTLED {
            return None;
        }
        let now = current.files.look_anew();
        self.begin_renewal(&mut current, now, true);
        self.end_renewal(&mut current).await.ok().and_then(|()| current.newest.clone())
    }

    fn must_ask_plugin(&self, current: &Current) -> bool {
        match &current.newest {
            None => true,
            Some(built) => built.is_expiring() && current.renewed.elapsed() >= self.timeouts.look_again,
        }
    }

    fn begin_renewal(&self, current: &mut Current, seen: Seen, after_rejection: bool) {
        if current.renewal.is_none() {
            current.renewed = Instant::now();
            let renewing =
                read_again(self.access.clone(), self.timeouts, self.address.clone(), after_rejection);
            current.renewal = Some(Renewal { seen, task: tokio::spawn(renewing) });
        }
    }

    /// Waits for the renewal, if there is one. If it fails, for example with a file that is half-written, the old client
    /// stays.
    async fn end_renewal(&self, current: &mut Current) -> Result<(), NoClient> {
        let Some(renewal) = &mut current.renewal else { return Ok(()) };
        let ended = (&mut renewal.task).await;
        let ended = ended.unwrap_or_else(|error| Err(self.broken_off(&error)));
        let Some(Renewal { seen, .. }) = current.renewal.take() else { return Ok(()) };
        match current.files.take(seen, ended.as_ref().map(|(built, used)| (built.clone(), used.clone()))) {
            Some(Ok(built)) => {
                if current.newest.replace(built).is_some() {
                    tracing::info!("read the credentials for the API server again");
                }
            }
            Some(Err(error)) if current.newest.is_some() => {
                tracing::warn!(error = %chain(error), "the credentials for the API server stay as they were");
            }
            Some(Err(_)) | None => {}
        }
        ended.map(drop).map_err(|error| {
            let why = NoClient(chain(&error));
            current.failed = Some((Instant::now(), why.clone()));
            why
        })
    }

    fn broken_off(&self, error: &tokio::task::JoinError) -> ConnectError {
        ConnectError::Setup { address: self.address.clone(), why: error.to_string() }
    }
}

/// Reads all files, on a thread that may block, and asks the plugin.
async fn read_again(
    access: Access,
    timeouts: Timeouts,
    old: String,
    after_rejection: bool,
) -> Result<(Built, Seen), ConnectError> {
    let address = old.clone();
    let reading = tokio::task::spawn_blocking(move || {
        let reading = access.read()?;
        // A watch on another cluster would report all owners as absent.
        if reading.address != old {
            return Err(ConnectError::Moved { old, new: reading.address });
        }
        Ok(reading)
    });
    let failed = |error: tokio::task::JoinError| ConnectError::Setup { address, why: error.to_string() };
    let reading = reading.await.map_err(failed)??;
    let issued = match &reading.plugin {
        Some(plugin) => Some(plugin.run(timeouts.plugin).await?),
        None => None,
    };
    let expires_at = issued.as_ref().and_then(|issued| issued.expires_at);
    let built = Built::new(&reading, issued.map(|issued| issued.identity), timeouts)?;
    Ok((Built { expires_at, after_rejection, ..built }, reading.seen))
}

impl Built {
    /// Builds a client for what was read. What a plugin gave takes the place of the kubeconfig's.
    fn new(
        reading: &Reading,
        issued: Option<ClientIdentity>,
        timeouts: Timeouts,
    ) -> Result<Self, ConnectError> {
        let mut config = reading.config.clone();
        let (token, certificate) =
            issued.map_or((None, None), |issued| (issued.auth.token, issued.certificate));
        config.auth_info.token = token.or(config.auth_info.token);
        let target = Target {
            config: &config,
            certificate: certificate.as_ref().or(reading.certificate.as_ref()),
            proxy: reading.proxy.as_ref(),
            timeouts,
        };
        let (client, streams) = target
            .clients()
            .map_err(|error| ConnectError::Setup { address: reading.address.clone(), why: chain(&*error) })?;
        Ok(Self {
            client,
            streams,
            proxy: reading.proxy.clone(),
            by_plugin: reading.plugin.is_some(),
            expires_at: None,
            after_rejection: false,
            at: Instant::now(),
        })
    }

    fn has_expired(&self) -> bool {
        self.expires_at.is_some_and(|end| Timestamp::now() >= end)
    }

    fn is_expiring(&self) -> bool {
        self.expires_at.is_some_and(|end| Timestamp::now() + BEFORE_EXPIRY >= end)
    }

    async fn send(&self, request: Request<Body>) -> kube::Result<Response<Body>> {
        let answer = self.client.send(request).await.map(with_retry_after);
        answer.map_err(|error| self.through_proxy(error))
    }

    /// Sends a request whose body may be long.
    pub(super) async fn stream(
        &self,
        request: Request<service_proxy::Body>,
    ) -> Result<Response<service_proxy::Body>, Unanswered> {
        self.streams.clone().oneshot(request).await.map_err(|error| {
            let has_begun = find::<ClientError>(&*error).is_some_and(|error| !error.is_connect());
            match ApiFailure::from(self.through_proxy(kube::Error::Service(error))) {
                ApiFailure::Unreachable { why } if has_begun => Unanswered::Broken { why },
                failure => Unanswered::NotSent(failure),
            }
        })
    }

    /// Tells an error of the proxy on the way.
    fn through_proxy(&self, error: kube::Error) -> kube::Error {
        let Some(proxy) = &self.proxy else { return error };
        kube::Error::Service(match Refusal::from_error(&error, proxy) {
            Some(refusal) => refusal.into(),
            None => Detour::new(proxy.to_string(), &error).into(),
        })
    }
}

/// A copy of a request with a body that is in memory, as all but uploads are.
fn copy(request: &Request<Body>) -> Option<Request<Body>> {
    Some(with_body(request, request.body().try_clone()?))
}

/// A copy of a request with this body.
pub(super) fn with_body<B>(request: &Request<B>, body: B) -> Request<B> {
    let mut copy = Request::new(body);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    copy
}
