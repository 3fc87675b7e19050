//! Accepts connections, limited in number, from before the server has started until it ends.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::{ClientConnection, Connections, Ends};
use super::linger::{Lingering, Remains};
use super::phase::Phases;
use super::refusals::Refusals;
use super::router::{Entrance, Serves};
use super::slots::{Slot, Slots, Visitor};
use super::state::{AppState, Settings};
use super::tls::ServerTls;
use crate::shutdown::Shutdown;
use cloakroom_core::client::Host;
use cloakroom_core::metrics::{Limited, Metrics};
use cloakroom_core::waiting::WaitingRoom;
use cloakroom_storage::turns::Turns;

/// The size of a connection's buffer, of which it has two at most. It is large while there are few connections, for
/// speed, and small while there are many, to save memory.
const LARGE_BUFFER: usize = 512 << 10;
const SMALL_BUFFER: usize = 128 << 10;
const FEW_CONNECTIONS: usize = 4;

/// The wait after `accept` failed for a reason on this side, such as too many open files. It keeps the loop from spinning.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How often connections without a place look for one that became idle.
const AGAIN: Duration = Duration::from_millis(100);

/// How many handshakes and heads of requests of a listener are worked at together.
const TURNS_AT_ONCE: usize = 8;

/// A socket, and the routes on it.
pub struct Listener {
    pub socket: TcpListener,
    /// TLS; `None` is plain HTTP.
    pub tls: Option<ServerTls>,
    /// Which routes the socket has.
    pub serves: Serves,
}

/// The server as clients see it. From [`Edge::open`] to [`Edge::close`] every request gets an answer.
pub struct Edge {
    phases: Vec<Arc<Phases>>,
    shutdown: Shutdown,
    shutdown_deadline: Duration,
    /// Counts the requests that were let in.
    in_flight: TaskTracker,
    /// Counts the tasks of sockets and connections.
    running: TaskTracker,
    ends: Ends,
    /// Set when the server begins to serve.
    settings: Arc<OnceLock<Arc<Settings>>>,
}

impl Edge {
    /// Accepts connections. Until [`Edge::serve`] the answer is that the server is starting.
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
            settings: Arc::default(),
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
                // Each listener has its own places, so that probes are answered even if there are too many clients.
                slots: Slots::new(max, metrics.occupancy(of, max)),
                phases,
                turns: Turns::new(TURNS_AT_ONCE),
                refusals: Refusals::default(),
                lingering: Lingering::new(max, connections.linger),
                in_flight: edge.in_flight.clone(),
                running: edge.running.clone(),
                ends: edge.ends.clone(),
                settings: Arc::clone(&edge.settings),
            };
            edge.running.spawn(acceptor.run(socket));
        }
        edge
    }

    /// The request to stop that this edge obeys.
    pub fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// Begins to serve requests.
    pub fn serve(&self, state: &AppState) {
        // A server begins to serve once.
        let _ = self.settings.set(Arc::clone(&state.settings));
        for phases in &self.phases {
            phases.serve(state);
        }
    }

    /// Waits until shutdown is requested, and then until the transfers in flight have ended, at most until the
    /// deadline. Returns `false` if some were cut off. Requests that come later are told to try again, and are not
    /// waited for.
    pub async fn finish_transfers(&self) -> bool {
        self.shutdown.requested().await;
        self.in_flight.close();
        let finished = tokio::select! {
            in_time = tokio::time::timeout(self.shutdown_deadline, self.in_flight.wait()) => in_time.is_ok(),
            () = self.shutdown.hurried() => false,
        };
        // Transfers that are cut off clean up when they are dropped, so the process must still run.
        self.ends.cut_off.cancel();
        self.in_flight.wait().await;
        finished
    }

    /// Closes the sockets, and every connection that has had its answers. The others get one more second.
    pub async fn close(self) {
        self.ends.closing.cancel();
        self.running.close();
        self.running.wait().await;
    }
}

/// One listener while it accepts connections.
struct Acceptor {
    tls: Option<ServerTls>,
    connections: Connections,
    slots: Slots,
    phases: Arc<Phases>,
    turns: Turns,
    refusals: Refusals,
    lingering: Lingering,
    in_flight: TaskTracker,
    running: TaskTracker,
    ends: Ends,
    settings: Arc<OnceLock<Arc<Settings>>>,
}

/// A connection that was accepted.
type Accepted = (TcpStream, SocketAddr);

impl Acceptor {
    async fn run(self, socket: TcpListener) {
        let mut is_failing = false;
        let mut room = WaitingRoom::new(self.connections.max_waiting);
        loop {
            let accepted = tokio::select! {
                accepted = socket.accept() => accepted,
                () = self.slots.freed(), if !room.is_empty() => {
                    self.seat_those_that_wait(&mut room);
                    continue;
                }
                // Connections may become idle meanwhile.
                () = tokio::time::sleep(AGAIN), if !room.is_empty() => {
                    self.seat_those_that_wait(&mut room);
                    continue;
                }
                () = self.ends.closing.cancelled() => return self.take_last(socket, room),
            };
            match accepted {
                Ok((stream, peer)) => {
                    is_failing = false;
                    // A connection that is turned away is closed before a TLS handshake.
                    drop(room.push(peer.ip().into(), (stream, peer)));
                    self.seat_those_that_wait(&mut room);
                }
                Err(error) => {
                    // Only the first of several errors in a row is logged, because there can be ten a second.
                    if !std::mem::replace(&mut is_failing, true) {
                        tracing::warn!(error = %error, "could not take a connection");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Gives free places to connections that wait, and makes others leave for the rest.
    fn seat_those_that_wait(&self, room: &mut WaitingRoom<Host, Accepted>) {
        while let Some((_, peer)) = room.peek() {
            let Some(slot) = self.slots.take(self.visitor(*peer)) else {
                return self.slots.make_room_for(&room.clients());
            };
            if let Some((stream, peer)) = room.pop() {
                self.take(stream, peer, slot);
            }
        }
    }

    fn visitor(&self, peer: SocketAddr) -> Visitor {
        let is_proxy = self.settings.get().is_some_and(|settings| settings.trusted_proxies.trusts(peer.ip()));
        Visitor { host: peer.ip().into(), is_single: !is_proxy }
    }

    /// Takes the connections that wait here and in the kernel's queue. Otherwise the kernel would reset them with the
    /// socket, and their clients would not learn that they may try again.
    fn take_last(&self, socket: TcpListener, mut room: WaitingRoom<Host, Accepted>) {
        self.seat_those_that_wait(&mut room);
        let Ok(socket) = socket.into_std() else { return };
        while let Ok((stream, peer)) = socket.accept() {
            let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
            if let (Ok(stream), Some(slot)) = (stream, self.slots.take(self.visitor(peer))) {
                self.take(stream, peer, slot);
            }
        }
    }

    fn take(&self, stream: TcpStream, peer: SocketAddr, slot: Slot) {
        let is_one_of_few = self.slots.count() <= FEW_CONNECTIONS;
        let connection = ClientConnection {
            peer,
            connections: self.connections,
            buffer_bytes: if is_one_of_few { LARGE_BUFFER } else { SMALL_BUFFER },
            phases: Arc::clone(&self.phases),
            turns: self.turns.clone(),
            refusals: self.refusals.clone(),
            settings: Arc::clone(&self.settings),
            in_flight: self.in_flight.clone(),
            ends: self.ends.clone(),
            slot,
            lingering: self.lingering.clone(),
            remains: Remains::default(),
            has_asked: AtomicBool::default(),
            gave_way: CancellationToken::new(),
        };
        self.running.spawn(connection.run(stream, self.tls.clone()));
    }
}
