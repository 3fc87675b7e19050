//! The connections, with the settings that all requests share.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, ClientBuilder, RequestBuilder, Response};
use rustls::ClientConfig;
use tokio::time::timeout;

use super::address::shown;
use super::answer::{Answer, BODY_TIMEOUT, read_into};
use super::failure::{Failure, classify};
use super::way::{self, Way};
use cloakroom_outbound::certificates::{TrustError, TrustedCertificates, client_config};
use cloakroom_outbound::proxies::Proxies;
use cloakroom_outbound::through::{proxy_to, through};

/// The program's name in requests.
const USER_AGENT: &str = concat!("cloakroom/", env!("CARGO_PKG_VERSION"));
/// How many redirections are followed for a file on the web.
const MAX_REDIRECTIONS: usize = 10;

/// The time limits. None of them limits a whole transfer.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// For opening a connection, TLS included.
    pub connect: Duration,
    /// For the next byte, in either direction.
    pub stall: Duration,
    /// For the answer to a small request, with the connection included.
    pub request: Duration,
    /// The upper limit for the answer to a complete upload: the server makes the bundle durable before it answers.
    pub answer: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            // The address of a pod that has just ended drops packets. Only a new attempt can reach another pod.
            connect: Duration::from_secs(4),
            stall: Duration::from_secs(30),
            request: Duration::from_secs(10),
            answer: Duration::from_mins(10),
        }
    }
}

/// How long the client waits at least for the answer to an upload.
const SHORTEST_ANSWER: Duration = Duration::from_secs(30);
/// The speed of a slow disk, by which the wait for an answer grows.
const DURABLE_BYTES_PER_SECOND: u64 = 8 << 20;

impl Timeouts {
    /// How long to wait for the answer to an upload that was sent completely in the time `sending`. If sending was
    /// slow, the disk may be slow, too, and buffers on the way may still hold bytes.
    pub(super) fn answer_to(&self, sent_bytes: u64, sending: Duration) -> Duration {
        let writing = Duration::from_secs(sent_bytes / DURABLE_BYTES_PER_SECOND);
        let patience = SHORTEST_ANSWER.saturating_add(writing).saturating_add(sending);
        Duration::from_secs(patience.as_secs()).min(self.answer)
    }
}

/// Makes requests to one staging server, whose redirections are not followed, and to the web. It uses the proxies of the
/// environment.
#[derive(Debug, Clone)]
pub struct HttpClient {
    server: Client,
    web: Client,
    proxies: Proxies,
    timeouts: Timeouts,
    /// How requests reach the staging server; `None` for connections of this client's own.
    way: Option<Arc<dyn Way>>,
    /// Whether the staging server has ever answered. Clones share it.
    has_answered: Arc<AtomicBool>,
}

/// The reason why an HTTP client cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The certificates to trust are not usable.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// reqwest refused its settings.
    #[error("cannot set up the HTTP client")]
    Client(#[source] reqwest::Error),
}

impl HttpClient {
    /// Makes a client that trusts the system's roots and the certificates in `ca_files`.
    pub fn new(ca_files: &[PathBuf], timeouts: Timeouts) -> Result<Self, SetupError> {
        let trusted = TrustedCertificates::read(ca_files).map_err(TrustError::from)?;
        Self::trusting(&trusted, timeouts)
    }

    /// The same with certificates that were read before: a file such as `<(…)` can be read only once.
    pub fn trusting(trusted: &TrustedCertificates, timeouts: Timeouts) -> Result<Self, SetupError> {
        let tls = client_config(trusted)?;
        let proxies = Proxies::from_environment();
        let client = |policy| {
            let client = settings(&tls, timeouts).redirect(policy).proxy(through(proxies.clone()));
            client.build().map_err(SetupError::Client)
        };
        let (server, web) = (client(Policy::none())?, client(web_policy())?);
        Ok(Self { server, web, proxies, timeouts, way: None, has_answered: Arc::default() })
    }

    /// Whether requests to the staging server go by another way than a connection to its address.
    pub(super) fn has_way(&self) -> bool {
        self.way.is_some()
    }

    /// The same client, whose requests to the staging server go by that way. It waits longer for a server that has answered
    /// before.
    pub fn by(self, way: Arc<dyn Way>, has_answered: bool) -> Self {
        Self { way: Some(way), has_answered: Arc::new(AtomicBool::new(has_answered)), ..self }
    }

    /// The time limits.
    pub fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    /// The client for a staging server. It returns redirections as answers, so that no ticket goes to another server.
    pub(super) fn to_server(&self) -> &Client {
        &self.server
    }

    /// Sends a request to the staging server, and returns when the head of the answer is there.
    pub(super) async fn ask(&self, request: RequestBuilder) -> Result<Response, Failure> {
        let response = self.send(request).await?;
        self.has_answered.store(true, Ordering::Relaxed);
        Ok(response)
    }

    /// Sends a request to the staging server.
    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response, Failure> {
        let Some(way) = &self.way else { return request.send().await.map_err(|error| self.failure(&error)) };
        let request = request.build().map_err(|error| self.failure(&error))?;
        way::send(&**way, request).await
    }

    /// The failure that an unexpected answer is, without the request's `secrets`.
    pub(super) async fn answered(&self, response: Response, secrets: &[&str]) -> Failure {
        let url = response.url();
        // Over TLS only the server itself can answer.
        let in_clear = (url.scheme() == "http").then(|| proxy_to(&self.proxies, url));
        let proxy = in_clear.and_then(|proxy| proxy.ok().flatten()).filter(|proxy| proxy.speaks_http());
        Failure::Answered(Answer::read(response, secrets, proxy).await)
    }

    /// Reads the body of an answer that counts only if it is whole.
    pub(super) async fn whole_body(&self, mut response: Response) -> Result<Vec<u8>, Failure> {
        let mut body = Vec::new();
        match timeout(BODY_TIMEOUT, read_into(&mut body, &mut response)).await {
            Ok(read) => read.map(|()| body).map_err(|error| self.failure(&error)),
            Err(_) => Err(Failure::Stalled { after: BODY_TIMEOUT }),
        }
    }

    /// Whether the staging server has answered so far. An error counts, too.
    pub(super) fn has_answered(&self) -> bool {
        self.has_answered.load(Ordering::Relaxed)
    }

    /// The client for any other address.
    pub(super) fn to_web(&self) -> &Client {
        &self.web
    }

    /// Classifies an error of reqwest.
    pub(super) fn failure(&self, error: &reqwest::Error) -> Failure {
        match error.url().map_or(Ok(None), |url| proxy_to(&self.proxies, url)) {
            Ok(proxy) => classify(error, proxy, self.timeouts.connect),
            Err(unusable) => Failure::Unusable { why: unusable.to_string() },
        }
    }
}

/// Each request opens a new connection. A streamed body cannot be sent again if an idle connection turns out to be
/// dead, and there are few requests.
fn settings(tls: &ClientConfig, timeouts: Timeouts) -> ClientBuilder {
    Client::builder()
        .tls_backend_preconfigured(tls.clone())
        .http1_only()
        .user_agent(USER_AGENT)
        .connect_timeout(timeouts.connect)
        .pool_max_idle_per_host(0)
        // A referer would contain the query of a signed URL.
        .referer(false)
}

/// Follows up to ten redirections, but never from `https` to `http`: `https` in an address says that the bytes must
/// come from this server.
fn web_policy() -> Policy {
    Policy::custom(|attempt: Attempt<'_>| {
        let was_encrypted = attempt.previous().last().is_some_and(|url| url.scheme() == "https");
        if attempt.previous().len() > MAX_REDIRECTIONS {
            attempt.error(format!("more than {MAX_REDIRECTIONS} redirections"))
        } else if was_encrypted && attempt.url().scheme() != "https" {
            let why = format!("it redirects from https to {}, which is not followed", shown(attempt.url()));
            attempt.error(why)
        } else {
            attempt.follow()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_a_larger_upload_is_waited_for_longer_and_never_for_ever() {
        let seconds = |sent_bytes, sending| {
            Timeouts::default().answer_to(sent_bytes, Duration::from_secs(sending)).as_secs()
        };
        assert_eq!([seconds(268, 0), seconds(300 << 20, 4), seconds(0, 90)], [30, 71, 120]);
        assert_eq!([seconds(64 << 30, 0), seconds(u64::MAX, u64::MAX)], [600, 600]);
    }
}
