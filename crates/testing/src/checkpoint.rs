//! A proxy before several servers. It numbers all requests, and lets one of them fail as a test plans.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, TRANSFER_ENCODING};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::tls;
use super::wait::{BOUND, until_true};

/// The ways in which a request can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accident {
    /// It is refused with this HTTP status, and does not reach its server.
    Refused(u16),
    /// Its connection breaks before it reaches the server.
    Cut,
    /// The server handles it, and the connection breaks before the answer.
    AnswerLost,
    /// It does not reach its server, and gets no answer.
    Hangs,
    /// The server handles it, and the answer is held until [`Checkpoint::let_go`].
    AnswerHangs,
}

/// The requests that fail, from the planned number on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Only the request with this number.
    Once,
    /// It and all later requests with the same method and path.
    EachTime,
    /// It and all later requests to the same server.
    WholeServer,
}

/// A request that passed the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passed {
    /// The name of its server.
    pub server: &'static str,
    /// Its method and path, and whether it is a dry run.
    pub what: String,
}

impl fmt::Display for Passed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.server, self.what)
    }
}

#[derive(Default)]
struct Book {
    passed: Vec<Passed>,
    /// The first request that fails, counted from 0.
    plan: Option<(usize, Extent, Accident)>,
    accidents: usize,
    /// Whether held answers are released.
    is_over: bool,
}

/// The proxy. It runs on a thread of its own.
pub struct Checkpoint {
    book: Arc<(Mutex<Book>, Condvar)>,
    gates: Vec<SocketAddr>,
    end: Option<oneshot::Sender<()>>,
}

impl Checkpoint {
    /// Opens an address (a gate) for each of the servers.
    pub fn before(servers: &[(&'static str, SocketAddr)]) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let book = Arc::<(Mutex<Book>, Condvar)>::default();
        let mut gates = Vec::new();
        for (name, server) in servers {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            listener.set_nonblocking(true).unwrap();
            gates.push(listener.local_addr().unwrap());
            let client = reqwest::Client::builder().no_proxy().tls_backend_preconfigured(tls::no_roots());
            let client = client.pool_max_idle_per_host(0).build().unwrap();
            runtime.spawn(serve(listener, Gate { name, server: *server, client, book: Arc::clone(&book) }));
        }
        let (end, ended) = oneshot::channel();
        std::thread::spawn(move || runtime.block_on(ended));
        Self { book, gates, end: Some(end) }
    }

    /// The address for a server, by its position in the list given to [`Self::before`].
    pub fn gate(&self, index: usize) -> SocketAddr {
        self.gates[index]
    }

    /// Forgets the recorded requests, and plans `accident` from the request `number` on, counted from 0.
    pub fn plan(&self, number: usize, extent: Extent, accident: Accident) {
        *self.book.0.lock().unwrap() = Book { plan: Some((number, extent, accident)), ..Book::default() };
    }

    /// Releases held answers.
    pub fn let_go(&self) {
        self.book.0.lock().unwrap().is_over = true;
    }

    /// Forgets the recorded requests, and lets all later ones pass.
    pub fn heal(&self) {
        *self.book.0.lock().unwrap() = Book::default();
    }

    /// The recorded requests.
    pub fn passed(&self) -> Vec<Passed> {
        self.book.0.lock().unwrap().passed.clone()
    }

    /// How many requests have failed.
    pub fn accidents(&self) -> usize {
        self.book.0.lock().unwrap().accidents
    }

    /// Waits until a request fails.
    pub fn until_accident(&self) {
        let book = self.book.0.lock().unwrap();
        let waited = self.book.1.wait_timeout_while(book, BOUND, |book| book.accidents == 0).unwrap();
        assert!(!waited.1.timed_out(), "nothing went wrong among {:?}", waited.0.passed);
    }
}

impl Drop for Checkpoint {
    fn drop(&mut self) {
        self.end.take();
    }
}

#[derive(Clone)]
struct Gate {
    name: &'static str,
    server: SocketAddr,
    client: reqwest::Client,
    book: Arc<(Mutex<Book>, Condvar)>,
}

async fn serve(listener: std::net::TcpListener, gate: Gate) {
    let listener = TcpListener::from_std(listener).unwrap();
    loop {
        let Ok((connection, _)) = listener.accept().await else { continue };
        let gate = gate.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| gate.clone().pass(request));
            // An error means a broken connection, which its client or this plan has caused.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(connection), service).await;
        });
    }
}

impl Gate {
    async fn pass(self, request: Request<Incoming>) -> io::Result<Response<Full<Bytes>>> {
        let accident = self.note(&request);
        match accident {
            Some(Accident::Refused(code)) => {
                let _ = request.into_body().collect().await;
                self.happened();
                return Ok(self.refusal(code));
            }
            Some(Accident::Cut) => {
                self.happened();
                return Err(cut());
            }
            Some(Accident::Hangs) => {
                self.happened();
                return std::future::pending().await;
            }
            Some(Accident::AnswerLost | Accident::AnswerHangs) | None => {}
        }
        let answer = self.forward(request).await.map_err(io::Error::other)?;
        match accident {
            None => return Ok(answer),
            Some(_) => self.happened(),
        }
        if accident == Some(Accident::AnswerLost) {
            return Err(cut());
        }
        until_true("it is let go", || self.book.0.lock().unwrap().is_over).await;
        Ok(answer)
    }

    fn note(&self, request: &Request<Incoming>) -> Option<Accident> {
        let is_dry_run = request.uri().query().is_some_and(|query| query.contains("dryRun"));
        let dry = if is_dry_run { " (dry run)" } else { "" };
        let passed =
            Passed { server: self.name, what: format!("{} {}{dry}", request.method(), request.uri().path()) };
        let mut book = self.book.0.lock().unwrap();
        book.passed.push(passed.clone());
        let (number, extent, accident) = book.plan?;
        let first = book.passed.get(number)?;
        let is_meant = match extent {
            Extent::Once => book.passed.len() == number + 1,
            Extent::EachTime => *first == passed,
            Extent::WholeServer => first.server == passed.server,
        };
        is_meant.then_some(accident)
    }

    fn happened(&self) {
        self.book.0.lock().unwrap().accidents += 1;
        self.book.1.notify_all();
    }

    async fn forward(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, String> {
        let said = |error: &dyn fmt::Display| error.to_string();
        let (parts, body) = request.into_parts();
        let url = format!("http://{}{}", self.server, parts.uri);
        let body = body.collect().await.map_err(|error| said(&error))?.to_bytes();
        let sent = self.client.request(parts.method, url).headers(end_to_end(parts.headers)).body(body);
        let answer = sent.send().await.map_err(|error| said(&error))?;
        let (status, headers) = (answer.status(), end_to_end(answer.headers().clone()));
        let mut passed = Response::new(Full::new(answer.bytes().await.map_err(|error| said(&error))?));
        (*passed.status_mut(), *passed.headers_mut()) = (status, headers);
        Ok(passed)
    }

    /// A refusal that both kinds of clients understand: an API server's `Status`, or a staging server's problem (RFC
    /// 9457).
    fn refusal(&self, code: u16) -> Response<Full<Bytes>> {
        let message = format!("the test wants a {code}");
        let (content_type, body) = if self.name == STAGING {
            let problem = json!({"type": "about:blank", "title": "no", "status": code, "detail": message, "code": "test"});
            ("application/problem+json", problem)
        } else {
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Test",
                "message": message, "code": code});
            ("application/json", status)
        };
        let response = Response::builder().status(code).header(CONTENT_TYPE, content_type);
        response.body(Full::new(body.to_string().into())).unwrap()
    }
}

/// The name of a gate to a staging server, whose refusals look different.
pub const STAGING: &str = "staging";

/// Removes the headers that belong to one connection (RFC 9110, 7.6.1).
fn end_to_end(mut headers: HeaderMap) -> HeaderMap {
    for name in [HOST, CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING] {
        headers.remove(name);
    }
    headers
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "cut by the test")
}
