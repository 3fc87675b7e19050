//! Stopping: what is in flight is finished, within a deadline.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cloakroom_core::protocol::v1::Ticket;
use cloakroom_staging::ledger::{Ledger as _, SqliteLedger};
use cloakroom_staging::store::DataDirectory;
use cloakroom_testing::clock::ManualClock;
use cloakroom_testing::process::Cloakroom;
use cloakroom_testing::process::{command, stderr};
use cloakroom_testing::wait::{BOUND, until, until_true};
use cloakroom_testing::wire::{Wire, ask, download_request, upload_head};
use tokio::io::AsyncReadExt as _;

use crate::support::TestApp;
use crate::support::app::Options;

const DEADLINE: Duration = Duration::from_millis(200);

/// An upload of eight bytes of which four have come.
async fn half_an_upload(address: SocketAddr, data_dir: &Path) -> Wire {
    let mut wire = Wire::connect(address).await;
    wire.send(upload_head("Content-Length: 8\r\n")).await;
    wire.send("half").await;
    until_true("the upload has begun", || incoming(data_dir) == 1).await;
    wire
}

fn incoming(data_dir: &Path) -> usize {
    std::fs::read_dir(data_dir.join("incoming")).unwrap().count()
}

async fn the_other_half(mut wire: Wire) -> Ticket {
    wire.send("half").await;
    let answer = wire.answer().await;
    assert_eq!((answer.status, answer.header("connection")), (201, "close"), "{}", answer.text());
    assert_eq!(wire.rest().await, b"");
    serde_json::from_slice(&answer.body).unwrap()
}

/// Asks on a connection of its own whether the server still lets requests in.
async fn is_told_to_come_again(address: SocketAddr) -> bool {
    let answer = ask(address, "GET /api/v1 HTTP/1.1\r\nHost: x\r\n\r\n").await;
    answer.status == 503 && answer.text().contains("\"code\":\"shutting-down\"")
}

#[tokio::test]
async fn an_upload_in_flight_is_finished_and_acknowledged() {
    let mut app = TestApp::start().await;
    let wire = half_an_upload(app.address, app.data_dir()).await;
    app.shutdown.request();
    assert!(is_told_to_come_again(app.address).await);
    let ticket = the_other_half(wire).await;
    app.keep_secret(&ticket.resource_secret);
    assert!(app.stop().await, "something was cut off");
    let app = app.crash_and_restart().await;
    assert_eq!(app.download(&ticket).send().await.unwrap().text().await.unwrap(), "halfhalf");
}

#[tokio::test]
async fn a_download_in_flight_is_finished() {
    let mut app = TestApp::start().await;
    let bundle = vec![7; 30_000_000];
    let ticket = app.stage(bundle.clone()).await;
    let mut wire = Wire::connect(app.address).await;
    wire.send(download_request(&ticket)).await;
    wire.begins().await;
    app.shutdown.request();
    assert!(is_told_to_come_again(app.address).await);
    let answer = wire.answer().await;
    assert!(answer.status == 200 && answer.body == bundle, "the download has other bytes");
    assert!(app.stop().await, "something was cut off");
    assert_eq!(wire.rest().await, b"");
}

#[tokio::test]
async fn connections_that_are_idle_or_silent_are_not_waited_for() {
    let mut app = TestApp::start().await;
    let mut idle = Wire::connect(app.address).await;
    idle.send("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert_eq!(idle.answer().await.status, 200);
    let mut silent = Wire::connect(app.address).await;
    let mut half_a_head = Wire::connect(app.address).await;
    half_a_head.send("GET /readyz HT").await;
    // Connections are taken in order: once another one is served, these are known.
    assert_eq!(ask(app.address, "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n").await.status, 200);
    let start = Instant::now();
    assert!(app.stop().await, "something was cut off");
    assert!(start.elapsed() < Duration::from_secs(10), "an idle connection was waited for");
    for wire in [&mut idle, &mut silent, &mut half_a_head] {
        assert_eq!(wire.rest().await, b"");
    }
}

/// A client takes a reset for a failure, and 503 for a reason to come again.
#[tokio::test]
async fn clients_that_come_in_the_last_moment_are_told_to_come_again() {
    let mut app = TestApp::start().await;
    // Nothing of the server runs meanwhile, so the kernel keeps them.
    let mut clients: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(app.address).unwrap()).collect();
    for client in &mut clients {
        client.write_all(b"GET /api/v1 HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    }
    assert!(app.stop().await, "something was cut off");
    for mut client in clients {
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("shutting-down"), "{answer}");
    }
    assert!(TcpStream::connect(app.address).is_err(), "the socket is still there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_keep_coming_do_not_keep_the_server() {
    let mut app = TestApp::start().await;
    let address = app.address;
    // Before the others, whose uploads look the same in the data directory.
    let upload = half_an_upload(address, app.data_dir()).await;
    let (told, mut is_told) = tokio::sync::mpsc::channel(1);
    let client = reqwest::Client::builder()
        .no_proxy()
        .tls_backend_preconfigured(cloakroom_testing::tls::no_roots())
        .build()
        .unwrap();
    // Each asks again at once until nobody listens any more.
    for method in [reqwest::Method::GET, reqwest::Method::PUT].into_iter().cycle().take(8) {
        let (client, told) = (client.clone(), told.clone());
        let url = format!("http://{address}/api/v1/resources?namespace=demo&label=app%3Ddemo");
        tokio::spawn(async move {
            while let Ok(answer) = client.request(method.clone(), &url).body("jars").send().await {
                if answer.status() == 503 {
                    let _ = told.try_send(());
                }
            }
        });
    }
    app.shutdown.request();
    tokio::time::timeout(BOUND, is_told.recv()).await.expect("no client was told to come again").unwrap();
    let ticket = the_other_half(upload).await;
    app.keep_secret(&ticket.resource_secret);
    let start = Instant::now();
    assert!(app.stop().await, "something was cut off");
    assert!(start.elapsed() < Duration::from_secs(10), "new requests were waited for");
}

#[tokio::test]
async fn what_is_asked_meanwhile_is_told_to_come_again_on_new_connections_and_old_ones() {
    let mut app = TestApp::start().await;
    let ticket = app.stage("jars").await;
    let in_flight = half_an_upload(app.address, app.data_dir()).await;
    let requests = [
        download_request(&ticket),
        format!("{}jars", upload_head("Content-Length: 4\r\n")),
        upload_head("Expect: 100-continue\r\nContent-Length: 4\r\n"),
        // Refused, and read to its end all the same (decision 8).
        format!("{}{}", upload_head("Content-Length: 3000000\r\n"), "7".repeat(3_000_000)),
        "POST /api/v0/resources HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "GET /admin/v1/status HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(),
        "GET /api/ping HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(),
    ];
    let mut kept = Vec::new();
    for _ in &requests {
        let mut wire = Wire::connect(app.address).await;
        wire.send("GET /api/ping HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert_eq!(wire.answer().await.status, 200);
        kept.push(wire);
    }
    app.shutdown.request();
    for (request, old) in requests.iter().zip(kept) {
        for mut wire in [old, Wire::connect(app.address).await] {
            assert!(wire.send(request).await, "{request:.80}");
            let answer = wire.answer().await;
            assert_eq!((answer.status, answer.header("connection")), (503, "close"), "{request:.80}");
            assert_eq!(answer.header("retry-after"), "1");
            assert!(answer.text().contains("\"code\":\"shutting-down\""), "{}", answer.text());
            assert_eq!(wire.rest().await, b"");
        }
    }
    assert_eq!(incoming(app.data_dir()), 1, "something of a refused upload was kept");
    let ticket = the_other_half(in_flight).await;
    app.keep_secret(&ticket.resource_secret);
    assert!(app.stop().await, "something was cut off");
}

#[tokio::test]
async fn a_server_that_stops_stays_alive_ready_and_measured_until_it_has_gone() {
    let mut app = TestApp::start().await;
    let in_flight = half_an_upload(app.address, app.data_dir()).await;
    app.shutdown.request();
    for (path, expected) in
        [("/healthz", "ok\n"), ("/readyz", "ready\n"), ("/metrics", "cloakroom_uploads_total")]
    {
        let answer = ask(app.address, format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")).await;
        assert_eq!((answer.status, answer.header("connection")), (200, "close"), "{path}");
        assert!(answer.text().contains(expected), "{}", answer.text());
    }
    let ticket = the_other_half(in_flight).await;
    app.keep_secret(&ticket.resource_secret);
    assert!(app.stop().await, "something was cut off");
}

#[tokio::test]
async fn the_deadline_cuts_transfers_off_and_nothing_of_the_upload_is_kept() {
    let (directory, clock) = (Arc::new(tempfile::tempdir().unwrap()), Arc::new(ManualClock::new()));
    let mut options = Options::default();
    options.connections.shutdown_deadline = DEADLINE;
    let mut app = TestApp::start_on(Arc::clone(&directory), Arc::clone(&clock), options).await;
    let wire = half_an_upload(app.address, app.data_dir()).await;
    let start = Instant::now();
    assert!(!app.stop().await, "nothing was cut off");
    assert!(start.elapsed() >= DEADLINE);
    drop((wire, app));
    until_true("the data directory is free", || DataDirectory::open(directory.path()).is_ok()).await;
    TestApp::start_on(directory, clock, Options::default()).await.assert_nothing_kept().await;
}

/// The buffer of its socket is full, and nothing can be put behind that.
#[tokio::test]
async fn a_download_that_is_cut_off_ends_by_a_reset_however_slowly_it_is_read() {
    let (directory, clock) = (Arc::new(tempfile::tempdir().unwrap()), Arc::new(ManualClock::new()));
    let mut options = Options::default();
    options.connections.shutdown_deadline = DEADLINE;
    let mut app = TestApp::start_on(directory, clock, options).await;
    let ticket = app.stage(vec![7; 30_000_000]).await;
    let mut wire = Wire::connect(app.address).await;
    wire.send(download_request(&ticket)).await;
    wire.begins().await;
    assert!(!app.stop().await, "nothing was cut off");
    let mut read = Vec::new();
    let ended = tokio::time::timeout(BOUND, wire.0.read_to_end(&mut read)).await.expect("no end in time");
    assert_eq!(ended.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
}

fn serve(data_dir: &Path, flags: &[&str]) -> (Cloakroom, SocketAddr) {
    let server = Cloakroom::serve(data_dir, &[&["--min-free-space", "0b"], flags].concat());
    let address = server.address.parse().unwrap();
    (server, address)
}

/// Exit status and log of a server that was told to stop.
async fn ended(mut server: Cloakroom) -> (ExitStatus, String) {
    let ending = tokio::task::spawn_blocking(move || {
        server.wait_for_log("stopped");
        (server.wait(), server.log())
    });
    tokio::time::timeout(BOUND * 2, ending).await.expect("the server did not stop").unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_binary_finishes_transfers_after_sigterm_and_sigint_and_ends_with_zero() {
    let folder = tempfile::tempdir().unwrap();
    for signal in ["TERM", "INT"] {
        let (mut server, address) = serve(folder.path(), &[]);
        let answer = ask(
            address,
            format!("{}{}", upload_head("Content-Length: 20000000\r\n"), "7".repeat(20_000_000)),
        )
        .await;
        let large: Ticket = serde_json::from_slice(&answer.body).unwrap();
        let mut download = Wire::connect(address).await;
        download.send(download_request(&large)).await;
        download.begins().await;
        let upload = half_an_upload(address, folder.path()).await;

        server.signal(signal);
        server.wait_for_log(&format!("got SIG{signal}"));
        until("requests are refused", async || is_told_to_come_again(address).await).await;
        assert_eq!(download.answer().await.body.len(), 20_000_000);
        let ticket = the_other_half(upload).await;
        let (status, log) = ended(server).await;
        assert_eq!(status.code(), Some(0), "{log}");
        assert!(log.contains("all transfers are finished"), "{log}");
        assert!(!log.contains(&ticket.resource_secret) && !log.contains(&large.resource_secret));

        let (server, address) = serve(folder.path(), &[]);
        assert_eq!(ask(address, download_request(&ticket)).await.text(), "halfhalf");
        server.kill();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_binary_gives_up_at_the_deadline_and_keeps_nothing_of_what_it_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let (server, address) = serve(folder.path(), &["--shutdown-deadline", "200ms"]);
    let mut upload = half_an_upload(address, folder.path()).await;
    let start = Instant::now();
    server.signal("TERM");
    let (status, log) = ended(server).await;
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(start.elapsed() >= DEADLINE);
    assert!(
        log.contains("transfers in flight were cut off: unfinished uploads leave nothing behind"),
        "{log}"
    );
    // A reset or an end, but no ticket.
    let mut said = Vec::new();
    let _ = tokio::io::AsyncReadExt::read_to_end(&mut upload.0, &mut said).await;
    assert_eq!(String::from_utf8(said).unwrap(), "");

    // Cleaned up by the server that stopped, not by the next one.
    assert_eq!(incoming(folder.path()), 0);
    assert_eq!(std::fs::read_dir(folder.path().join("bundles")).unwrap().count(), 0);
    let ledger = SqliteLedger::open(&folder.path().join("ledger.db")).await.unwrap();
    assert!(ledger.count_by_state().await.unwrap().is_empty());
    ledger.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_stops_the_binary_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (mut server, address) = serve(folder.path(), &["--shutdown-deadline", "1h"]);
    let upload = half_an_upload(address, folder.path()).await;
    server.signal("INT");
    server.wait_for_log("got SIGINT");
    server.signal("INT");
    let (status, log) = ended(server).await;
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(log.contains("transfers in flight were cut off"), "{log}");
    assert_eq!(incoming(folder.path()), 0);
    drop(upload);
}

#[test]
fn an_address_that_is_in_use_is_an_error_before_anything_is_touched() {
    let folder = tempfile::tempdir().unwrap();
    let (first, address) = serve(&folder.path().join("first"), &[]);
    let address = address.to_string();
    for flags in [
        ["--listen", address.as_str(), "--ops-listen", "127.0.0.1:0"],
        ["--ops-listen", address.as_str(), "--listen", "127.0.0.1:0"],
    ] {
        let second = folder.path().join("second");
        let output = command().args(["serve", "--data-dir"]).arg(&second).args(flags).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let said = stderr(&output);
        let expected = format!("error: cannot listen on {address} (another process listens there");
        let way_out = format!("choose another address with {})", flags[0]);
        assert!(said.contains(&expected) && said.contains(&way_out) && said.contains("in use"), "{said}");
        assert!(!second.exists());
    }
    first.kill();
}

#[tokio::test]
async fn a_log_that_nobody_reads_any_more_does_not_keep_the_server_from_stopping() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = command();
    server.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(folder.path());
    let mut child = server.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(log.any(|line| line.unwrap().contains("serves on")));
    drop(log);
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    until_true("the server has stopped", || child.try_wait().unwrap().is_some()).await;
    assert!(child.wait().unwrap().success());
}
