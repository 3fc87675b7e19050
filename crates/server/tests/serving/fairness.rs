//! What one client does keeps no other one out.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use cloakroom_testing::wire::{Wire, upload_head};
use tokio::net::{TcpSocket, TcpStream};

use crate::support::TestApp;
use crate::support::app::Options;

const PLACES: usize = 8;

async fn connected(from: Ipv4Addr, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    socket.connect(to).await.unwrap()
}

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
