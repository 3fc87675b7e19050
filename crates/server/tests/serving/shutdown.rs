//! Stopping: what is in flight is finished, within a deadline.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cloakroom_adapters::disk::DataDirectory;
use cloakroom_testing::clock::ManualClock;
use cloakroom_testing::half::{half_an_upload, incoming, is_told_to_come_again, the_other_half};
use cloakroom_testing::wait::{BOUND, until_true};
use cloakroom_testing::wire::{Wire, ask, download_request, upload_head};
use tokio::io::AsyncReadExt as _;

use crate::support::TestApp;
use crate::support::app::Options;

const DEADLINE: Duration = Duration::from_millis(200);

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
async fn requests_during_a_stop_are_told_to_come_again_on_any_connection() {
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
