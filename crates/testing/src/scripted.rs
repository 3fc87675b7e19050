//! An HTTP/1.1 server that follows a test's script: cuts bodies, refuses ranges, answers early, hangs.

mod wire;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use wire::{drain, read_body, read_head, send};

/// The head of a request.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    /// The target of the request line: with the query, and with scheme and host if the request is for a proxy.
    pub target: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The N of `Range: bytes=N-`.
    pub fn range_start(&self) -> Option<usize> {
        self.header("range")?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
    }
}

/// An answer of the server.
#[derive(Debug, Clone)]
pub struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Whole,
    CutAfter(usize),
    HangAfter(usize),
}

impl Answer {
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into(), end: End::Whole }
    }

    pub fn problem(status: u16, code: &str, detail: &str) -> Self {
        let body = serde_json::json!({"status": status, "code": code, "detail": detail});
        Self::new(status, body.to_string()).header("content-type", "application/problem+json")
    }

    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Closes the connection after this many bytes of the body.
    pub fn cut_after(mut self, bytes: usize) -> Self {
        self.end = End::CutAfter(bytes);
        self
    }

    /// Stops after this many bytes of the body, and keeps the connection open.
    pub fn hang_after(mut self, bytes: usize) -> Self {
        self.end = End::HangAfter(bytes);
        self
    }
}

/// Makes the answer from a request's body.
pub type AnswerToBody = Box<dyn Fn(&[u8]) -> Answer + Send + Sync>;

/// How to treat a request.
pub enum Reply {
    /// Answer before its body is read.
    Send(Answer),
    /// Read its body, then answer.
    TakeBody(AnswerToBody),
    /// Read this much of its body, then close the connection.
    BreakBody(usize),
    /// Never answer.
    Hang,
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        Self::Send(answer)
    }
}

/// A file that is served with a digest, an entity tag and ranges.
#[derive(Debug, Clone)]
pub struct ServedFile {
    pub bytes: Vec<u8>,
    pub etag: String,
}

impl ServedFile {
    pub fn new(bytes: impl Into<Vec<u8>>, etag: &str) -> Self {
        Self { bytes: bytes.into(), etag: format!("\"{etag}\"") }
    }

    /// The answer that RFC 9110 asks for.
    pub fn answer(&self, request: &Request) -> Answer {
        match request.range_start() {
            Some(start) if request.header("if-range").is_none_or(|etag| etag == self.etag) => {
                self.part(start)
            }
            _ => self.whole(),
        }
    }

    pub fn whole(&self) -> Answer {
        self.described(Answer::new(200, self.bytes.clone()))
    }

    fn part(&self, start: usize) -> Answer {
        let (length, last) = (self.bytes.len(), self.bytes.len() - 1);
        let answer = Answer::new(206, &self.bytes[start..]);
        self.described(answer.header("content-range", format!("bytes {start}-{last}/{length}")))
    }

    fn described(&self, answer: Answer) -> Answer {
        use sha2::Digest;
        let sha256 = sha2::Sha256::digest(&self.bytes).into();
        answer
            .header("etag", &self.etag)
            .header("repr-digest", cloakroom_core::protocol::digest::format(&sha256))
    }
}

/// A running server. It stops when this is dropped.
pub struct Scripted {
    address: SocketAddr,
    scheme: &'static str,
    requests: Arc<Mutex<Vec<Request>>>,
    seen: watch::Receiver<usize>,
    accepting: tokio::task::JoinHandle<()>,
}

type Script = Arc<dyn Fn(usize, &Request) -> Reply + Send + Sync>;

impl Scripted {
    /// Serves on a free port of this machine. `script` gets the number of the request, from 0, and its head.
    pub async fn start(script: impl Fn(usize, &Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_with(None, Arc::new(script)).await
    }

    /// The same over TLS.
    pub async fn start_tls(
        config: rustls::ServerConfig,
        script: impl Fn(usize, &Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::start_with(Some(TlsAcceptor::from(Arc::new(config))), Arc::new(script)).await
    }

    async fn start_with(tls: Option<TlsAcceptor>, script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (tell, seen) = watch::channel(0);
        let state = Arc::new(State { script, requests: Arc::clone(&requests), tell });
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (state, tls) = (Arc::clone(&state), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => state.serve(stream).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                state.serve(stream).await;
                            }
                        }
                    }
                });
            }
        });
        Self { address, scheme, requests, seen, accepting }
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The heads of all requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Waits until this many requests came.
    pub async fn wait_for_requests(&self, count: usize) {
        self.seen.clone().wait_for(|seen| *seen >= count).await.unwrap();
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// A port of this machine on which no process listens.
pub fn closed_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

struct State {
    script: Script,
    requests: Arc<Mutex<Vec<Request>>>,
    tell: watch::Sender<usize>,
}

impl State {
    /// Serves one request for each connection. An error means that the client has gone.
    async fn serve(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
        let Some((request, rest)) = read_head(&mut stream).await else {
            // The usual answer to bytes that are not HTTP.
            send(&mut stream, &Answer::new(400, "")).await;
            return;
        };
        let number = {
            let mut requests = self.requests.lock().unwrap();
            requests.push(request.clone());
            requests.len() - 1
        };
        let _ = self.tell.send(number + 1);
        match (self.script)(number, &request) {
            Reply::Send(answer) => {
                send(&mut stream, &answer).await;
                drain(&mut stream).await;
            }
            Reply::TakeBody(answer) => {
                if let Some(body) = read_body(&mut stream, &request, rest).await {
                    send(&mut stream, &answer(&body)).await;
                }
            }
            Reply::BreakBody(bytes) => {
                let mut taken = vec![0; bytes.saturating_sub(rest.len())];
                let _ = stream.read_exact(&mut taken).await;
            }
            Reply::Hang => std::future::pending().await,
        }
    }
}
