//! Taking connections: bounded in number, in time for a head, and in time to stop.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use super::pace::PaceLimits;
use super::socket::PacedSocket;
use super::tls::ServerTls;
use crate::shutdown::Shutdown;

/// Headers of one request, in number and bytes: enough for browsers behind proxies.
const MAX_HEADERS: usize = 100;
const MAX_HEADER_BYTES: usize = 32 << 10;

/// What one connection holds of a body, at most twice: much while there are few connections, for speed, and less
/// when there are many, for memory.
const LARGE_BUFFER: usize = 512 << 10;
const SMALL_BUFFER: usize = 128 << 10;
const FEW_CONNECTIONS: usize = 4;

/// After an error of `accept` that is not the client's (out of file descriptors), there is no hurry.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A socket and what it serves.
pub struct Listener {
    /// Bound already.
    pub socket: TcpListener,
    /// TLS, or plain HTTP.
    pub tls: Option<ServerTls>,
    /// The routes.
    pub router: Router,
}

/// Bounds for connections.
#[derive(Debug, Clone, Copy)]
pub struct Connections {
    /// At once, on each listener.
    pub max: usize,
    /// For a TLS handshake, and for the head of a request.
    pub header_timeout: Duration,
    /// For bodies.
    pub pace: PaceLimits,
    /// How long transfers in flight may go on after the server was asked to stop.
    pub shutdown_deadline: Duration,
}

/// Serves until shutdown is requested, then lets transfers in flight finish within the deadline. `false` if the
/// deadline cut some off.
pub async fn serve(listeners: Vec<Listener>, connections: Connections, shutdown: &Shutdown) -> bool {
    let graceful = GracefulShutdown::new();
    let cut_off = Shutdown::default();
    let running = TaskTracker::new();
    let accepting: Vec<_> = listeners
        .into_iter()
        .map(|listener| {
            let stop = Stop { shutdown: shutdown.clone(), cut_off: cut_off.clone() };
            accept(listener, connections, stop, &graceful, &running)
        })
        .collect();
    // Each ends, and closes its socket, when shutdown is requested.
    futures_util::future::join_all(accepting).await;
    let finished = tokio::select! {
        in_time = tokio::time::timeout(connections.shutdown_deadline, graceful.shutdown()) => in_time.is_ok(),
        () = shutdown.hurried() => false,
    };
    // What is cut off is dropped here, and so cleaned up while the process still runs.
    cut_off.request();
    running.close();
    running.wait().await;
    finished
}

/// When a connection ends without its client's doing.
#[derive(Clone)]
struct Stop {
    /// No new requests.
    shutdown: Shutdown,
    /// Nothing any more.
    cut_off: Shutdown,
}

async fn accept(
    listener: Listener,
    connections: Connections,
    stop: Stop,
    graceful: &GracefulShutdown,
    running: &TaskTracker,
) {
    // For each listener its own, so that probes are answered when there are too many clients.
    let slots = Arc::new(Semaphore::new(connections.max.min(Semaphore::MAX_PERMITS)));
    loop {
        let next = async {
            // Waiting connections queue up in the kernel.
            let slot = Arc::clone(&slots).acquire_owned().await.ok()?;
            Some((listener.socket.accept().await, slot))
        };
        let accepted = tokio::select! {
            accepted = next => accepted,
            () = stop.shutdown.requested() => return,
        };
        match accepted {
            Some((Ok((socket, peer)), slot)) => {
                let is_one_of_few = slots.available_permits() + FEW_CONNECTIONS >= connections.max;
                let buffer_bytes = if is_one_of_few { LARGE_BUFFER } else { SMALL_BUFFER };
                let connection =
                    Connection { peer, connections, buffer_bytes, stop: stop.clone(), _slot: slot };
                let (tls, router) = (listener.tls.clone(), listener.router.clone());
                running.spawn(connection.run(socket, tls, router, graceful.watcher()));
            }
            Some((Err(error), _)) => {
                tracing::warn!(error = %error, "could not take a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
            None => return,
        }
    }
}

struct Connection {
    peer: SocketAddr,
    connections: Connections,
    buffer_bytes: usize,
    stop: Stop,
    _slot: OwnedSemaphorePermit,
}

impl Connection {
    async fn run(self, socket: TcpStream, tls: Option<ServerTls>, router: Router, watcher: Watcher) {
        // Answers go out at once. A socket that refuses the option works all the same.
        let _ = socket.set_nodelay(true);
        let socket = PacedSocket::new(socket, self.connections.pace);
        let Some(tls) = tls else { return self.serve(socket, router, watcher).await };
        let handshake = tokio::time::timeout(self.connections.header_timeout, tls.acceptor().accept(socket));
        let handshake = tokio::select! {
            handshake = handshake => handshake,
            // Nothing was asked for yet: nothing to finish.
            () = self.stop.shutdown.requested() => return,
        };
        match handshake {
            Ok(Ok(stream)) => self.serve(stream, router, watcher).await,
            Ok(Err(error)) => tracing::debug!(peer = %self.peer, error = %error, "TLS handshake failed"),
            Err(_) => tracing::debug!(peer = %self.peer, "TLS handshake took too long"),
        }
    }

    async fn serve<S>(&self, stream: S, router: Router, watcher: Watcher)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let peer = self.peer;
        let service = router.map_request(move |request: hyper::Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(peer));
            request
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.connections.header_timeout)
            .max_headers(MAX_HEADERS)
            .max_header_size(MAX_HEADER_BYTES)
            .max_buf_size(self.buffer_bytes)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
        let served = tokio::select! {
            served = watcher.watch(connection) => served,
            () = self.stop.cut_off.requested() => return,
        };
        if let Err(error) = served {
            tracing::debug!(%peer, error = %error, "connection ended early");
        }
    }
}
