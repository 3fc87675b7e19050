//! The connections to a store. The library hides the status of most errors, so they are made here.

use std::error::Error;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use cloakroom_core::metrics::{Metrics, StoreCall, StoreOutcome};
use cloakroom_outbound::causes::find;
use cloakroom_outbound::certificates::{TrustError, TrustedCertificates, client_config};
use cloakroom_outbound::proxies::Proxies;
use cloakroom_outbound::through::through;
use futures_util::{Stream, StreamExt as _};
use object_store::ClientOptions;
use object_store::client::{
    ClientConfigKey, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpService,
};
use reqwest::redirect::Policy;
use reqwest::{Client, Method};
use rustls::{CertificateError, ClientConfig};

use super::calls::PATIENCE;
use super::failure::{BROKEN, CallTrouble, LATE, Reason};
use super::names;
use super::refusal::{Codes, StoreRefusal, element};

/// How much of the body of an error is read.
const ERROR_BYTES: usize = 16 << 10;

/// The program's name in requests.
const USER_AGENT: &str = concat!("cloakroom/", env!("CARGO_PKG_VERSION"));

/// How long a connection may take, TLS included. It is less than the patience with a call, so that another attempt follows.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Stores close connections that are idle for longer.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);

/// Makes the clients of a store: one for its objects, and one for each service that gives out credentials.
#[derive(Debug)]
pub(super) struct Connector {
    tls: ClientConfig,
    proxies: Proxies,
    /// The address of the bucket, with which all addresses of its objects begin.
    bucket: String,
    codes: &'static Codes,
    metrics: Metrics,
}

impl Connector {
    /// `bucket` is the address of the bucket. Its certificate must be signed by a root of the system or by one of `trusted`.
    /// The store names its errors by `codes`. Each request is counted in `metrics`.
    pub fn new(
        bucket: String,
        codes: &'static Codes,
        trusted: &TrustedCertificates,
        metrics: Metrics,
    ) -> Result<Self, TrustError> {
        Ok(Self {
            tls: client_config(trusted)?,
            proxies: Proxies::from_environment(),
            bucket,
            codes,
            metrics,
        })
    }
}

impl Connector {
    /// A client for all hosts of a store.
    pub fn client(&self, allows_http: bool) -> reqwest::Result<Client> {
        Client::builder()
            .tls_backend_preconfigured(self.tls.clone())
            .http1_only()
            .https_only(!allows_http)
            .user_agent(USER_AGENT)
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(IDLE_TIMEOUT)
            // The signature is for this host alone.
            .redirect(Policy::none())
            .proxy(through(self.proxies.clone()))
            .build()
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allows_http = options.get_config_value(&ClientConfigKey::AllowHttp).as_deref() == Some("true");
        let client = self.client(allows_http).map_err(|error| object_store::Error::Generic {
            store: "bucket",
            source: error.without_url().into(),
        })?;
        Ok(HttpClient::new(Service {
            client: HttpClient::new(client),
            bucket: self.bucket.clone(),
            codes: self.codes,
            metrics: self.metrics.clone(),
        }))
    }
}

/// Makes errors of answers that are no success, and takes the library's texts out of all other errors.
#[derive(Debug)]
struct Service {
    client: HttpClient,
    bucket: String,
    codes: &'static Codes,
    metrics: Metrics,
}

/// Counts a call when it is dropped.
pub(super) struct Count<'a> {
    metrics: &'a Metrics,
    call: StoreCall,
    began: Instant,
    /// `None` if the caller stopped waiting before the answer.
    pub outcome: Option<StoreOutcome>,
}

impl<'a> Count<'a> {
    /// The call begins now.
    pub fn begin(metrics: &'a Metrics, call: StoreCall) -> Self {
        Self { metrics, call, began: Instant::now(), outcome: None }
    }
}

impl Drop for Count<'_> {
    fn drop(&mut self) {
        // A caller that waited for less time was not given up by the store, but by its own client.
        let waited_in_vain = (self.began.elapsed() >= PATIENCE).then_some(StoreOutcome::Unavailable);
        if let Some(outcome) = self.outcome.or(waited_in_vain) {
            self.metrics.store_request(self.call, outcome);
        }
    }
}

/// What a request asks of a bucket.
fn call_of(request: &HttpRequest) -> StoreCall {
    match *request.method() {
        Method::HEAD => StoreCall::Head,
        Method::PUT => StoreCall::Put,
        Method::POST => StoreCall::Post,
        Method::DELETE => StoreCall::Delete,
        _ if request.uri().query().is_some_and(is_list) => StoreCall::List,
        _ => StoreCall::Get,
    }
}

/// Whether a GET with this query is for a list: that of S3 and Google, or that of Azure.
fn is_list(query: &str) -> bool {
    query.contains("list-type=") || query.contains("comp=list")
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let is_of_bucket = request.uri().to_string().starts_with(&self.bucket);
        let host = request.uri().host().filter(|_| !is_of_bucket).map(str::to_owned);
        let call = if is_of_bucket { call_of(&request) } else { StoreCall::Credentials };
        let mut count = Count::begin(&self.metrics, call);
        let (kind, reason) = match self.client.execute(request).await {
            Ok(response) if response.status().is_success() && !matches!(call, StoreCall::Post) => {
                count.outcome = Some(StoreOutcome::Ok);
                return if matches!(call, StoreCall::List) {
                    without_foreign_names(response).await
                } else {
                    Ok(response)
                };
            }
            Ok(response) => {
                let (head, body) = response.into_parts();
                let is_success = head.status.is_success();
                let body = if is_success {
                    body.bytes().await?
                } else {
                    beginning(body.bytes_stream()).await.into()
                };
                // S3 begins its answer before it puts parts together, and what fails then has the status 200.
                if is_success && element(&String::from_utf8_lossy(&body), "Code").is_none() {
                    count.outcome = Some(StoreOutcome::Ok);
                    return Ok(HttpResponse::from_parts(head, body.into()));
                }
                let refusal = StoreRefusal::read(self.codes, head.status, &head.headers, &body);
                count.outcome = Some(refusal.outcome());
                (HttpErrorKind::Unknown, Reason::Refused(refusal))
            }
            Err(error) => {
                count.outcome = Some(StoreOutcome::Unavailable);
                (error.kind(), Reason::NoAnswer(why(error.kind(), &error)))
            }
        };
        Err(HttpError::new(kind, CallTrouble { host, reason }))
    }
}

/// The page with names that the library can read.
async fn without_foreign_names(page: HttpResponse) -> Result<HttpResponse, HttpError> {
    let (head, body) = page.into_parts();
    let bytes = body.bytes().await?;
    let readable = match std::str::from_utf8(&bytes) {
        Ok(page) => names::readable(page).into(),
        // The library says what is wrong with it.
        Err(_) => bytes.into(),
    };
    Ok(HttpResponse::from_parts(head, readable))
}

/// The first bytes of a body, as far as they come.
pub(super) async fn beginning<E>(mut pieces: impl Stream<Item = Result<Bytes, E>> + Unpin) -> Vec<u8> {
    let mut read = Vec::new();
    while read.len() < ERROR_BYTES
        && let Some(Ok(piece)) = pieces.next().await
    {
        read.extend_from_slice(&piece[..piece.len().min(ERROR_BYTES - read.len())]);
    }
    read
}

/// Why there is no answer, as the end of a sentence about the host. Only texts of the system and of TLS are used.
pub(super) fn why(kind: HttpErrorKind, error: &(dyn Error + 'static)) -> String {
    if let Some(rustls::Error::InvalidCertificate(why)) = find(error) {
        return match why {
            CertificateError::UnknownIssuer => {
                "has a certificate that is not signed by a CA that is trusted here (--store-ca)".to_owned()
            }
            why => format!("has a certificate that is not accepted: {why}"),
        };
    }
    if let Some(rustls::Error::InvalidMessage(_)) = find(error) {
        return "does not speak TLS at this port".to_owned();
    }
    match (kind, find::<std::io::Error>(error)) {
        (HttpErrorKind::Timeout, _) => LATE.to_owned(),
        (HttpErrorKind::Connect, Some(why)) => format!("cannot be reached: {why}"),
        (HttpErrorKind::Connect, None) => "cannot be reached".to_owned(),
        _ => BROKEN.to_owned(),
    }
}
