//! The line between an init-container and the server, which can be stopped in the middle of a download.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use cloakroom_testing::wait::{BOUND, until_true};

/// So much passes before the first download stops.
const BEFORE_IT_STOPS: usize = 1 << 20;

/// A TCP proxy on loopback. It holds the first connection that brings more than a megabyte until it is let go, which ends
/// it; later ones pass.
pub struct Tap {
    address: SocketAddr,
    line: Arc<Line>,
}

#[derive(Debug)]
struct Line {
    state: Mutex<State>,
    changed: Condvar,
    passed_bytes: AtomicUsize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Holding,
    LetGo,
}

impl Tap {
    pub fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Mutex::new(State::Open);
        let line = Arc::new(Line { state, changed: Condvar::new(), passed_bytes: AtomicUsize::new(0) });
        let of_thread = Arc::clone(&line);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let line = Arc::clone(&of_thread);
                std::thread::spawn(move || line.carry(client, server));
            }
        });
        Self { address, line }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until a download is held.
    pub async fn holds(&self) {
        until_true("a download is held", || *self.line.state.lock().unwrap() == State::Holding).await;
    }

    pub fn let_go(&self) {
        *self.line.state.lock().unwrap() = State::LetGo;
        self.line.changed.notify_all();
    }

    /// What has come from the server in all.
    pub fn passed_bytes(&self) -> usize {
        self.line.passed_bytes.load(Ordering::Relaxed)
    }
}

impl Line {
    /// A server that is not there, or no longer: the client sees its connection closed.
    fn carry(&self, mut client: TcpStream, server: SocketAddr) {
        let Ok(mut server) = TcpStream::connect(server) else { return };
        let (mut requests, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut requests, &mut to_server));
        let (mut bytes, mut passed_bytes) = ([0; 16 * 1024], 0);
        while let Ok(read @ 1..) = server.read(&mut bytes) {
            if client.write_all(&bytes[..read]).is_err() {
                break;
            }
            passed_bytes += read;
            self.passed_bytes.fetch_add(read, Ordering::Relaxed);
            if passed_bytes > BEFORE_IT_STOPS && self.hold() {
                break;
            }
        }
        let _ = client.shutdown(Shutdown::Both);
    }

    /// Whether it was held, until it was let go.
    fn hold(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        if *state != State::Open {
            return false;
        }
        *state = State::Holding;
        drop(self.changed.wait_timeout_while(state, BOUND, |state| *state == State::Holding).unwrap());
        true
    }
}
