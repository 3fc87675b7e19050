//! The HTTP connections to the API server. They are put together here and not by kube, because kube's would refuse an
//! API server that shows the very certificate that was given to trust, and client certificates of version 1.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_LENGTH};
use hyper::http::{HeaderValue, Request, Response, Uri};
use hyper::rt::{Read, Write};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connect, Connection, HttpConnector};
use hyper_util::rt::TokioExecutor;
use kube::client::{Body as ShortBody, ConfigExt as _};
use kube::{Client, Config};
use rustls::ClientConfig;
use rustls::pki_types::{CertificateDer, ServerName};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceBuilder};

use super::api_server::Timeouts;
use super::client_keys;
use super::identity::ClientCertificate;
use super::service_proxy::Body;
use cloakroom_core::text;
use cloakroom_outbound::proxies::Proxy;
use cloakroom_outbound::trust::Verifier;

/// Where a client connects to, and what it shows there.
pub(super) struct Target<'a> {
    /// The address, the roots to trust, and the headers to send.
    pub(super) config: &'a Config,
    pub(super) certificate: Option<&'a ClientCertificate>,
    pub(super) proxy: Option<&'a Proxy>,
    pub(super) timeouts: Timeouts,
}

/// Sends requests with bodies of any length. The library's client takes short ones alone.
pub(super) type Streams = BoxCloneSyncService<Request<Body>, Response<Body>, BoxError>;

/// How much of an error's body is read.
const LONGEST_ERROR: usize = 1 << 20;

impl Target<'_> {
    /// Builds clients that connect at their first call.
    pub(super) fn clients(&self) -> Result<(Client, Streams), BoxError> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        let Some(proxy) = self.proxy else { return self.over(tcp) };
        let proxy = proxy.intercept().ok_or("its proxy cannot be used")?;
        let through = proxy.uri().clone();
        match through.scheme_str() {
            Some("http") => self.over(tunnel(through, proxy.basic_auth(), tcp)),
            Some("https") => {
                let https = self.https(tcp, None)?;
                self.over(tunnel(through, proxy.basic_auth(), https))
            }
            // With either scheme of SOCKS 5 the proxy looks up the names, as in Go.
            _ => {
                let socks = SocksV5::new(through, tcp);
                match proxy.raw_auth() {
                    Some((user, password)) => {
                        self.over(socks.with_auth(user.to_owned(), password.to_owned()))
                    }
                    None => self.over(socks),
                }
            }
        }
    }

    /// The clients over connections that `connector` opens.
    fn over<C>(&self, connector: C) -> Result<(Client, Streams), BoxError>
    where
        C: Service<Uri> + Clone + Send + Sync + 'static,
        C::Response: Connection + Read + Write + Send + Unpin + 'static,
        C::Future: Send + 'static,
        C::Error: Into<BoxError>,
    {
        let Self { config, timeouts, .. } = self;
        let mut connector = TimeoutConnector::new(self.https(connector, config.tls_server_name.as_deref())?);
        connector.set_connect_timeout(Some(timeouts.connect));
        connector.set_read_timeout(Some(timeouts.silence));
        connector.set_write_timeout(Some(timeouts.silence));
        // Without this, the time that a connection waited unused in the pool would count as silence.
        connector.set_reset_reader_on_write(true);
        let mut builder = legacy::Client::builder(TokioExecutor::new());
        let service = ServiceBuilder::new()
            .layer(config.base_uri_layer())
            .option_layer(config.auth_layer()?)
            .layer(config.extra_headers_layer()?)
            .map_err(BoxError::from);
        let client = service.service(sender(builder.build::<_, ShortBody>(connector.clone())));
        let client = Client::new(client, "default");
        // A long body cannot be sent again if an idle connection turns out to be dead.
        let streams = service.service(sender(builder.pool_max_idle_per_host(0).build::<_, Body>(connector)));
        Ok((client, BoxCloneSyncService::new(streams)))
    }

    /// TLS over `connector`, for `https` addresses. `name` is the one to ask for and to check, in place of the address's.
    fn https<C>(&self, connector: C, name: Option<&str>) -> Result<HttpsConnector<C>, BoxError> {
        let builder = HttpsConnectorBuilder::new().with_tls_config(self.tls()?).https_or_http();
        let builder = match name {
            Some(name) => {
                let name = ServerName::try_from(name.to_owned())?;
                builder.with_server_name_resolver(FixedServerNameResolver::new(name))
            }
            None => builder,
        };
        Ok(builder.enable_http1().wrap_connector(connector))
    }

    fn tls(&self) -> Result<ClientConfig, BoxError> {
        let provider = Arc::new(client_keys::provider());
        let verifier = match &self.config.root_cert {
            _ if self.config.accept_invalid_certs => Verifier::anybody(&provider),
            Some(roots) => {
                Verifier::only(roots.iter().cloned().map(CertificateDer::from).collect(), &provider)?
            }
            None => Verifier::system_and(Vec::new(), &provider)?,
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        Ok(match self.certificate {
            Some(ClientCertificate { chain, key }) => {
                builder.with_client_auth_cert(chain.clone(), key.clone_key())?
            }
            None => builder.with_no_client_auth(),
        })
    }
}

/// Sends requests as they go out. Errors come back without the credential: a gateway may repeat the request in its page.
fn sender<C, B>(
    client: legacy::Client<C, B>,
) -> impl Service<Request<B>, Response = Response<Body>, Error = legacy::Error, Future: Send> + Clone + Send + Sync
where
    C: Connect + Clone + Send + Sync + 'static,
    B: hyper::body::Body<Data: Send, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    tower::service_fn(move |request: Request<B>| {
        let credential = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let secret = credential.and_then(|value| value.split_once(' ')).map(|(_, secret)| secret.to_owned());
        let answered = client.request(request);
        async move { Ok(without(answered.await?, secret).await) }
    })
}

/// The answer, if it is an error without this secret.
async fn without(answer: Response<Incoming>, secret: Option<String>) -> Response<Body> {
    let status = answer.status();
    let secret = secret.filter(|_| status.is_client_error() || status.is_server_error());
    let Some(secret) = secret else { return answer.map(|body| body.map_err(io::Error::other).boxed()) };
    let (mut head, body) = answer.into_parts();
    let read = Limited::new(body, LONGEST_ERROR).collect().await;
    let body =
        read.map(|body| text::without(&String::from_utf8_lossy(&body.to_bytes()), &[&secret]).into_owned());
    head.headers.remove(CONTENT_LENGTH);
    Response::from_parts(
        head,
        Full::new(Bytes::from(body.unwrap_or_default())).map_err(|never| match never {}).boxed(),
    )
}

fn tunnel<C>(through: Uri, login: Option<&HeaderValue>, connector: C) -> Tunnel<C> {
    let tunnel = Tunnel::new(through, connector);
    match login {
        Some(login) => tunnel.with_auth(login.clone()),
        None => tunnel,
    }
}
