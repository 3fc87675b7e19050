//! What one namespace may have of everything, so that no other goes without.

use std::sync::Arc;

use cloakroom_testing::clock::ManualClock;
use cloakroom_testing::wait::until_true;
use cloakroom_testing::wire::{Wire, download_request};
use reqwest::Response;

use crate::limits::assert_refused;
use crate::support::TestApp;
use crate::support::app::Options;

fn shared() -> Options {
    let mut options = Options::default();
    options.limits.share = Some("25%".parse().unwrap());
    options.limits.max_resources = 8;
    options.limits.capacity.max_total_size = Some(4000);
    options.limits.capacity.max_resource_size = 600;
    options
}

fn path(namespace: &str) -> String {
    format!("/api/v1/resources/deps.tgz?namespace={namespace}&label=app%3Ddemo")
}

async fn upload(app: &TestApp, namespace: &str, bytes: usize) -> Response {
    app.client.put(app.url(&path(namespace))).body(vec![7; bytes]).send().await.unwrap()
}

/// Uploads that were refused so far because of one holder's share, and for lack of room.
async fn refusals(app: &TestApp) -> (u64, u64) {
    let text = app.get("/metrics").send().await.unwrap().text().await.unwrap();
    let count = |reason: &str| {
        let sample = format!("cloakroom_upload_refusals_total{{reason=\"{reason}\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&*sample)).unwrap().parse().unwrap()
    };
    (count("share"), count("insufficient-storage"))
}

#[tokio::test]
async fn a_namespace_has_its_share_of_the_room_before_and_after_a_restart() {
    let (directory, clock) = (Arc::new(tempfile::tempdir().unwrap()), Arc::new(ManualClock::new()));
    let mut app = TestApp::start_on(Arc::clone(&directory), Arc::clone(&clock), shared()).await;
    let first = app.ticket(upload(&app, "greedy", 600).await).await;
    let says = "no room for this bundle of namespace “greedy”: it may have 1000 B, its share (--share)";
    assert_refused(upload(&app, "greedy", 401).await, 507, "insufficient-storage", says).await;
    app.ticket(upload(&app, "honest", 600).await).await;
    app.stop().await;
    drop(app);
    let app = TestApp::start_on(directory, clock, shared()).await;
    assert_refused(upload(&app, "greedy", 401).await, 507, "insufficient-storage", says).await;
    app.ticket(upload(&app, "honest", 400).await).await;
    assert_eq!(app.delete(&first).send().await.unwrap().status(), 204);
    app.ticket(upload(&app, "greedy", 600).await).await;
}

// Invariant: a refusal because of one namespace's share is counted apart from a lack of room, and raises no alert.
#[tokio::test]
async fn a_namespace_has_its_share_of_the_resources() {
    let app = TestApp::start_with(shared()).await;
    assert_eq!(refusals(&app).await, (0, 0), "what never happened is counted too");
    for _ in 0..2 {
        app.ticket(upload(&app, "greedy", 0).await).await;
    }
    let says = "no room for another resource of namespace “greedy”: it may have 2, its share (--share)";
    assert_refused(upload(&app, "greedy", 0).await, 507, "insufficient-storage", says).await;
    assert_eq!(refusals(&app).await, (1, 0), "it is no lack of room");
    for namespace in ["honest", "fair", "honest", "fair", "just", "just"] {
        app.ticket(upload(&app, namespace, 0).await).await;
    }
    let says = "no room for another resource: this server keeps 8 at most (--max-resources)";
    assert_refused(upload(&app, "last", 0).await, 507, "insufficient-storage", says).await;
    assert_eq!(refusals(&app).await, (1, 1));
}

/// For another owner in each call, whose name and label are about `bytes` long.
async fn upload_for(app: &TestApp, namespace: &str, owner: usize, bytes: usize) -> Response {
    let prefix = "a".repeat(60);
    let prefix = [prefix.as_str(); 3].join(".");
    let label = format!("{}/k%3Dv{owner}", &prefix[..bytes]);
    let path = format!("/api/v1/resources/deps.tgz?namespace={namespace}&label={label}");
    app.client.put(app.url(&path)).body("jars").send().await.unwrap()
}

// Invariant: the memory for owners has a limit, and a namespace its share of it.
#[tokio::test]
async fn owners_have_memory_together_and_each_namespace_has_its_share_of_it() {
    let mut options = Options::default();
    options.limits.share = Some("25%".parse().unwrap());
    options.limits.owner_memory_bytes = 8000;
    let app = TestApp::start_with(options).await;
    let mut staged = Vec::new();
    let refused = loop {
        let answer = upload_for(&app, "greedy", staged.len(), 160).await;
        if answer.status() != 201 {
            break answer;
        }
        staged.push(app.ticket(answer).await);
        assert!(staged.len() < 12, "nothing is refused");
    };
    let says =
        "no memory for another owner of namespace “greedy”: their names and labels may have 2 KiB, its share";
    assert_refused(refused, 507, "insufficient-storage", says).await;
    assert_eq!(refusals(&app).await, (1, 0), "it is no lack of room");
    // For an owner that is known already, nothing is missing.
    staged.push(app.ticket(upload_for(&app, "greedy", 0, 160).await).await);
    assert!(staged.len() > 2, "{}", staged.len());
    let mut number = 0;
    let refused = loop {
        let answer = upload_for(&app, &format!("honest-{}", number % 7), number, 60).await;
        if answer.status() != 201 {
            break answer;
        }
        number += 1;
        assert!(number < 40, "nothing is refused");
    };
    let says = "no memory for another owner: the names and labels of all owners may have 7.8 KiB, and ";
    assert_refused(refused, 507, "insufficient-storage", says).await;
    assert_eq!(app.delete(&staged[1]).send().await.unwrap().status(), 204);
    app.ticket(upload_for(&app, "honest-0", number, 60).await).await;
}

#[tokio::test]
async fn a_namespace_has_its_share_of_uploads_at_once() {
    let mut options = shared();
    options.limits.max_concurrent_uploads = 8;
    let app = TestApp::start_with(options).await;
    let mut stalled = Vec::new();
    for uploads in 1..=2 {
        let mut wire = Wire::connect(app.address).await;
        wire.send(format!("PUT {} HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n", path("greedy"))).await;
        until_true("the upload has begun", || app.staging.in_flight().0 == uploads).await;
        stalled.push(wire);
    }
    let refused = upload(&app, "greedy", 1).await;
    assert_eq!(refused.headers()["retry-after"], "2");
    let says = "namespace “greedy” has 2 uploads going on, which is its share (--share)";
    assert_refused(refused, 503, "overloaded", says).await;
    assert_eq!(refusals(&app).await, (1, 0));
    app.ticket(upload(&app, "honest", 1).await).await;
}

#[tokio::test]
async fn a_namespace_has_its_share_of_downloads_at_once() {
    let mut options = Options::default();
    (options.limits.max_concurrent_downloads, options.limits.share) = (4, Some("25%".parse().unwrap()));
    let app = TestApp::start_with(options).await;
    let large = app.ticket(upload(&app, "greedy", 30_000_000).await).await;
    let small = app.ticket(upload(&app, "greedy", 4).await).await;
    let other = app.ticket(upload(&app, "honest", 4).await).await;
    let mut unread = Wire::connect(app.address).await;
    unread.send(download_request(&large)).await;
    unread.0.readable().await.unwrap();
    let refused = app.download(&small).send().await.unwrap();
    assert_eq!(refused.headers()["retry-after"], "2");
    let says = "namespace “greedy” has 1 downloads going on, which is its share (--share)";
    assert_refused(refused, 503, "overloaded", says).await;
    assert_eq!(app.download(&other).send().await.unwrap().status(), 200);
    drop(unread);
    until_true("the download is over", || app.staging.in_flight() == (0, 0)).await;
    assert_eq!(app.download(&small).send().await.unwrap().status(), 200);
}
