//! Taking connections, bounded in number, from before the start is over until the process ends.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::TaskTracker;

use super::connection::{Connection, Ends};
use super::pace::PaceLimits;
use super::phase::Phases;
use super::refusals::Refusals;
use super::router::{Entrance, Serves};
use super::seats::{Seat, Seats};
use super::state::AppState;
use super::tls::ServerTls;
use super::turns::Turns;
use crate::shutdown::Shutdown;
use cloakroom_core::metrics::{Limited, Metrics};

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
    /// Which routes it has.
    pub serves: Serves,
}

/// Bounds for connections.
#[derive(Debug, Clone, Copy)]
pub struct Connections {
    /// At once, on each listener.
    pub max: usize,
    /// At once, on a listener of operations alone.
    pub max_operations: usize,
    /// For a TLS handshake, and for the head of a request.
    pub header_timeout: Duration,
    /// For bodies.
    pub pace: PaceLimits,
    /// How long transfers in flight may go on after the server was asked to stop.
    pub shutdown_deadline: Duration,
}

/// The server as its clients see it: from [`Edge::open`] to [`Edge::close`] every request gets an answer.
pub struct Edge {
    phases: Vec<Arc<Phases>>,
    shutdown: Shutdown,
    shutdown_deadline: Duration,
    /// Requests that were let in.
    in_flight: TaskTracker,
    /// Sockets and connections.
    running: TaskTracker,
    ends: Ends,
}

impl Edge {
    /// Takes connections, and answers that the server is starting.
    pub fn open(
        listeners: Vec<Listener>,
        connections: Connections,
        metrics: &Metrics,
        shutdown: &Shutdown,
    ) -> Self {
        let entrance = Entrance { pace: connections.pace, metrics: metrics.clone() };
        let mut edge = Self {
            phases: Vec::new(),
            shutdown: shutdown.clone(),
            shutdown_deadline: connections.shutdown_deadline,
            in_flight: TaskTracker::new(),
            running: TaskTracker::new(),
            ends: Ends::default(),
        };
        for Listener { socket, tls, serves } in listeners {
            let phases = Arc::new(Phases::new(serves, entrance.clone(), shutdown.clone()));
            edge.phases.push(Arc::clone(&phases));
            let (max, of) = match serves {
                Serves::Operations => (connections.max_operations, Limited::OpsConnections),
                Serves::Resources | Serves::Everything => (connections.max, Limited::Connections),
            };
            let acceptor = Acceptor {
                tls,
                connections,
                // For each listener its own, so that probes are answered when there are too many clients.
                seats: Seats::new(max, metrics.occupancy(of, max)),
                phases,
                turns: Turns::default(),
                refusals: Refusals::default(),
                in_flight: edge.in_flight.clone(),
                running: edge.running.clone(),
                ends: edge.ends.clone(),
            };
            edge.running.spawn(acceptor.run(socket));
        }
        edge
    }

    /// From now on requests are served.
    pub fn serve(&self, state: &AppState) {
        for phases in &self.phases {
            phases.serve(state);
        }
    }

    /// Waits until shutdown is requested, and then until the transfers in flight are finished, within the deadline.
    /// `false` if some were cut off. Requests that come later are told to try again, and are not waited for.
    pub async fn finish_transfers(&self) -> bool {
        self.shutdown.requested().await;
        self.in_flight.close();
        let finished = tokio::select! {
            in_time = tokio::time::timeout(self.shutdown_deadline, self.in_flight.wait()) => in_time.is_ok(),
            () = self.shutdown.hurried() => false,
        };
        // What is cut off is dropped, and so cleaned up, while the process still runs.
        self.ends.cut_off.cancel();
        self.in_flight.wait().await;
        finished
    }

    /// Closes the sockets, and every connection that had its answers. The others have a second.
    pub async fn close(self) {
        self.ends.closing.cancel();
        self.running.close();
        self.running.wait().await;
    }
}

/// One listener at work.
struct Acceptor {
    tls: Option<ServerTls>,
    connections: Connections,
    seats: Seats,
    phases: Arc<Phases>,
    turns: Turns,
    refusals: Refusals,
    in_flight: TaskTracker,
    running: TaskTracker,
    ends: Ends,
}

impl Acceptor {
    async fn run(self, socket: TcpListener) {
        let mut is_failing = false;
        loop {
            let next = async {
                let (stream, peer) = socket.accept().await?;
                // Meanwhile others queue up in the kernel.
                let seat = self.seats.take(peer.ip().into()).await;
                io::Result::Ok(seat.map(|seat| (stream, peer, seat)))
            };
            let accepted = tokio::select! {
                accepted = next => accepted,
                () = self.ends.closing.cancelled() => return self.take_last(socket),
            };
            match accepted {
                Ok(Some((stream, peer, seat))) => {
                    is_failing = false;
                    self.take(stream, peer, seat);
                }
                Err(error) => {
                    // Once, and not ten times a second.
                    if !std::mem::replace(&mut is_failing, true) {
                        tracing::warn!(error = %error, "could not take a connection");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
                Ok(None) => return,
            }
        }
    }

    /// Takes the connections that queue up in the kernel: it would reset them with the socket, and their clients would
    /// not know that they may try again.
    fn take_last(&self, socket: TcpListener) {
        let Ok(socket) = socket.into_std() else { return };
        while let Ok((stream, peer)) = socket.accept() {
            let seat = self.seats.take(peer.ip().into()).now_or_never().flatten();
            let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
            if let (Ok(stream), Some(seat)) = (stream, seat) {
                self.take(stream, peer, seat);
            }
        }
    }

    fn take(&self, stream: TcpStream, peer: SocketAddr, seat: Seat) {
        let is_one_of_few = self.seats.count() <= FEW_CONNECTIONS;
        let connection = Connection {
            peer,
            connections: self.connections,
            buffer_bytes: if is_one_of_few { LARGE_BUFFER } else { SMALL_BUFFER },
            phases: Arc::clone(&self.phases),
            turns: self.turns.clone(),
            refusals: self.refusals.clone(),
            in_flight: self.in_flight.clone(),
            ends: self.ends.clone(),
            seat,
            has_asked: AtomicBool::default(),
        };
        self.running.spawn(connection.run(stream, self.tls.clone()));
    }
}
