//! A server is replaced: the new one waits for the data directory, and says so to whoever asks meanwhile.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use cloakroom_core::protocol::v1::Ticket;
use cloakroom_testing::port::ReservedPort;
use cloakroom_testing::process::Cloakroom;
use cloakroom_testing::process::{command, stderr};
use cloakroom_testing::wait::{until, until_true};
use cloakroom_testing::wire::{Answer, Wire, ask, download_request, upload_head};
use sqlx::ConnectOptions as _;

const WAITING: &str = "waiting for the data directory";

/// A server that need not serve yet, at addresses that are known all the same.
struct Successor {
    server: Cloakroom,
    staging: ReservedPort,
    operational: ReservedPort,
}

impl Successor {
    fn launch(data_dir: &Path) -> Self {
        let (staging, operational) = (ReservedPort::new(), ReservedPort::new());
        let mut command = serve(data_dir);
        command.args(["--listen", &staging.address().to_string()]);
        command.args(["--ops-listen", &operational.address().to_string()]);
        Self { server: Cloakroom::launch(command), staging, operational }
    }

    async fn probed(&self, path: &str) -> Answer {
        get(self.operational.address(), path).await
    }

    async fn assert_started_and_not_ready(&self) {
        let alive = self.probed("/healthz").await;
        assert_eq!((alive.status, alive.text().as_str()), (200, "ok\n"));
        assert_starting(&self.probed("/readyz").await);
        assert_starting(&self.probed("/metrics").await);
        for request in [
            "GET /api/v1 HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(),
            "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(),
            format!("{}jars", upload_head("Content-Length: 4\r\n")),
        ] {
            assert_starting(&ask(self.staging.address(), request).await);
        }
        assert!(!self.server.log().contains("serves on"), "{}", self.server.log());
    }
}

fn serve(data_dir: &Path) -> Command {
    let mut command = command();
    command.args(["serve", "--min-free-space", "0b", "--data-dir"]).arg(data_dir);
    command
}

fn assert_starting(answer: &Answer) {
    assert_eq!((answer.status, answer.header("retry-after")), (503, "2"), "{}", answer.text());
    assert!(answer.text().contains("\"code\":\"starting\""), "{}", answer.text());
}

async fn get(address: SocketAddr, path: &str) -> Answer {
    ask(address, format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")).await
}

fn ticket(answer: &Answer) -> Ticket {
    assert_eq!(answer.status, 201, "{}", answer.text());
    serde_json::from_slice(&answer.body).unwrap()
}

// Invariant: a new server serves everything that its predecessor acknowledged; a server answers from the bind of its
// sockets to its exit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_server_waits_for_the_old_one_and_serves_all_it_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let mut old = Cloakroom::serve(folder.path(), &["--min-free-space", "0b"]);
    let address: SocketAddr = old.address.parse().unwrap();
    let early = format!("{}jars", upload_head("Content-Length: 4\r\n"));
    let early = ticket(&ask(address, early).await);
    let mut upload = Wire::connect(address).await;
    upload.send(format!("{}half", upload_head("Content-Length: 8\r\n"))).await;

    let mut new = Successor::launch(folder.path());
    new.server.wait_for_log(WAITING);
    new.assert_started_and_not_ready().await;

    old.signal("TERM");
    until("the old server lets nothing in", async || get(address, "/api/v1").await.status == 503).await;
    assert!(get(address, "/api/v1").await.text().contains("shutting-down"));
    new.assert_started_and_not_ready().await;
    upload.send("half").await;
    let late = ticket(&upload.answer().await);
    assert!(old.wait().success(), "{}", old.log());

    new.server.wait_until_it_serves();
    for (ticket, content) in [(&early, "jars"), (&late, "halfhalf")] {
        assert_eq!(ask(new.staging.address(), download_request(ticket)).await.text(), content);
    }
    assert_eq!(new.probed("/readyz").await.status, 200);
    let log = new.server.log();
    assert_eq!(log.matches(WAITING).count(), 1, "{log}");
    assert!(log.contains("another process uses it") && log.contains("got the data directory"), "{log}");
    new.server.kill();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_ends_the_wait_for_the_data_directory_at_once_and_with_zero() {
    let folder = tempfile::tempdir().unwrap();
    let old = Cloakroom::serve(folder.path(), &[]);
    let mut new = Successor::launch(folder.path());
    new.server.wait_for_log(WAITING);
    let start = Instant::now();
    new.server.signal("TERM");
    assert_eq!(new.server.wait().code(), Some(0), "{}", new.server.log());
    assert!(start.elapsed() < Duration::from_secs(10), "it waited on");
    until_true("the log is read", || new.server.log().contains("stopped")).await;
    old.kill();
}

#[test]
fn the_check_of_a_data_directory_in_use_fails_at_once_with_a_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let first = Cloakroom::serve(folder.path(), &[]);
    let start = Instant::now();
    let output = serve(folder.path()).args(["--listen", "127.0.0.1:0", "--check"]).output().unwrap();
    assert!(start.elapsed() < Duration::from_secs(30), "it waited for the lock");
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.contains("error: the data directory") && said.contains("is in use by another process"),
        "{said}"
    );
    assert!(said.contains("--data-dir") && said.contains(&folder.path().display().to_string()), "{said}");
    first.kill();
    // The lock ends with its holder.
    Cloakroom::serve(folder.path(), &[]).kill();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_that_takes_long_is_alive_and_not_ready_until_it_is_over() {
    let folder = tempfile::tempdir().unwrap();
    // A ledger that another connection holds keeps the server from its recovery, for up to 10 s.
    let options = sqlx::sqlite::SqliteConnectOptions::new();
    let options = options.filename(folder.path().join("ledger.db")).create_if_missing(true);
    let mut holding = options.connect().await.unwrap();
    sqlx::query("BEGIN EXCLUSIVE").execute(&mut holding).await.unwrap();

    let mut server = Successor::launch(folder.path());
    let address = server.operational.address();
    until("it listens", async || tokio::net::TcpStream::connect(address).await.is_ok()).await;
    // The folder is made after the lock was taken.
    until_true("it has the data directory", || folder.path().join("bundles").exists()).await;
    server.assert_started_and_not_ready().await;
    sqlx::Connection::close(holding).await.unwrap();
    server.server.wait_until_it_serves();
    assert_eq!(server.probed("/readyz").await.status, 200);
    server.server.kill();
}
