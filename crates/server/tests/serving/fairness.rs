//! What one client does keeps no other one out.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use cloakroom_testing::wait::BOUND;
use cloakroom_testing::wire::{Wire, upload_head};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::support::TestApp;
use crate::support::app::Options;

const PLACES: usize = 8;

async fn connected(from: Ipv4Addr, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    socket.connect(to).await.unwrap()
}

// Invariant: a host with silent connections keeps no other host out.
#[tokio::test]
async fn silent_connections_of_one_host_keep_no_other_host_out() {
    let mut options = Options::default();
    options.connections.max = PLACES;
    options.connections.header_timeout = Duration::from_hours(1);
    let app = TestApp::start_with(options).await;
    let (busy, silent, honest) =
        (Ipv4Addr::new(127, 0, 0, 7), Ipv4Addr::new(127, 0, 0, 8), Ipv4Addr::new(127, 0, 0, 9));
    let mut upload = Wire(connected(busy, app.address).await);
    upload.send(upload_head("Content-Length: 4\r\nExpect: 100-continue\r\n")).await;
    assert_eq!(upload.answer().await.status, 100);
    let mut all = Vec::new();
    for _ in 0..2 * PLACES {
        all.push(connected(silent, app.address).await);
    }
    let mut kept = Vec::new();
    for _ in 0..PLACES / 2 {
        let mut wire = Wire(connected(honest, app.address).await);
        wire.send("GET /api/v1 HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert_eq!(wire.answer().await.status, 200);
        kept.push(wire);
    }
    upload.send("jars").await;
    assert_eq!(upload.answer().await.status, 201, "what is at work stays");
}

/// Sends a request without a ticket again and again, each on a new connection.
async fn refused_again_and_again(from: Ipv4Addr, to: SocketAddr) {
    loop {
        let mut wire = Wire(connected(from, to).await);
        wire.send("GET /api/v1/resources/00000000-0000-4000-8000-000000000000 HTTP/1.1\r\nHost: x\r\n\r\n")
            .await;
        let said = wire.rest().await;
        assert!(said.is_empty() || said.starts_with(b"HTTP/1.1 401 "), "{}", String::from_utf8_lossy(&said));
    }
}

// Invariant: a host whose refused connections come again and again keeps no other host out.
#[tokio::test]
async fn connections_that_are_refused_again_and_again_keep_no_other_host_out() {
    let mut options = Options::default();
    options.connections.max = PLACES;
    options.connections.header_timeout = Duration::from_millis(100);
    let app = TestApp::start_with(options).await;
    let (abuser, honest) = (Ipv4Addr::new(127, 0, 0, 8), Ipv4Addr::new(127, 0, 0, 9));
    let mut refused = tokio::task::JoinSet::new();
    for _ in 0..300 {
        refused.spawn(refused_again_and_again(abuser, app.address));
    }
    let requests = async {
        for _ in 0..30 {
            let mut wire = Wire(connected(honest, app.address).await);
            wire.send("GET /api/v1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
            assert_eq!(wire.answer().await.status, 200);
        }
    };
    // If each of them waited behind the others in the kernel's queue, it would take many times as long.
    timeout(BOUND, requests).await.expect("the other host is kept out");
    assert!(refused.try_join_next().is_none(), "the refused ones have ended");
}
