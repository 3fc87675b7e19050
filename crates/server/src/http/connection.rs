//! One connection, from its handshake to its end.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::header::CONNECTION;
use axum::http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use cloakroom_core::client::Client;
use cloakroom_storage::turns::Turns;

use super::body::OfConnection;
use super::error::OfKnownToken;
use super::head_timer::{Answering, HeadTimer, Receiving};
use super::in_flight::{AnswerBody, FlushedStream};
use super::linger::{Lingering, Remains};
use super::pace::PaceLimits;
use super::phase::{Phase, Phases};
use super::refusals::Refusals;
use super::slots::Slot;
use super::socket::{PacedSocket, Reset};
use super::state::Settings;
use super::tls::ServerTls;
use super::webhdfs::Expected;

/// The most headers of one request, in number and bytes. Browsers behind proxies need fewer.
const MAX_HEADERS: usize = 100;
const MAX_HEADER_BYTES: usize = 32 << 10;

/// How long a connection may be idle between two requests: longer than the pools of proxies and clients keep one (nginx
/// and load balancers 60 s, Go 90 s).
pub const KEEP_ALIVE: Duration = Duration::from_secs(95);

/// How many unsent bytes the kernel keeps for a client. Without this limit, each slow reader takes up to 4 MiB of the
/// container's memory, and the time to copy them. Fast readers are not slower with it.
const UNSENT_BYTES: u32 = 512 << 10;

/// How long an answer that is being written may still take when the server stops.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// The limits for connections.
#[derive(Debug, Clone, Copy)]
pub struct Connections {
    /// The most connections at once on each listener.
    pub max: usize,
    /// The most connections at once on a listener that has only operational routes.
    pub max_operations: usize,
    /// The most connections on each listener that were accepted and wait for a place.
    pub max_waiting: usize,
    /// The longest time for a TLS handshake, and for the head of a request.
    pub header_timeout: Duration,
    /// How long a connection may be idle between two requests.
    pub keep_alive: Duration,
    /// How long some connections still read after a refusal that did not reach a client which sends on.
    pub linger: Duration,
    /// How slow bodies may be.
    pub pace: PaceLimits,
    /// How long transfers in flight may go on after the server was asked to stop.
    pub shutdown_deadline: Duration,
}

/// Tells connections to end before their clients end them.
#[derive(Clone, Default)]
pub(super) struct Ends {
    /// Cancelled to give up transfers in flight.
    pub(super) cut_off: CancellationToken,
    /// Cancelled when the server stops: no further request is read.
    pub(super) closing: CancellationToken,
}

pub(super) struct ClientConnection {
    pub(super) peer: SocketAddr,
    pub(super) connections: Connections,
    pub(super) buffer_bytes: usize,
    pub(super) phases: Arc<Phases>,
    /// Shared by all connections of the listener.
    pub(super) turns: Turns,
    pub(super) refusals: Refusals,
    /// Set when the server begins to serve.
    pub(super) settings: Arc<OnceLock<Arc<Settings>>>,
    /// Counts the transfers of all connections.
    pub(super) in_flight: TaskTracker,
    pub(super) ends: Ends,
    pub(super) slot: Slot,
    /// Shared by all connections of the listener.
    pub(super) lingering: Lingering,
    /// What is left of the body of the last request.
    pub(super) remains: Remains,
    /// Whether a request has come on this connection.
    pub(super) has_asked: AtomicBool,
    /// Cancelled when a refusal that was held back gives way: the connection ends without it.
    pub(super) gave_way: CancellationToken,
}

impl ClientConnection {
    pub(super) async fn run(self, socket: TcpStream, tls: Option<ServerTls>) {
        // Turns off Nagle's algorithm, so that answers are sent at once. The connection also works without these options.
        let _ = socket.set_nodelay(true);
        let _ = SockRef::from(&socket).set_tcp_notsent_lowat(UNSENT_BYTES);
        let reset = Reset::default();
        let socket = PacedSocket::new(socket, self.connections.pace, reset.clone());
        let Some(tls) = tls else { return self.serve(socket, &reset).await };
        let handshake = async {
            let _turn = self.turns.take(Client::Host(self.peer.ip().into())).await;
            tokio::time::timeout(self.connections.header_timeout, tls.acceptor().accept(socket)).await
        };
        let handshake = tokio::select! {
            handshake = handshake => handshake,
            () = self.is_closed() => return,
            () = self.slot.leave.cancelled() => return,
        };
        match handshake {
            Ok(Ok(stream)) => self.serve(stream, &reset).await,
            Ok(Err(error)) => tracing::debug!(peer = %self.peer, error = %error, "TLS handshake failed"),
            Err(_) => tracing::debug!(peer = %self.peer, "TLS handshake took too long"),
        }
    }

    async fn serve<S>(&self, stream: S, reset: &Reset)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let timer = HeadTimer::start(self.connections.header_timeout, self.connections.keep_alive);
        let activity = self.slot.activity.clone();
        let stream = FlushedStream { stream, activity, timer: timer.clone() };
        let service = service_fn(|request| self.answer(request, timer.request()));
        let mut connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(None)
            .max_headers(MAX_HEADERS)
            .max_header_size(MAX_HEADER_BYTES)
            .max_buf_size(self.buffer_bytes)
            .serve_connection(TokioIo::new(stream), service);
        let served = tokio::select! {
            served = &mut connection => served,
            () = timer.is_over() => return,
            () = self.is_cut_off() => return reset.at_the_end(),
            () = self.is_to_leave() => return,
            () = self.gave_way.cancelled() => return,
            () = self.ends.closing.cancelled() => {
                // This closes at once, unless an answer is being written. If no request has come yet, the first one is
                // still answered.
                if self.has_asked.load(Ordering::Relaxed) {
                    Pin::new(&mut connection).graceful_shutdown();
                }
                let Ok(served) = tokio::time::timeout(LAST_ANSWERS, &mut connection).await else { return };
                served
            }
        };
        if let Err(error) = served {
            tracing::debug!(peer = %self.peer, error = %error, "connection ended early");
            return;
        }
        self.linger(connection.into_parts().io.into_inner()).await;
    }

    /// Reads on after the last answer. That gives way to other connections, and to the end of the server.
    async fn linger(&self, mut stream: impl AsyncRead + Unpin) {
        tokio::select! {
            () = self.lingering.read_on(&mut stream, self.slot.visitor, &self.remains) => {}
            () = self.slot.leave.cancelled() => {}
            () = self.is_closed() => {}
        }
    }

    /// Ends a while after the server began to stop, so that a client that has just connected gets an answer.
    async fn is_closed(&self) {
        self.ends.closing.cancelled().await;
        tokio::time::sleep(LAST_ANSWERS).await;
    }

    /// Ends when transfers are given up, if this connection has one. One check is enough, because no request is let in
    /// after that moment.
    async fn is_cut_off(&self) {
        self.ends.cut_off.cancelled().await;
        if !self.slot.activity.has_work() {
            std::future::pending::<()>().await;
        }
    }

    /// Ends when another connection needs this one's place. A request that came in the same moment is served.
    async fn is_to_leave(&self) {
        self.slot.leave.cancelled().await;
        if self.slot.activity.has_work() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until a refusal may be sent. If the place is needed meanwhile, the connection ends without it. A client whose
    /// token is known keeps its place. So does a trusted proxy, except for unknown tokens: its place is of many clients.
    async fn hold_back_refusal(&self, status: StatusCode, client: &Client, is_known: bool) {
        let Some(until) = self.refusals.held_back_until(status, client) else { return };
        let is_unknown_token = status == StatusCode::UNAUTHORIZED;
        if is_known || !(self.slot.visitor.is_single || is_unknown_token) {
            tokio::time::sleep_until(until).await;
        } else if !self.slot.hold_back(until).await {
            self.gave_way.cancel();
            std::future::pending::<()>().await;
        }
    }

    fn client(&self, headers: &HeaderMap) -> Client {
        let peer = self.peer.ip();
        self.settings
            .get()
            .map_or_else(|| Client::Host(peer.into()), |settings| settings.client(peer, headers))
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
        (answering, receiving): (Answering, Receiving),
    ) -> Result<Response<AnswerBody>, Infallible> {
        // The token is taken before the phase is read, so that the server waits for every request that is let in.
        let token = self.in_flight.token();
        self.has_asked.store(true, Ordering::Relaxed);
        let (phase, router) = self.phases.now();
        let work = (phase == Phase::Serving).then(|| self.slot.activity.begin(token));
        let client = self.client(request.headers());
        let turn = Arc::new(self.turns.take(client.clone()).await);
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(self.peer));
        request.extensions_mut().insert(OfConnection {
            turn: Some(Arc::clone(&turn)),
            remains: self.remains.clone(),
            _receiving: Some(Arc::new(receiving)),
        });
        let mut response = router.oneshot(request).await?;
        turn.end();
        if phase == Phase::Serving {
            let is_known = response.extensions().get::<OfKnownToken>().is_some();
            if response.extensions().get::<Expected>().is_none() {
                self.hold_back_refusal(response.status(), &client, is_known).await;
            }
        }
        if self.phases.now().0 == Phase::Stopping {
            // The client must open a new connection to reach the server's successor.
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(response.map(|body| AnswerBody { body, _work: work, _answering: answering }))
    }
}
