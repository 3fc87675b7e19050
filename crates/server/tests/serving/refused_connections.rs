//! Clients that send what is not wanted, or do not send what is: the connection ends, or goes on, as it should.

use std::time::{Duration, Instant};

use cloakroom_testing::wait::until_true;
use cloakroom_testing::wire::{Answer, Wire, upload_head};
use tokio::io::AsyncWriteExt as _;

use crate::support::TestApp;
use crate::support::app::Options;

const HEADER_TIMEOUT: Duration = Duration::from_millis(150);

async fn impatient() -> TestApp {
    let mut options = Options::default();
    options.connections.header_timeout = HEADER_TIMEOUT;
    options.limits.capacity.max_resource_size = 1 << 20;
    TestApp::start_with(options).await
}

#[tokio::test]
async fn a_header_bomb_is_refused_and_the_connection_closed() {
    let app = TestApp::start().await;
    let many: String = (0..101).map(|number| format!("x-{number}: y\r\n")).collect();
    let one = format!("x: {}\r\n", "y".repeat(33 << 10));
    let secret = format!("Authorization: Bearer {}\r\n", "y".repeat(40 << 10));
    for headers in [&many, &one, &secret] {
        let mut wire = Wire::connect(app.address).await;
        wire.send(upload_head(headers)).await;
        let said = String::from_utf8(wire.rest().await).unwrap();
        assert!(said.starts_with("HTTP/1.1 431 "), "{said}");
        app.assert_nothing_kept().await;
    }
    // What is still decent.
    let many: String = (0..97).map(|number| format!("x-{number}: y\r\n")).collect();
    for headers in [many, format!("x: {}\r\n", "y".repeat(30 << 10))] {
        let mut wire = Wire::connect(app.address).await;
        wire.send(format!("{}jars", upload_head(&format!("{headers}Content-Length: 4\r\n")))).await;
        assert_eq!(wire.answer().await.status, 201);
    }
}

#[tokio::test]
async fn a_header_that_never_ends_is_given_up() {
    let app = TestApp::start().await;
    let mut wire = Wire::connect(app.address).await;
    wire.send("PUT /api/v1/resources/deps.tgz HTTP/1.1\r\nx: ").await;
    let mut sent = 0;
    while wire.send([b'y'; 4096]).await {
        sent += 4096;
        assert!(sent < 100 << 20, "the server takes everything");
    }
    app.assert_nothing_kept().await;
}

#[tokio::test]
async fn what_is_not_http_is_refused_and_the_connection_closed() {
    let app = TestApp::start().await;
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"[..],
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
    ] {
        let mut wire = Wire::connect(app.address).await;
        wire.send(bytes).await;
        let said = String::from_utf8_lossy(&wire.rest().await).into_owned();
        assert!(
            said.is_empty() || said.starts_with("HTTP/1.1 400 ") || said.starts_with("HTTP/1.1 505 "),
            "{said}"
        );
    }
}

#[tokio::test]
async fn a_silent_connection_is_closed_after_the_header_timeout() {
    let app = impatient().await;
    for first in ["", "PUT /api/v1/res", "PUT /api/v1/resources HTTP/1.1\r\nHost: x\r\n"] {
        let start = Instant::now();
        let mut wire = Wire::connect(app.address).await;
        wire.send(first).await;
        wire.rest().await;
        assert!(
            start.elapsed() >= HEADER_TIMEOUT - Duration::from_millis(10),
            "{first}: {:?}",
            start.elapsed()
        );
    }
}

/// Pools of proxies keep connections for a minute and more. If the server closed earlier, it would do so at the moment of
/// a request.
#[tokio::test]
async fn a_connection_may_be_idle_for_longer_than_a_head_may_take() {
    const HEALTH: &str = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    let app = impatient().await;
    let mut wire = Wire::connect(app.address).await;
    for _ in 0..3 {
        wire.send(HEALTH).await;
        assert_eq!(wire.answer().await.status, 200);
        let ended = tokio::time::timeout(HEADER_TIMEOUT * 2, wire.0.peek(&mut [0])).await;
        assert!(ended.is_err(), "the connection was closed");
    }
    // A head has no more time than on a new connection.
    let start = Instant::now();
    wire.send(&HEALTH[..20]).await;
    assert_eq!(wire.rest().await, b"");
    assert!(start.elapsed() >= HEADER_TIMEOUT - Duration::from_millis(10));

    let mut options = Options::default();
    options.connections.keep_alive = HEADER_TIMEOUT;
    let app = TestApp::start_with(options).await;
    let mut wire = Wire::connect(app.address).await;
    wire.send(HEALTH).await;
    assert_eq!(wire.answer().await.status, 200);
    assert_eq!(wire.rest().await, b"");
}

#[tokio::test]
async fn a_header_that_drips_is_given_up_after_the_header_timeout() {
    let app = impatient().await;
    let mut wire = Wire::connect(app.address).await;
    let start = Instant::now();
    wire.send("PUT /api/v1/resources HTTP/1.1\r\nHost: x\r\n").await;
    while wire.send("x: y\r\n").await {
        assert!(start.elapsed() < Duration::from_secs(20), "a slow header is read for ever");
        tokio::time::sleep(HEADER_TIMEOUT / 10).await;
    }
    assert!(start.elapsed() >= HEADER_TIMEOUT);
    app.assert_nothing_kept().await;
}

/// Requests that are refused before their body, of any length.
fn refusals() -> Vec<(String, u16)> {
    let owner = "namespace=demo&label=app=x";
    vec![
        ("PUT /api/v1/resources/a?label=app=x HTTP/1.1\r\nHost: x\r\n".to_owned(), 400),
        (
            format!(
                "PUT /api/v1/resources/a?{owner} HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data\r\n"
            ),
            415,
        ),
        (format!("POST /api/v1/resources/a?{owner} HTTP/1.1\r\nHost: x\r\n"), 405),
        ("POST /nowhere HTTP/1.1\r\nHost: x\r\n".to_owned(), 404),
        ("DELETE /api/v1/resources/a HTTP/1.1\r\nHost: x\r\n".to_owned(), 401),
    ]
}

/// Sends everything before it looks for an answer, as OkHttp does.
async fn answer_after_everything(wire: &mut Wire, head: &str, body: &[u8], chunked: bool) -> Answer {
    if chunked {
        let chunk = format!("{:x}\r\n", body.len());
        wire.0
            .write_all(format!("{head}Transfer-Encoding: chunked\r\n\r\n{chunk}").as_bytes())
            .await
            .unwrap();
        wire.0.write_all(body).await.unwrap();
        wire.0.write_all(b"\r\n0\r\n\r\n").await.unwrap();
    } else {
        wire.0.write_all(format!("{head}Content-Length: {}\r\n\r\n", body.len()).as_bytes()).await.unwrap();
        wire.0.write_all(body).await.unwrap();
    }
    wire.answer().await
}

#[tokio::test]
async fn a_client_that_sends_everything_first_sees_the_refusal_and_can_go_on() {
    let app = impatient().await;
    let mut refusals = refusals();
    refusals.push((upload_head("").trim_end_matches("\r\n").to_owned() + "\r\n", 413));
    for (head, status) in refusals {
        for (length, chunked) in [(5 << 20, false), (5 << 20, true), (1000, false), (1000, true)] {
            if status == 413 && length < 1 << 20 {
                continue;
            }
            let mut wire = Wire::connect(app.address).await;
            let answer = answer_after_everything(&mut wire, &head, &vec![7; length], chunked).await;
            assert_eq!(answer.status, status, "{head}{length} {chunked}: {}", answer.text());
            assert_ne!(answer.header("connection"), "close", "{head}{length}");
            wire.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await;
            assert_eq!(wire.answer().await.text(), "ok\n", "{head}{length} {chunked}");
        }
    }
    app.assert_nothing_kept().await;
    until_true("all uploads are over", || app.staging.in_flight() == (0, 0)).await;
}

/// Caddy and Go's proxy pass `Expect` on, and send the body at once all the same.
#[tokio::test]
async fn a_client_that_says_it_waits_and_sends_at_once_sees_the_refusal() {
    let app = impatient().await;
    let body = vec![7; 20 << 20];
    for (head, status) in refusals() {
        for chunked in [false, true] {
            let mut wire = Wire::connect(app.address).await;
            let head = format!("{head}Expect: 100-continue\r\n");
            let answer = answer_after_everything(&mut wire, &head, &body, chunked).await;
            assert_eq!((answer.status, answer.header("connection")), (status, "close"), "{head}{chunked}");
            assert_eq!(wire.rest().await, b"");
        }
    }
    app.assert_nothing_kept().await;
}

/// Apache's proxy reads no answer before it has sent everything.
#[tokio::test]
async fn a_client_that_sends_more_than_is_read_at_first_sees_the_refusal() {
    const READ_AT_FIRST: usize = 256 << 20;
    let piece = vec![7; 1 << 20];
    for waits in ["", "Expect: 100-continue\r\n"] {
        // A host does this with one connection of a server at a time.
        let app = impatient().await;
        let mut wire = Wire::connect(app.address).await;
        let length = READ_AT_FIRST + 10 * piece.len();
        let head = "PUT /api/v1/resources/a?label=app=x HTTP/1.1\r\nHost: x\r\n";
        assert!(wire.send(format!("{head}{waits}Content-Length: {length}\r\n\r\n")).await);
        for sent in (0..length).step_by(piece.len()) {
            assert!(wire.send(&piece).await, "broken after {sent} bytes");
        }
        assert_eq!(wire.answer().await.status, 400);
    }
}

/// A client that really waits closes when it has the answer.
#[tokio::test]
async fn a_client_that_waits_gets_the_refusal_and_the_end_at_once() {
    let app = impatient().await;
    let mut wire = Wire::connect(app.address).await;
    let head = "PUT /api/v1/resources/a?label=app=x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n";
    assert!(wire.send(format!("{head}Content-Length: 1000\r\n\r\n")).await);
    assert_eq!(wire.answer().await.status, 400);
    assert_eq!(wire.rest().await, b"");
}

#[tokio::test]
async fn a_refused_client_that_stops_inside_its_body_is_not_waited_for() {
    let app = impatient().await;
    let mut wire = Wire::connect(app.address).await;
    wire.send("PUT /api/v1/resources/a HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\njars").await;
    assert_eq!(wire.answer().await.status, 400);
    let start = Instant::now();
    wire.rest().await;
    assert!(start.elapsed() < Duration::from_secs(20));
}
