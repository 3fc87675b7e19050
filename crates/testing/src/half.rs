//! An upload of which one half has come, while something else happens.

use std::net::SocketAddr;
use std::path::Path;

use cloakroom_core::protocol::v1::Ticket;

use crate::wait::until_true;
use crate::wire::{Wire, ask, upload_head};

/// An upload of eight bytes of which four have come.
pub async fn half_an_upload(address: SocketAddr, data_dir: &Path) -> Wire {
    let mut wire = Wire::connect(address).await;
    wire.send(upload_head("Content-Length: 8\r\n")).await;
    wire.send("half").await;
    until_true("the upload has begun", || incoming(data_dir) == 1).await;
    wire
}

/// How many uploads have bytes there.
pub fn incoming(data_dir: &Path) -> usize {
    std::fs::read_dir(data_dir.join("incoming")).unwrap().count()
}

pub async fn the_other_half(mut wire: Wire) -> Ticket {
    wire.send("half").await;
    let answer = wire.answer().await;
    assert_eq!((answer.status, answer.header("connection")), (201, "close"), "{}", answer.text());
    assert_eq!(wire.rest().await, b"");
    serde_json::from_slice(&answer.body).unwrap()
}

/// Asks on a connection of its own whether the server still lets requests in.
pub async fn is_told_to_come_again(address: SocketAddr) -> bool {
    let answer = ask(address, "GET /api/v1 HTTP/1.1\r\nHost: x\r\n\r\n").await;
    answer.status == 503 && answer.text().contains("\"code\":\"shutting-down\"")
}
