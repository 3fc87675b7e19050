//! A proxy before a server that fails or is being replaced. It lets requests pass, answers in its place, loses the answer, cuts or
//! holds a connection in the middle, or refuses all connections from then on.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use crate::wait::{BOUND, until_true};

/// The answer of a server that is about to stop.
pub const STOPPING: Turn = Turn::Answer(
    503,
    "application/problem+json",
    "{\"status\":503,\"code\":\"shutting-down\",\"detail\":\"this server is about to stop\"}",
);
const LONGEST_HEAD: usize = 64 << 10;

/// How the proxy treats a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    Pass,
    /// It gets this status, type and body as its answer before its body is read.
    Answer(u16, &'static str, &'static str),
    /// It passes whole. Its answer comes from the server, and does not reach the client.
    LoseAnswer,
    /// It passes. After this many bytes of the answer the connection is cut.
    Cut {
        after: usize,
    },
    /// It passes until this many bytes went in one direction. Then nothing moves until [`Front::let_go`], which cuts
    /// it.
    Hold {
        after: usize,
    },
    /// It passes. In the head of its answer the first text is replaced by the second one.
    Rewrite(&'static str, &'static str),
    /// It passes. All later connections are refused, as if there were no server.
    Last,
}

type Script = dyn Fn(&str) -> Turn + Send + Sync;

/// A proxy. It asks the server to close the connection after each request.
pub struct Front {
    line: Arc<Line>,
}

struct Line {
    address: SocketAddr,
    server: SocketAddr,
    script: Box<Script>,
    hold: Mutex<Hold>,
    changed: Condvar,
    passed_bytes: AtomicUsize,
    is_closed: AtomicBool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    Ahead,
    Now,
    Over,
}

impl Front {
    /// `script` sees the line of each request, such as `GET /x HTTP/1.1`.
    pub fn before(server: SocketAddr, script: impl Fn(&str) -> Turn + Send + Sync + 'static) -> Self {
        Self::on(Ipv4Addr::LOCALHOST, server, script)
    }

    /// The same at another interface.
    pub fn on(
        address: Ipv4Addr,
        server: SocketAddr,
        script: impl Fn(&str) -> Turn + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let line = Arc::new(Line {
            address,
            server,
            script: Box::new(script),
            hold: Mutex::new(Hold::Ahead),
            changed: Condvar::new(),
            passed_bytes: AtomicUsize::new(0),
            is_closed: AtomicBool::new(false),
        });
        let of_thread = Arc::clone(&line);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if of_thread.is_closed.load(Ordering::Relaxed) {
                    return;
                }
                let line = Arc::clone(&of_thread);
                std::thread::spawn(move || line.serve(&client));
            }
        });
        Self { line }
    }

    pub fn address(&self) -> SocketAddr {
        self.line.address
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Waits until a connection is held.
    pub async fn holds(&self) {
        until_true("a connection is held", || self.is_holding()).await;
    }

    pub fn is_holding(&self) -> bool {
        *self.line.hold.lock().unwrap() == Hold::Now
    }

    pub fn let_go(&self) {
        *self.line.hold.lock().unwrap() = Hold::Over;
        self.line.changed.notify_all();
    }

    /// The bytes that have passed in both directions.
    pub fn passed_bytes(&self) -> usize {
        self.line.passed_bytes.load(Ordering::Relaxed)
    }
}

impl Line {
    /// Serves one connection. If the server does not listen, the client sees its connection closed.
    fn serve(&self, client: &TcpStream) {
        let Some(head) = read_head(client) else { return };
        let text = String::from_utf8_lossy(&head);
        let turn = (self.script)(text.lines().next().unwrap_or_default());
        match turn {
            Turn::Answer(status, kind, body) => return answer(client, status, kind, body),
            Turn::Last => self.close(),
            Turn::Pass | Turn::LoseAnswer | Turn::Rewrite(..) | Turn::Cut { .. } | Turn::Hold { .. } => {}
        }
        let Ok(server) = TcpStream::connect(self.server) else { return };
        if (&server).write_all(&with_close(head)).is_err() {
            return;
        }
        let (most, most_back) = match turn {
            Turn::Hold { after } => (after, after),
            Turn::Cut { after } => (usize::MAX, after),
            _ => (usize::MAX, usize::MAX),
        };
        let is_held = most != usize::MAX;
        std::thread::scope(|scope| {
            scope.spawn(|| self.carry(client, &server, most, is_held));
            if let Turn::Rewrite(from, to) = turn {
                let mut answer = Vec::new();
                let _ = (&server).read_to_end(&mut answer);
                let _ = (&*client).write_all(&rewritten(&answer, from, to));
                let _ = client.shutdown(Shutdown::Both);
            } else if turn == Turn::LoseAnswer {
                let _ = std::io::copy(&mut (&server), &mut std::io::sink());
                let _ = (server.shutdown(Shutdown::Both), client.shutdown(Shutdown::Both));
            } else {
                self.carry(&server, client, most_back, is_held);
            }
        });
    }

    /// Ends the listener, which looks at `is_closed` only when it has a connection. Returns once connections are refused.
    fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        while TcpStream::connect(self.address).is_ok() {}
    }

    /// Carries one direction, `most` bytes of it. If it ends in an error or is cut, both directions end.
    fn carry(&self, mut from: &TcpStream, mut to: &TcpStream, most: usize, is_held: bool) {
        let (mut bytes, mut carried) = ([0; 16 << 10], 0);
        loop {
            match from.read(&mut bytes) {
                Ok(0) => {
                    let _ = to.shutdown(Shutdown::Write);
                    return;
                }
                Ok(read) if carried < most && to.write_all(&bytes[..read]).is_ok() => {
                    carried += read;
                    self.passed_bytes.fetch_add(read, Ordering::Relaxed);
                    if carried < most {
                        continue;
                    }
                    if is_held {
                        self.wait();
                    }
                }
                _ => {}
            }
            let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
            return;
        }
    }

    fn wait(&self) {
        let mut hold = self.hold.lock().unwrap();
        if *hold == Hold::Ahead {
            *hold = Hold::Now;
        }
        drop(self.changed.wait_timeout_while(hold, BOUND, |hold| *hold == Hold::Now).unwrap());
    }
}

/// The head of the request, with the bytes that came with it.
fn read_head(mut client: &TcpStream) -> Option<Vec<u8>> {
    let (mut head, mut bytes) = (Vec::new(), [0; 4096]);
    while !head.windows(4).any(|four| four == b"\r\n\r\n") && head.len() < LONGEST_HEAD {
        let read = client.read(&mut bytes).ok().filter(|read| *read > 0)?;
        head.extend_from_slice(&bytes[..read]);
    }
    Some(head)
}

fn rewritten(answer: &[u8], from: &str, to: &str) -> Vec<u8> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(answer.len());
    let head = String::from_utf8_lossy(&answer[..end]).replace(from, to);
    [head.as_bytes(), &answer[end..]].concat()
}

/// The head with the wish that the connection ends after the answer.
fn with_close(mut head: Vec<u8>) -> Vec<u8> {
    let line = head.windows(2).position(|two| two == b"\r\n").unwrap_or(0) + 2;
    head.splice(line..line, *b"connection: close\r\n");
    head
}

/// Answers in place of the server. It closes only after the client, which might not see the answer otherwise.
fn answer(mut client: &TcpStream, status: u16, kind: &str, body: &str) {
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status} Of The Proxy\r\ncontent-type: {kind}\r\netag: \"of-the-proxy\"\r\ncontent-length: \
         {length}\r\nconnection: close\r\n\r\n{body}"
    );
    let _ = client.write_all(answer.as_bytes()).and_then(|()| client.shutdown(Shutdown::Write));
    let _ = std::io::copy(&mut client, &mut std::io::sink());
}
