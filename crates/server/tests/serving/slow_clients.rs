//! Clients that keep the server waiting, and the server that keeps itself waiting.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use cloakroom_server::http::PaceLimits;
use cloakroom_testing::wait::until_true;
use cloakroom_testing::wire::{Wire, download_request, upload_head};
use futures_util::StreamExt as _;
use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use tokio::net::TcpSocket;

use crate::support::TestApp;
use crate::support::app::{Options, problem};

const SHORT: Duration = Duration::from_millis(150);
const LONG: Duration = Duration::from_hours(1);

async fn with_pace(pace: PaceLimits) -> TestApp {
    let mut options = Options::default();
    options.connections.pace = pace;
    TestApp::start_with(options).await
}

/// A server that waits `idle_timeout` for a byte and asks for no rate.
async fn that_waits(idle_timeout: Duration) -> TestApp {
    with_pace(PaceLimits { idle_timeout, min_rate: 0, rate_window: SHORT / 2 }).await
}

/// A server that asks for `min_rate` bytes a second over `rate_window` and waits for ever for a byte.
async fn that_asks_for(min_rate: u64, rate_window: Duration) -> TestApp {
    with_pace(PaceLimits { idle_timeout: LONG, min_rate, rate_window }).await
}

/// The upload is refused as too slow, and the connection ends.
async fn assert_given_up(app: &TestApp, mut wire: Wire, says: &str) {
    let answer = wire.answer().await;
    assert_eq!(answer.status, 408, "{}", answer.text());
    assert_eq!(answer.header("connection"), "close");
    assert!(
        answer.text().contains("\"code\":\"too-slow\"") && answer.text().contains(says),
        "{}",
        answer.text()
    );
    app.assert_nothing_kept().await;
    until_true("the upload is over", || app.staging.in_flight() == (0, 0)).await;
    assert_eq!(wire.rest().await, b"");
}

#[tokio::test]
async fn an_upload_that_stops_is_given_up_after_the_idle_timeout() {
    let app = that_waits(SHORT).await;
    for (headers, sent) in [
        ("Content-Length: 500000\r\n", vec![7; 300_000]),
        ("Content-Length: 500000\r\n", Vec::new()),
        ("Transfer-Encoding: chunked\r\n", b"4\r\njars\r\n".to_vec()),
        ("Transfer-Encoding: chunked\r\n", b"4".to_vec()),
    ] {
        let start = Instant::now();
        let mut wire = Wire::connect(app.address).await;
        wire.send(upload_head(headers)).await;
        wire.send(sent).await;
        assert_given_up(&app, wire, "nothing came for 0.15 s (--idle-timeout)").await;
        assert!(start.elapsed() >= SHORT);
    }
}

#[tokio::test]
async fn a_client_that_was_told_to_go_on_and_does_not_is_given_up() {
    let app = that_waits(SHORT).await;
    let mut wire = Wire::connect(app.address).await;
    wire.send(upload_head("Content-Length: 4\r\nExpect: 100-continue\r\n")).await;
    assert_eq!(wire.answer().await.status, 100);
    assert_given_up(&app, wire, "after 0 bytes").await;
}

#[tokio::test]
async fn an_upload_that_crawls_is_given_up_after_the_window() {
    let app = that_asks_for(1 << 20, SHORT).await;
    let mut wire = Wire::connect(app.address).await;
    wire.send(upload_head("Content-Length: 5000000\r\n")).await;
    let (start, mut answered) = (Instant::now(), false);
    while !answered {
        assert!(start.elapsed() < Duration::from_secs(20), "a crawling upload is taken for ever");
        wire.send(vec![7; 100]).await;
        answered = tokio::time::timeout(SHORT / 10, wire.0.readable()).await.is_ok();
    }
    assert!(start.elapsed() >= SHORT - Duration::from_millis(10));
    let answer = wire.answer().await;
    assert_eq!(answer.status, 408, "{}", answer.text());
    assert!(answer.text().contains("less than 1048576 bytes a second moved"), "{}", answer.text());
    app.assert_nothing_kept().await;
    until_true("the upload is over", || app.staging.in_flight() == (0, 0)).await;
}

#[tokio::test]
async fn an_upload_in_v0_that_stops_is_given_up_too() {
    let app = that_waits(SHORT).await;
    let mut wire = Wire::connect(app.address).await;
    wire.send(
        "POST /api/v0/resources HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\nContent-Type: multipart/form-data; \
         boundary=b\r\n\r\n--b\r\nContent-Disposition: form-data; name=\"resources\"\r\n\r\nja",
    )
    .await;
    assert_given_up(&app, wire, "--idle-timeout").await;
}

#[tokio::test]
async fn an_upload_that_is_slow_but_moves_is_taken() {
    // Each pause is far from the limit, all of them together are far beyond it.
    let app = that_waits(Duration::from_secs(1)).await;
    let mut wire = Wire::connect(app.address).await;
    wire.send(upload_head("Content-Length: 8\r\n")).await;
    for byte in b"slowjars" {
        wire.send([*byte]).await;
        tokio::time::sleep(Duration::from_millis(180)).await;
    }
    assert_eq!(wire.answer().await.status, 201);
}

/// Enough to fill the buffers of both sockets.
const LARGE: usize = 40_000_000;

/// A download whose client has asked and does not read.
async fn stalled(app: &TestApp) -> Wire {
    let ticket = app.stage(vec![7; LARGE]).await;
    let mut wire = Wire::connect(app.address).await;
    wire.send(download_request(&ticket)).await;
    wire.0.readable().await.unwrap();
    wire
}

async fn assert_cut_off(app: &TestApp, mut wire: Wire) {
    until_true("the download is over", || app.staging.in_flight() == (0, 0)).await;
    let mut buffer = Vec::new();
    // A reset or an end, but not the whole bundle.
    let _ = tokio::io::AsyncReadExt::read_to_end(&mut wire.0, &mut buffer).await;
    assert!(buffer.len() < LARGE, "all was sent");
}

#[tokio::test]
async fn little_waits_in_the_kernel_for_a_client_that_does_not_read() {
    let app = that_waits(LONG).await;
    let ticket = app.stage(vec![7; LARGE]).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    let mut wire = Wire(socket.connect(app.address).await.unwrap());
    wire.send(download_request(&ticket)).await;
    let client = wire.0.local_addr().unwrap();
    let (mut waiting, mut unchanged) = (0, 0);
    until_true("the server waits for its client", || {
        let now = waiting_bytes(app.address, client);
        unchanged = if now == waiting { unchanged + 1 } else { 0 };
        waiting = now;
        waiting > 0 && unchanged == 20
    })
    .await;
    assert!(waiting < 1 << 20, "{waiting} bytes wait in the kernel");
}

/// How many bytes the kernel keeps of what the server has written to that client.
fn waiting_bytes(server: SocketAddr, client: SocketAddr) -> usize {
    let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
    let ends = [server, client].map(|end| format!(":{:04X}", end.port()));
    let mut connections = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let found = connections.find(|fields| fields[1].ends_with(&ends[0]) && fields[2].ends_with(&ends[1]));
    found.map_or(0, |fields| usize::from_str_radix(fields[4].split_once(':').unwrap().0, 16).unwrap())
}

#[tokio::test]
async fn a_client_that_stops_reading_is_disconnected_after_the_idle_timeout() {
    let app = that_waits(SHORT).await;
    let wire = stalled(&app).await;
    assert_eq!(app.staging.in_flight(), (0, 1));
    assert_cut_off(&app, wire).await;
}

#[tokio::test]
async fn a_client_that_reads_too_slowly_is_disconnected_after_the_window() {
    let app = that_asks_for(1 << 30, SHORT).await;
    let mut wire = stalled(&app).await;
    let start = Instant::now();
    while app.staging.in_flight() != (0, 0) {
        assert!(start.elapsed() < Duration::from_secs(20), "a slow reader is served for ever");
        let mut little = [0; 100_000];
        let _ = tokio::time::timeout(SHORT, tokio::io::AsyncReadExt::read(&mut wire.0, &mut little)).await;
        tokio::time::sleep(SHORT / 10).await;
    }
    assert_cut_off(&app, wire).await;
}

#[tokio::test]
async fn a_download_that_is_slow_but_moves_is_finished() {
    let app = that_waits(Duration::from_secs(2)).await;
    let ticket = app.stage(vec![7; LARGE]).await;
    let response = app.download(&ticket).send().await.unwrap();
    let (mut pieces, mut received, mut pauses) = (response.bytes_stream(), 0, 0);
    while let Some(piece) = pieces.next().await {
        received += piece.unwrap().len();
        if received > pauses * LARGE / 6 {
            pauses += 1;
            tokio::time::sleep(Duration::from_millis(400)).await;
        }
    }
    assert_eq!((received, pauses), (LARGE, 6));
}

#[tokio::test]
async fn time_that_the_server_itself_needs_is_not_the_clients() {
    let app = with_pace(PaceLimits { idle_timeout: SHORT, min_rate: 1 << 30, rate_window: SHORT }).await;
    let options = SqliteConnectOptions::new().filename(app.data_dir().join("ledger.db"));
    let mut other = SqliteConnection::connect_with(&options).await.unwrap();
    for request in [app.put("", "jars"), app.download(&app.stage("jars").await)] {
        // Whoever writes to the ledger waits meanwhile.
        sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
        let answer = tokio::spawn(request.send());
        tokio::time::sleep(SHORT * 3).await;
        assert!(!answer.is_finished(), "the ledger was not waited for: the test tests nothing");
        sqlx::query("ROLLBACK").execute(&mut other).await.unwrap();
        let response = answer.await.unwrap().unwrap();
        assert!(response.status().is_success(), "{}", problem(response).await.detail);
        if response.status() == 201 {
            app.ticket(response).await;
        }
    }
}
