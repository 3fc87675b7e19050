//! A proxy before a server that is being replaced. It lets requests pass, answers that the server is about to stop, holds
//! a connection in the middle until the server is gone, or refuses all connections from then on.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use crate::wait::{BOUND, until_true};

const STOPPING: &str =
    "{\"status\":503,\"code\":\"shutting-down\",\"detail\":\"this server is about to stop\"}";
const LONGEST_HEAD: usize = 64 << 10;

/// How the proxy treats a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    Pass,
    /// It gets a 503 before its body is read.
    Stopping,
    /// It passes until this many bytes went in one direction. Then nothing moves until [`Front::let_go`], which cuts
    /// it.
    Hold {
        after: usize,
    },
    /// It passes. All later connections are refused, as if there were no server.
    Last,
}

type Script = dyn Fn(&str) -> Turn + Send + Sync;

/// A proxy on loopback, with one request for each connection.
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
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
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

    pub fn url(&self) -> String {
        format!("http://{}", self.line.address)
    }

    /// Waits until a connection is held.
    pub async fn holds(&self) {
        until_true("a connection is held", || *self.line.hold.lock().unwrap() == Hold::Now).await;
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
            Turn::Stopping => return refuse(client),
            Turn::Last => self.close(),
            Turn::Pass | Turn::Hold { .. } => {}
        }
        let Ok(server) = TcpStream::connect(self.server) else { return };
        if (&server).write_all(&head).is_err() {
            return;
        }
        let most = if let Turn::Hold { after } = turn { after } else { usize::MAX };
        std::thread::scope(|scope| {
            scope.spawn(|| self.carry(client, &server, most));
            self.carry(&server, client, most);
        });
    }

    /// Ends the listener, which looks at `is_closed` only when it has a connection. Returns once connections are refused.
    fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        while TcpStream::connect(self.address).is_ok() {}
    }

    /// Carries one direction. If it ends in an error or is cut, both directions end.
    fn carry(&self, mut from: &TcpStream, mut to: &TcpStream, most: usize) {
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
                    self.wait();
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

/// Answers 503. It closes only after the client, which might not see the answer otherwise.
fn refuse(mut client: &TcpStream) {
    let length = STOPPING.len();
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n{STOPPING}"
    );
    let _ = client.write_all(answer.as_bytes()).and_then(|()| client.shutdown(Shutdown::Write));
    let _ = std::io::copy(&mut client, &mut std::io::sink());
}
