//! How much of each limit is used, as Prometheus is told: before anything is refused.

use std::collections::BTreeMap;

use cloakroom_testing::wait::{until, until_true};
use cloakroom_testing::wire::{Wire, download_request};

use crate::support::app::Options;
use crate::support::faults::USED_BY_OTHERS;
use crate::support::{TestApp, WatchedApp};

/// Enough to fill the buffers of both sockets.
const LARGE: usize = 40_000_000;

/// Of each limit what is used and what may be.
async fn limits(app: &TestApp) -> BTreeMap<String, (u64, u64)> {
    let text = app.get("/metrics").send().await.unwrap().text().await.unwrap();
    let all = |name: &str| -> BTreeMap<String, u64> {
        let start = format!("cloakroom_{name}{{of=\"");
        let samples = text.lines().filter_map(|line| line.strip_prefix(&*start)?.split_once("\"} "));
        samples.map(|(of, value)| (of.to_owned(), value.parse().unwrap())).collect()
    };
    let (used, most) = (all("limit_used"), all("limit"));
    assert!(used.keys().eq(most.keys()), "{text}");
    used.into_iter().map(|(of, used)| (of.clone(), (used, most[&of]))).collect()
}

/// Of one limit what is used and what may be; `None` if it is not told.
pub async fn limit(app: &TestApp, of: &str) -> Option<(u64, u64)> {
    limits(app).await.get(of).copied()
}

async fn assert_limits(app: &TestApp, expected: &[(&str, Option<(u64, u64)>)]) {
    let limits = limits(app).await;
    for (of, expected) in expected {
        assert_eq!(limits.get(*of), expected.as_ref(), "{of}: {limits:?}");
    }
}

async fn stage(app: &TestApp, namespace: &str, bytes: usize) {
    let path = format!("/api/v1/resources?namespace={namespace}&label=app%3Ddemo");
    let answer = app.client.put(app.url(&path)).body(vec![7; bytes]).send().await.unwrap();
    assert_eq!(answer.status(), 201);
}

/// An upload of 500 bytes that does not go on.
async fn stalled(app: &TestApp, namespace: &str) -> Wire {
    let before = app.staging.in_flight().0;
    let mut wire = Wire::connect(app.address).await;
    let path = format!("/api/v1/resources?namespace={namespace}&label=app%3Ddemo");
    wire.send(format!("PUT {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n")).await;
    until_true("the upload has begun", || app.staging.in_flight().0 > before).await;
    wire
}

#[tokio::test]
async fn room_and_resources_are_told_beside_their_limits_with_uploads_going_on() {
    let mut options = Options { free_bytes: Some(1_000_000), ..Options::default() };
    options.limits.max_resources = 8;
    options.limits.max_concurrent_uploads = 4;
    options.limits.capacity.max_total_size = Some(10_000);
    options.limits.capacity.min_free_space = 400_000;
    let app = TestApp::start_with(options).await;
    // What others have on the disk counts.
    let empty = Some((USED_BY_OTHERS, USED_BY_OTHERS + 600_000));
    assert_limits(&app, &[("disk", empty), ("resources", Some((0, 8))), ("total-size", Some((0, 10_000)))])
        .await;
    stage(&app, "etl", 3_000).await;
    let _stalled = stalled(&app, "etl").await;
    let expected = [
        ("resources", Some((2, 8))),
        ("uploads", Some((1, 4))),
        ("total-size", Some((3_500, 10_000))),
        // What is promised is used, and the disk of this test has the same free bytes for ever.
        ("disk", Some((USED_BY_OTHERS + 500, USED_BY_OTHERS + 600_000))),
        ("tombstones", Some((0, 16))),
        ("share-of-room", None),
        ("share-of-uploads", None),
    ];
    assert_limits(&app, &expected).await;
}

/// Whether the alert `CloakroomLimitNear` fires: `cloakroom_limit_used / cloakroom_limit > 0.8`.
fn is_near((used, limit): (u64, u64)) -> bool {
    used * 10 > limit * 8
}

#[tokio::test]
async fn a_disk_that_others_fill_is_near_its_limit_before_it_refuses_an_upload() {
    let mut options = Options { free_bytes: Some(100_000), ..Options::default() };
    options.limits.capacity.min_free_space = 60_000;
    let app = TestApp::start_with(options).await;
    let near = limit(&app, "disk").await.unwrap();
    assert!(is_near(near) && near.0 < near.1, "{near:?}");
    assert_eq!(app.put("", "jars").send().await.unwrap().status(), 201);
    *app.store.free_bytes.lock().unwrap() = Some(60_000);
    let full = limit(&app, "disk").await.unwrap();
    assert!(full.0 >= full.1, "{full:?}");
    assert_eq!(app.put("", "jars").send().await.unwrap().status(), 507);
}

#[tokio::test]
async fn more_space_to_leave_free_than_there_is_shows_as_full() {
    let mut options = Options { free_bytes: Some(100_000), ..Options::default() };
    options.limits.capacity.min_free_space = 1 << 50;
    let app = TestApp::start_with(options).await;
    let full = limit(&app, "disk").await.unwrap();
    assert_eq!(full, (USED_BY_OTHERS, 0));
    assert!(is_near(full));
}

#[tokio::test]
async fn a_limit_that_is_reached_shows_as_full_when_the_next_upload_is_refused() {
    let mut options = Options::default();
    options.limits.max_resources = 2;
    let app = TestApp::start_with(options).await;
    for used in 1..=2 {
        stage(&app, "etl", 10).await;
        assert_limits(&app, &[("resources", Some((used, 2))), ("total-size", None)]).await;
    }
    assert_eq!(app.put("", "jars").send().await.unwrap().status(), 507);
}

#[tokio::test]
async fn of_shares_the_largest_is_told_and_no_namespace_is_named() {
    let mut options = Options { free_bytes: None, ..Options::default() };
    options.limits.share = Some("25%".parse().unwrap());
    options.limits.max_resources = 40;
    options.limits.max_concurrent_uploads = 8;
    options.limits.max_concurrent_downloads = 16;
    options.limits.capacity.max_total_size = Some(40_000);
    options.limits.capacity.max_resource_size = 9_000;
    let app = TestApp::start_with(options).await;
    for (namespace, bytes) in [("of-many", 10), ("of-many", 10), ("of-many", 10), ("of-large", 8_000)] {
        stage(&app, namespace, bytes).await;
    }
    let _stalled =
        (stalled(&app, "of-busy").await, stalled(&app, "of-busy").await, stalled(&app, "of-many").await);
    let expected = [
        ("share-of-resources", Some((4, 10))),
        ("share-of-room", Some((8_000, 10_000))),
        ("share-of-uploads", Some((2, 2))),
        ("share-of-downloads", Some((0, 4))),
    ];
    assert_limits(&app, &expected).await;
    let text = app.get("/metrics").send().await.unwrap().text().await.unwrap();
    for namespace in ["of-many", "of-large", "of-busy"] {
        assert!(!text.contains(namespace), "{text}");
    }
}

#[tokio::test]
async fn downloads_and_connections_are_told_while_they_are_open() {
    let mut options = Options::default();
    options.limits.max_concurrent_downloads = 5;
    options.connections.max = 9;
    let app = TestApp::start_with(options).await;
    let ticket = app.stage(vec![7; LARGE]).await;
    // The client's own connection is one of them.
    assert_limits(&app, &[("downloads", Some((0, 5))), ("connections", Some((1, 9)))]).await;
    let mut download = Wire::connect(app.address).await;
    download.send(download_request(&ticket)).await;
    download.0.readable().await.unwrap();
    let idle = Wire::connect(app.address).await;
    until("two connections more are told", || async { limit(&app, "connections").await == Some((3, 9)) })
        .await;
    assert_limits(&app, &[("downloads", Some((1, 5))), ("ops-connections", None)]).await;
    let (files, most) = limit(&app, "open-files").await.unwrap();
    assert!(
        files >= 6 && most > files,
        "{files} of {most}: the ledger, three connections and a bundle are open"
    );
    drop((download, idle));
    until("they are gone", || async { limit(&app, "connections").await == Some((1, 9)) }).await;
    assert_limits(&app, &[("downloads", Some((0, 5)))]).await;
}

#[tokio::test]
async fn label_keys_are_told_of_the_kind_and_of_the_namespace_that_have_most() {
    let watched = WatchedApp::start().await;
    assert_limits(
        &watched.app,
        &[("label-keys", Some((0, 100_000))), ("share-of-label-keys", Some((0, 1000)))],
    )
    .await;
    for query in [
        "namespace=demo&label=app%3Ddemo&label=team%3Detl",
        "namespace=demo&label=app%3Dother",
        "namespace=other&label=app%3Ddemo",
        "namespace=demo&label=app%3Ddemo&label=tier%3Dx&kind=Deployment",
    ] {
        watched.stage(query).await;
    }
    assert_limits(
        &watched.app,
        &[("label-keys", Some((3, 100_000))), ("share-of-label-keys", Some((2, 1000)))],
    )
    .await;
}
