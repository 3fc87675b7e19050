//! The loop of a data engineer: 220 jars, two of them built again. How long that takes, and what travels, over lines of some speeds.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cloakroom_testing::noise::noise;
use cloakroom_testing::process::{Cloakroom, command};
use cloakroom_testing::spread::Spread;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::time::sleep_until;

use super::binaries::cpu;
use super::memory::peak;

const JARS: usize = 220;
const JAR_BYTES: usize = 1_373_000;
const ROUNDS: usize = 5;

/// A line that has sent nothing for so long has no time to make up for.
const IDLE: Duration = Duration::from_millis(20);

/// The speed of a line, in bits a second; `None` has no limit.
const LINES: [(&str, Option<u64>); 3] =
    [("loopback", None), ("100 Mbit/s", Some(100_000_000)), ("20 Mbit/s", Some(20_000_000))];

/// A machine with the jars.
struct Laptop {
    folder: TempDir,
    /// How many jars were written. Each has other bytes.
    written: u64,
}

pub fn run() {
    let runtime = Runtime::new().unwrap();
    let mut laptop = Laptop { folder: tempfile::tempdir().unwrap(), written: 0 };
    std::fs::create_dir(laptop.jars()).unwrap();
    (0..JARS).for_each(|number| laptop.build(number));
    for (name, bits) in LINES {
        let data = tempfile::tempdir().unwrap();
        let server = Cloakroom::serve(&data.path().join("data"), &["--min-free-space", "0b"]);
        let sent = Arc::new(AtomicU64::new(0));
        let line = runtime.block_on(line(server.address.parse().unwrap(), bits, Arc::clone(&sent)));
        println!("{name}:");
        laptop.measure(&server, line, &sent, bits.is_none());
    }
}

impl Laptop {
    fn jars(&self) -> PathBuf {
        self.folder.path().join("jars")
    }

    fn build(&mut self, number: usize) {
        self.written += 1;
        let key = self.written.to_le_bytes();
        let bytes = noise(JAR_BYTES).into_iter().zip(key.into_iter().cycle()).map(|(byte, key)| byte ^ key);
        std::fs::write(self.jars().join(format!("{number}.jar")), bytes.collect::<Vec<u8>>()).unwrap();
    }

    /// Stages all jars. Returns the time from the command to the ticket.
    fn stage(&self, line: SocketAddr, home: &Path, flags: &[&str]) -> Duration {
        let mut stage = command();
        stage.current_dir(self.jars()).env("HOME", home).args(["stage", "--quiet", "--namespace", "demo"]);
        stage.args(["--label", "app=demo", "--server", &format!("http://{line}")]).args(flags);
        stage.args((0..JARS).map(|number| format!("{number}.jar")));
        let began = Instant::now();
        let output = stage.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        began.elapsed()
    }

    fn measure(&mut self, server: &Cloakroom, line: SocketAddr, sent: &AtomicU64, is_quick: bool) {
        let home = tempfile::tempdir().unwrap();
        let (mut whole, mut first) = (Spread::default(), Spread::default());
        for _ in 0..if is_quick { ROUNDS } else { 1 } {
            whole.add(self.stage(line, home.path(), &["--no-reuse"]));
            let fresh = tempfile::tempdir().unwrap();
            if is_quick {
                first.add(self.stage(line, fresh.path(), &[]));
            }
        }
        println!("  all of it: {whole}");
        if is_quick {
            println!("  the first time: {first}");
        }
        self.stage(line, home.path(), &[]);
        let (mut again, before) = (Spread::default(), sent.load(Ordering::Relaxed));
        let (busy, high) = (cpu(server), peak(server));
        for round in 0..ROUNDS {
            [round, round + 100].into_iter().for_each(|number| self.build(number));
            again.add(self.stage(line, home.path(), &[]));
        }
        let sent = (sent.load(Ordering::Relaxed) - before) / ROUNDS as u64;
        let over = sent.saturating_sub(2 * JAR_BYTES as u64);
        println!("  two jars changed: {again}; {sent} bytes sent each time, {over} more than the two jars");
        let busy = (cpu(server) - busy) / ROUNDS as u32;
        println!("  the server: {} ms of CPU for each, peak {} -> {}", busy.as_millis(), high, peak(server));
    }
}

/// A port that leads to the server. What a client sends is counted, and goes at this speed.
async fn line(server: SocketAddr, bits: Option<u64>, sent: Arc<AtomicU64>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(server).await.unwrap();
            let ((mut asks, mut hears), (mut answers, mut takes)) =
                (client.into_split(), server.into_split());
            tokio::spawn(async move { copy(&mut answers, &mut hears).await });
            let sent = Arc::clone(&sent);
            tokio::spawn(async move {
                let (mut buffer, mut due) = (vec![0; 16 << 10], tokio::time::Instant::now());
                while let Ok(read @ 1..) = asks.read(&mut buffer).await {
                    sent.fetch_add(read as u64, Ordering::Relaxed);
                    if let Some(bits) = bits {
                        let took = Duration::from_nanos(read as u64 * 8 * 1_000_000_000 / bits);
                        // A timer that is late is made up for; a line that was idle begins anew.
                        let now = tokio::time::Instant::now();
                        due = if due + IDLE < now { now } else { due } + took;
                        sleep_until(due).await;
                    }
                    if takes.write_all(&buffer[..read]).await.is_err() {
                        break;
                    }
                }
            });
        }
    });
    address
}
