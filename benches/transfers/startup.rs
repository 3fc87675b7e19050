//! From the start of the process to the first answer of /readyz: on an empty data directory, and on one in use.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use cloakroom_testing::process::command;
use cloakroom_testing::spread::Spread;

pub fn run() {
    let (mut empty, mut used) = (Spread::default(), Spread::default());
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        empty.add(start(folder.path()));
        used.add(start(folder.path()));
    }
    println!("start to ready, empty data directory: {empty}");
    println!("start to ready, data directory in use: {used}");
}

fn start(data_dir: &Path) -> Duration {
    // A port that was free a moment ago. It must be known beforehand, because the log is not read here.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut serve = command();
    serve.args(["serve", "--listen", &address.to_string(), "--data-dir"]).arg(data_dir).stderr(Stdio::null());
    let started = Instant::now();
    let mut server = serve.spawn().unwrap();
    while !is_ready(address) {
        assert!(started.elapsed() < Duration::from_secs(10), "not ready");
        std::thread::sleep(Duration::from_millis(1));
    }
    let took = started.elapsed();
    server.kill().unwrap();
    server.wait().unwrap();
    took
}

fn is_ready(address: SocketAddr) -> bool {
    let Ok(mut socket) = TcpStream::connect(address) else { return false };
    socket.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).is_ok() && answer.starts_with("HTTP/1.1 200")
}
