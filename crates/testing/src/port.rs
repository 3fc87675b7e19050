//! A port that stays reserved for one server, even while that server is down.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpSocket;

/// A bound socket that never listens. The system gives its port to no process that asks for any free port, and refuses
/// connections to it. A server that sets `SO_REUSEADDR`, as nearly all do, can still bind it and listen.
pub struct ReservedPort(TcpSocket);

impl ReservedPort {
    pub fn new() -> Self {
        Self::on(Ipv4Addr::LOCALHOST)
    }

    /// The same of another interface.
    pub fn on(address: Ipv4Addr) -> Self {
        Self(bound(SocketAddr::from((address, 0))))
    }

    pub fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    /// Another socket at this address, to listen on.
    pub fn socket(&self) -> TcpSocket {
        bound(self.address())
    }
}

fn bound(address: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(address).unwrap();
    socket
}
