//! HTTP/1.1 by hand, from any loopback address: an abuser says what no library would, and here a server may fail.

use std::io::{Error, ErrorKind, Result};
use std::net::{Ipv4Addr, SocketAddr};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

/// How much is read at a time.
const PIECE_BYTES: usize = 256 << 10;

/// One connection.
pub struct Connection {
    stream: TcpStream,
    /// Read, and not looked at yet.
    read: Vec<u8>,
}

/// The head of an answer.
#[derive(Debug)]
pub struct Head {
    pub status: u16,
    text: String,
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    pub head: Head,
    pub body: Vec<u8>,
}

impl Head {
    /// The value of a header, or an empty text.
    pub fn header(&self, name: &str) -> &str {
        let mut lines = self.text.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value.trim())
    }

    /// The length of the body that follows.
    pub fn length(&self) -> usize {
        self.header("content-length").parse().unwrap_or_default()
    }
}

impl Answer {
    /// A field of a JSON body, or an empty text.
    pub fn field(&self, name: &str) -> String {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        body[name].as_str().unwrap_or_default().to_owned()
    }

    /// Status and, of a refusal, its code: `201`, `507 insufficient-storage`.
    pub fn outcome(&self) -> String {
        format!("{} {}", self.head.status, self.field("code")).trim_end().to_owned()
    }
}

impl Connection {
    pub async fn open(from: Ipv4Addr, to: SocketAddr) -> Result<Self> {
        Self::of(TcpSocket::new_v4()?, from, to).await
    }

    /// One whose system keeps little of what the other side sends.
    pub async fn open_narrow(from: Ipv4Addr, to: SocketAddr) -> Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(4 << 10)?;
        Self::of(socket, from, to).await
    }

    async fn of(socket: TcpSocket, from: Ipv4Addr, to: SocketAddr) -> Result<Self> {
        socket.bind(SocketAddr::from((from, 0)))?;
        let stream = socket.connect(to).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, read: Vec::new() })
    }

    /// Makes the connection end with a reset, so that its port is free again at once. Otherwise the system keeps the port
    /// for a minute, and a client with a thousand new connections in a second soon has none left.
    pub fn reset_at_the_end(&self) -> Result<()> {
        self.stream.set_zero_linger()
    }

    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) -> Result<()> {
        self.stream.write_all(bytes.as_ref()).await
    }

    /// Reads the head of an answer, `100 Continue` included.
    pub async fn head(&mut self) -> Result<Head> {
        let end = loop {
            if let Some(end) = self.read.windows(4).position(|window| window == b"\r\n\r\n") {
                break end;
            }
            self.read_more().await?;
        };
        let text = String::from_utf8_lossy(&self.read[..end]).into_owned();
        self.read.drain(..end + 4);
        let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| Error::new(ErrorKind::InvalidData, text.clone()))?;
        Ok(Head { status, text })
    }

    /// Reads a whole answer that is short. `100 Continue` is no answer.
    pub async fn answer(&mut self) -> Result<Answer> {
        let mut head = self.head().await?;
        while head.status == 100 {
            head = self.head().await?;
        }
        self.rest_of(head).await
    }

    /// Reads what follows the head of a short answer.
    pub async fn rest_of(&mut self, head: Head) -> Result<Answer> {
        let mut body = Vec::new();
        self.body(&head, |piece| body.extend_from_slice(piece)).await?;
        Ok(Answer { head, body })
    }

    /// Reads the body that follows a head.
    pub async fn body(&mut self, head: &Head, mut take: impl FnMut(&[u8])) -> Result<()> {
        let mut left = head.length();
        while left > 0 {
            if self.read.is_empty() {
                self.read_more().await?;
            }
            let now = left.min(self.read.len());
            take(&self.read[..now]);
            self.read.drain(..now);
            left -= now;
        }
        Ok(())
    }

    /// Reads up to `bytes`, whatever they are; 0 once the server has closed.
    pub async fn sip(&mut self, bytes: usize) -> Result<usize> {
        let mut piece = vec![0; bytes];
        self.stream.read(&mut piece).await
    }

    /// Sends a request and reads its short answer.
    pub async fn ask(&mut self, request: impl AsRef<[u8]>) -> Result<Answer> {
        // A server that refuses may close before it has read everything.
        let sent = self.send(request).await;
        self.answer().await.map_err(|error| sent.err().unwrap_or(error))
    }

    async fn read_more(&mut self) -> Result<()> {
        let before = self.read.len();
        self.read.resize(before + PIECE_BYTES, 0);
        let read = self.stream.read(&mut self.read[before..]).await;
        self.read.truncate(before + *read.as_ref().unwrap_or(&0));
        if read? == 0 { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }
}
