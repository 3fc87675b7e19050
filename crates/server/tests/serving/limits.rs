//! How much the server takes on: room, and transfers at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use cloakroom_core::protocol::v1::Ticket;
use cloakroom_testing::clock::ManualClock;
use cloakroom_testing::logs;
use cloakroom_testing::wait::{until, until_true};
use cloakroom_testing::wire::{Wire, download_request, upload_head};
use reqwest::Response;

use crate::support::TestApp;
use crate::support::app::{Options, problem};
use crate::support::faults::{Fault, Step};

fn total(max_total_size: u64) -> Options {
    let mut options = Options::default();
    options.limits.capacity.max_total_size = Some(max_total_size);
    options
}

async fn with_total(max_total_size: u64) -> TestApp {
    TestApp::start_with(total(max_total_size)).await
}

pub async fn assert_refused(response: Response, status: u16, code: &str, says: &str) {
    let refused = problem(response).await;
    assert_eq!((refused.status, refused.code.as_str()), (status, code), "{}", refused.detail);
    assert!(refused.detail.contains(says), "{}", refused.detail);
}

async fn assert_no_room(app: &TestApp, bytes: usize, says: &str) {
    let files = app.files();
    assert_refused(app.put("", vec![7; bytes]).send().await.unwrap(), 507, "insufficient-storage", says)
        .await;
    assert_eq!(app.files(), files);
}

/// An upload of which the announced length and nothing else has come.
async fn begun(app: &TestApp, length: usize) -> Wire {
    let before = app.staging.in_flight().0;
    let mut wire = Wire::connect(app.address).await;
    wire.send(upload_head(&format!("Content-Length: {length}\r\n"))).await;
    begins(app, before).await;
    wire
}

/// Waits for the upload after `before` others.
async fn begins(app: &TestApp, before: usize) {
    until("the upload has begun", async || {
        let arriving = app.files().iter().filter(|file| file.starts_with("incoming/")).count();
        let pending = app.rows().await.get("pending").copied().unwrap_or(0);
        (arriving, pending) == (before + 1, before as u64 + 1)
    })
    .await;
}

async fn finish(app: &TestApp, mut wire: Wire, length: usize) -> Ticket {
    wire.send(vec![7; length]).await;
    let answer = wire.answer().await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let ticket: Ticket = serde_json::from_slice(&answer.body).unwrap();
    app.keep_secret(&ticket.resource_secret);
    ticket
}

#[tokio::test]
async fn all_bundles_together_stay_below_the_limit_and_a_delete_makes_room() {
    let (directory, clock) = (Arc::new(tempfile::tempdir().unwrap()), Arc::new(ManualClock::new()));
    let mut app = TestApp::start_on(Arc::clone(&directory), Arc::clone(&clock), total(1000)).await;
    let first = app.stage(vec![7; 600]).await;
    assert_no_room(&app, 401, "may have 1000 B (--max-total-size), and 600 B are taken by other bundles")
        .await;
    let second = app.stage(vec![7; 400]).await;
    assert_no_room(&app, 1, "--max-total-size").await;
    app.stage("").await;
    assert_eq!(app.delete(&first).send().await.unwrap().status(), 204);
    assert_no_room(&app, 601, "--max-total-size").await;
    app.stage(vec![7; 600]).await;
    assert_eq!(app.download(&second).send().await.unwrap().bytes().await.unwrap().len(), 400);
    // The account starts from what is stored.
    app.stop().await;
    drop(app);
    let app = TestApp::start_on(directory, clock, total(1000)).await;
    assert_no_room(&app, 1, "--max-total-size").await;
}

#[tokio::test]
async fn what_is_announced_counts_before_it_comes() {
    let app = with_total(1000).await;
    let announced = begun(&app, 600).await;
    assert_no_room(&app, 401, "600 B are taken").await;
    app.stage(vec![7; 400]).await;
    finish(&app, announced, 600).await;
    assert_no_room(&app, 1, "1000 B are taken").await;
}

#[tokio::test]
async fn the_room_of_an_upload_that_breaks_off_is_free_again() {
    let app = with_total(1000).await;
    for _ in 0..3 {
        drop(begun(&app, 1000).await);
        until("nothing is left", async || app.rows().await.is_empty() && app.files().is_empty()).await;
        until_true("the upload is over", || app.staging.in_flight() == (0, 0)).await;
    }
    app.stage(vec![7; 1000]).await;
}

fn streamed(bytes: usize) -> reqwest::Body {
    let pieces =
        (0..bytes).step_by(1000).map(move |at| Ok::<_, std::io::Error>(vec![7; 1000.min(bytes - at)]));
    reqwest::Body::wrap_stream(futures_util::stream::iter(pieces))
}

#[tokio::test]
async fn a_body_without_a_length_may_take_what_room_there_is_and_no_more() {
    let app = with_total(10_000).await;
    app.stage(vec![7; 1000]).await;
    let refused = app.put("", streamed(9_001)).send().await.unwrap();
    assert_refused(refused, 507, "insufficient-storage", "--max-total-size").await;
    assert_eq!(app.rows().await, BTreeMap::from([("ready", 1)]));
    assert_eq!(app.files().len(), 1);
    let ticket = app.ticket(app.put("", streamed(9_000)).send().await.unwrap()).await;
    assert_eq!(ticket.size_bytes, 9_000);
}

#[tokio::test]
async fn the_minimum_of_free_space_refuses_uploads_and_nothing_else() {
    let mut options = Options { free_bytes: Some(1000), ..Options::default() };
    options.limits.capacity.min_free_space = 900;
    let app = TestApp::start_with(options).await;
    assert_no_room(&app, 101, "has 1000 B free and must keep 900 B (--min-free-space)").await;
    let announced = begun(&app, 60).await;
    assert_no_room(&app, 41, "has 940 B free").await;
    let ticket = finish(&app, announced, 60).await;
    *app.store.free_bytes.lock().unwrap() = Some(0);
    assert_no_room(&app, 1, "--min-free-space").await;
    let streamed = app.put("", streamed(1)).send().await.unwrap();
    assert_refused(streamed, 507, "insufficient-storage", "--min-free-space").await;
    assert_eq!(app.get("/readyz").send().await.unwrap().status(), 200);
    assert_eq!(app.download(&ticket).send().await.unwrap().status(), 200);
    assert_eq!(app.delete(&ticket).send().await.unwrap().status(), 204);
    assert!(
        logs::lines_with("--min-free-space")
            .iter()
            .any(|line| line.contains("WARN") && line.contains("upload refused"))
    );
}

#[tokio::test]
async fn more_uploads_than_allowed_are_told_to_come_again() {
    let mut options = Options::default();
    options.limits.max_concurrent_uploads = 2;
    let app = TestApp::start_with(options).await;
    let (first, second) = (begun(&app, 4).await, begun(&app, 4).await);
    let refused = app.put("", "jars").send().await.unwrap();
    assert_eq!(refused.headers()["retry-after"], "2");
    assert_refused(refused, 503, "overloaded", "--max-concurrent-uploads").await;
    assert_eq!(app.rows().await, BTreeMap::from([("pending", 2)]));
    let ticket = finish(&app, first, 4).await;
    assert_eq!(app.download(&ticket).send().await.unwrap().text().await.unwrap(), "\u{7}\u{7}\u{7}\u{7}");
    app.stage("jars").await;
    drop(second);
    until_true("the broken upload is over", || app.staging.in_flight() == (0, 0)).await;
    let (_first, _second) = (begun(&app, 4).await, begun(&app, 4).await);
    assert_eq!(app.put("", "jars").send().await.unwrap().status(), 503);
}

#[tokio::test]
async fn more_downloads_than_allowed_are_told_to_come_again() {
    let mut options = Options::default();
    options.limits.max_concurrent_downloads = 1;
    let app = TestApp::start_with(options).await;
    let large = app.stage(vec![7; 30_000_000]).await;
    let small = app.stage("jars").await;
    let mut wire = Wire::connect(app.address).await;
    wire.send(download_request(&large)).await;
    wire.0.readable().await.unwrap();
    let refused = app.download(&small).send().await.unwrap();
    assert_eq!(refused.headers()["retry-after"], "2");
    assert_refused(refused, 503, "overloaded", "--max-concurrent-downloads").await;
    assert!(!app.ready_row(&small.resource_id).await.is_used());
    app.stage("uploads go on").await;
    drop(wire);
    until_true("the download is over", || app.staging.in_flight() == (0, 0)).await;
    assert_eq!(app.download(&small).send().await.unwrap().text().await.unwrap(), "jars");
}

#[tokio::test]
async fn more_connections_than_allowed_wait_until_one_is_idle() {
    let mut options = Options::default();
    options.connections.max = 1;
    let app = TestApp::start_with(options).await;
    let mut first = Wire::connect(app.address).await;
    first.send(upload_head("Content-Length: 4\r\nExpect: 100-continue\r\n")).await;
    assert_eq!(first.answer().await.status, 100);
    let mut second = Wire::connect(app.address).await;
    second.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let nothing = tokio::time::timeout(cloakroom_testing::wire::SOON, second.0.readable()).await;
    assert!(nothing.is_err(), "the second connection was served beside the first");
    first.send("jars").await;
    assert_eq!(first.answer().await.status, 201);
    assert_eq!(second.answer().await.status, 200);
    assert_eq!(first.rest().await, b"", "it has given way");
}

#[tokio::test]
async fn a_disk_that_fills_up_meanwhile_refuses_the_upload_and_keeps_nothing() {
    let app = TestApp::start().await;
    for step in
        [Step::LedgerBegin, Step::StoreBegin, Step::StoreWrite, Step::StoreCommit, Step::LedgerComplete]
    {
        app.faults.set(step, Fault::Full);
        let refused = app.put("", vec![7; 100_000]).send().await.unwrap();
        assert_refused(refused, 507, "insufficient-storage", "disk is full: nothing of this upload was kept")
            .await;
        assert_eq!(app.get("/readyz").send().await.unwrap().status(), 200, "{step:?}");
        app.faults.clear();
        app.sweep().await;
        app.assert_nothing_kept().await;
        assert_eq!(app.staging.in_flight(), (0, 0), "{step:?}");
    }
    app.stage("jars").await;
}

// Invariant: on a full disk the ledger still writes deletions down.
#[tokio::test]
async fn on_a_full_disk_a_delete_succeeds_because_it_gets_the_reserve() {
    let app = TestApp::start().await;
    let ticket = app.stage("jars").await;
    let reserve = app.data_dir().join("reserve");
    assert!(reserve.exists());
    app.faults.set(Step::LedgerMarkDeleting, Fault::FullButForTheReserve);
    assert_eq!(app.delete(&ticket).send().await.unwrap().status(), 204);
    assert!(!reserve.exists());
    assert_eq!(app.files(), Vec::<String>::new());
    assert_eq!(app.rows().await, BTreeMap::from([("deleted", 1)]));
    app.sweep().await;
    assert!(reserve.exists());
}

#[tokio::test]
async fn a_bundle_that_comes_through_the_api_server_has_a_limit_of_its_own() {
    let mut options = Options::default();
    options.settings.max_proxied_size = 1000;
    let app = TestApp::start_with(options).await;
    let uri = "/api/v1/namespaces/cloakroom/services/http:cloakroom:10000/proxy/api/v1/resources/deps.tgz";
    let through = |body: reqwest::Body| app.put("", body).header("x-forwarded-uri", uri);
    let chunked = |bytes: usize| {
        let chunks = std::iter::repeat_n(vec![7_u8; 500], bytes / 500).map(Ok::<_, std::io::Error>);
        reqwest::Body::wrap_stream(futures_util::stream::iter(chunks))
    };
    let most = "has at most 1000 B (--max-proxied-size)";
    for body in [vec![7; 1001].into(), chunked(1500)] {
        let files = app.files();
        assert_refused(through(body).send().await.unwrap(), 413, "too-large", most).await;
        until_true("nothing is kept", || app.files() == files).await;
    }
    for body in [vec![7; 1000].into(), chunked(1000)] {
        app.ticket(through(body).send().await.unwrap()).await;
    }
    app.stage(vec![7; 1001]).await;
    let elsewhere = app.put("", vec![7; 1001]).header("x-forwarded-uri", "/api/v1/resources/deps.tgz");
    app.ticket(elsewhere.send().await.unwrap()).await;
    let info = app.client.get(app.url("/api/v1")).send().await.unwrap().text().await.unwrap();
    assert!(info.contains("\"maxProxiedSize\":1000"), "{info}");
}
