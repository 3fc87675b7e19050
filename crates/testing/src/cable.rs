//! A connection between a client and a server that a test can cut, or leave open and dead.

use std::net::SocketAddr;
use std::sync::Mutex;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};

/// A TCP proxy on loopback. It runs on a thread of its own.
pub struct Cable {
    address: SocketAddr,
    orders: watch::Sender<Orders>,
    end: Mutex<Option<oneshot::Sender<()>>>,
}

/// Connections have growing numbers, and an order is for all up to a number.
#[derive(Default)]
struct Orders {
    opened: u64,
    cut: u64,
    dead: u64,
}

impl Cable {
    pub fn to(server: SocketAddr) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let orders = watch::Sender::new(Orders::default());
        let (end, ended) = oneshot::channel();
        let accepting = accept(listener, server, orders.clone());
        // Dropping the runtime closes all connections.
        std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accepting => {}
                    _ = ended => {}
                }
            });
        });
        Self { address, orders, end: Mutex::new(Some(end)) }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes the open connections.
    pub fn cut(&self) {
        self.orders.send_modify(|orders| orders.cut = orders.opened);
    }

    /// From now on the open connections carry nothing, and neither side notices. New ones work.
    pub fn go_dead(&self) {
        self.orders.send_modify(|orders| orders.dead = orders.opened);
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        if let Some(end) = self.end.lock().unwrap().take() {
            let _ = end.send(());
        }
    }
}

async fn accept(listener: std::net::TcpListener, server: SocketAddr, orders: watch::Sender<Orders>) {
    let listener = TcpListener::from_std(listener).unwrap();
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        let mut number = 0;
        orders.send_modify(|orders| {
            orders.opened += 1;
            number = orders.opened;
        });
        tokio::spawn(carry(client, server, number, orders.subscribe()));
    }
}

async fn carry(mut client: TcpStream, server: SocketAddr, number: u64, mut orders: watch::Receiver<Orders>) {
    // If the server does not listen, the client sees its connection closed.
    let Ok(mut server) = TcpStream::connect(server).await else { return };
    tokio::select! {
        _ = copy_bidirectional(&mut client, &mut server) => return,
        _ = orders.wait_for(|orders| orders.cut >= number || orders.dead >= number) => {}
    }
    let _ = orders.wait_for(|orders| orders.cut >= number).await;
}
