//! Bytes on a socket, for requests that no well-behaved client sends.

use std::net::SocketAddr;
use std::time::Duration;

use cloakroom_core::protocol::v1::Ticket;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::wait::BOUND;

/// A connection that sends exactly the given bytes.
pub struct Wire(pub TcpStream);

/// An answer as received.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    /// The value of a header; empty if the answer has none.
    pub fn header(&self, name: &str) -> &str {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines
            .into_iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map_or("", |(_, value)| value.trim())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Wire {
    pub async fn connect(address: SocketAddr) -> Self {
        Self(TcpStream::connect(address).await.unwrap())
    }

    /// Sends bytes; `false` if the server has closed.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.0.write_all(bytes.as_ref()).await.is_ok()
    }

    /// Reads one answer with its Content-Length body.
    pub async fn answer(&mut self) -> Answer {
        tokio::time::timeout(BOUND, self.read_answer()).await.expect("no answer came in time")
    }

    /// Waits until an answer begins, and reads nothing of it.
    pub async fn begins(&mut self) {
        let peeked = tokio::time::timeout(BOUND, self.0.peek(&mut [0])).await;
        assert!(peeked.expect("no answer came in time").unwrap() > 0, "the server closed without an answer");
    }

    /// Waits until the server closes, and returns the bytes that it sent before.
    pub async fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let read = tokio::time::timeout(BOUND, self.0.read_to_end(&mut rest)).await;
        assert!(read.is_ok(), "the server did not close the connection in time");
        rest
    }

    async fn read_answer(&mut self) -> Answer {
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(end) = find(&bytes, b"\r\n\r\n") {
                break end;
            }
            let mut chunk = [0; 4096];
            let read = self.0.read(&mut chunk).await.expect("the connection broke before an answer");
            assert!(read > 0, "the server closed without an answer: {}", String::from_utf8_lossy(&bytes));
            bytes.extend_from_slice(&chunk[..read]);
        };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut answer = Answer { status, head, body: bytes[end + 4..].to_vec() };
        let length: usize = answer.header("content-length").parse().unwrap_or(0);
        while answer.body.len() < length {
            let mut chunk = vec![0; length - answer.body.len()];
            let read = self.0.read(&mut chunk).await.unwrap();
            assert!(read > 0, "the body broke off");
            answer.body.extend_from_slice(&chunk[..read]);
        }
        answer
    }
}

/// The head of an upload with additional header lines, each with its line end.
pub fn upload_head(headers: &str) -> String {
    format!(
        "PUT /api/v1/resources/deps.tgz?namespace=demo&label=app%3Ddemo HTTP/1.1\r\nHost: x\r\n{headers}\r\n"
    )
}

/// A whole request to download.
pub fn download_request(ticket: &Ticket) -> String {
    let Ticket { resource_id, resource_secret, .. } = ticket;
    format!(
        "GET /api/v1/resources/{resource_id} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {resource_secret}\r\n\r\n"
    )
}

/// Sends a whole request and reads its answer.
pub async fn ask(address: SocketAddr, request: impl AsRef<[u8]>) -> Answer {
    let mut wire = Wire::connect(address).await;
    wire.send(request).await;
    wire.answer().await
}

/// How long a test waits to see that nothing comes.
pub const SOON: Duration = Duration::from_millis(100);

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}
