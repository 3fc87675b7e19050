//! What Prometheus is told.

use std::collections::BTreeMap;

use cloakroom_core::metrics::{CONTENT_TYPE, Metrics, Stock};
use cloakroom_testing::logs;
use cloakroom_testing::wait::until;
use cloakroom_testing::wire::{Wire, download_request, upload_head};
use jiff::Timestamp;
use reqwest::Method;
use reqwest::header::RANGE;
use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

use crate::support::TestApp;
use crate::support::app::Options;
use crate::support::faults::{Fault, Step};

/// Enough to fill the buffers of both sockets.
const LARGE: usize = 40_000_000;

/// Samples by name and labels, as they stand in the text.
struct Scrape {
    text: String,
    samples: BTreeMap<String, f64>,
}

impl Scrape {
    fn new(text: String) -> Self {
        assert!(text.ends_with("# EOF\n"), "{text}");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let sample = |line: &str| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            (name.to_owned(), value.parse().unwrap())
        };
        let samples = lines.map(sample).collect();
        Self { text, samples }
    }

    async fn of(app: &TestApp) -> Self {
        let response = app.get("/metrics").send().await.unwrap();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["content-type"]),
            (200, &CONTENT_TYPE.parse().unwrap())
        );
        Self::new(response.text().await.unwrap())
    }

    fn get(&self, sample: &str) -> Option<f64> {
        self.samples.get(&format!("cloakroom_{sample}")).copied()
    }

    /// Compares samples, each by its name without the prefix.
    fn assert(&self, expected: &[(&str, f64)]) {
        for (sample, value) in expected {
            assert_eq!(self.get(sample), Some(*value), "{sample}:\n{}", self.text);
        }
    }

    /// All samples of one name.
    fn series(&self, name: &str) -> Vec<(&str, f64)> {
        let prefix = format!("cloakroom_{name}{{");
        let of_name = self.samples.iter().filter(|(sample, _)| sample.starts_with(&prefix));
        of_name.map(|(sample, value)| (&sample[prefix.len() - 1..], *value)).collect()
    }
}

async fn until_sample(app: &TestApp, sample: &str, value: f64) -> Scrape {
    until(sample, || async { Scrape::of(app).await.get(sample) == Some(value) }).await;
    Scrape::of(app).await
}

async fn with_some_disk() -> TestApp {
    let options = Options { free_bytes: Some(123_456_789_000), ..Options::default() };
    TestApp::start_with(options).await
}

// Invariant: every transfer is counted once, with its real outcome.
#[tokio::test]
async fn after_a_series_of_transfers_the_metrics_say_exactly_what_happened() {
    let app = with_some_disk().await;
    let small = app.stage("jars").await;
    let large = app.stage(vec![7; LARGE]).await;
    let mut refused = Wire::connect(app.address).await;
    refused.send(upload_head("Content-Length: 999999999\r\n")).await;
    assert_eq!(refused.answer().await.status, 413);
    let mut broken = Wire::connect(app.address).await;
    broken.send(upload_head("Content-Length: 500\r\n")).await;
    broken.send([7; 100]).await;
    until_sample(&app, "upload_bytes_total", (4 + LARGE + 100) as f64).await;
    until_sample(&app, "transfers_in_flight{direction=\"upload\"}", 1.0).await;
    drop(broken);
    until_sample(&app, "uploads_total{outcome=\"failed\"}", 1.0).await;

    assert_eq!(app.download(&small).send().await.unwrap().text().await.unwrap(), "jars");
    let part = app.download(&small).header(RANGE, "bytes=1-2").send().await.unwrap();
    assert_eq!(part.text().await.unwrap(), "ar");
    let etag = format!("\"{}\"", small.sha256);
    assert_eq!(app.download(&small).header("if-none-match", etag).send().await.unwrap().status(), 304);
    assert_eq!(
        app.client.head(&small.url).bearer_auth(&small.resource_secret).send().await.unwrap().status(),
        200
    );
    assert_eq!(
        app.get(&format!("/api/v1/resources/{}", small.resource_id))
            .bearer_auth("wrong")
            .send()
            .await
            .unwrap()
            .status(),
        404
    );
    let mut left = Wire::connect(app.address).await;
    left.send(download_request(&large)).await;
    left.0.readable().await.unwrap();
    until_sample(&app, "transfers_in_flight{direction=\"download\"}", 1.0).await;
    // The 6 bytes before, and some of these.
    until("bytes of it are on their way", || async {
        Scrape::of(&app).await.get("download_bytes_total") > Some(6.0)
    })
    .await;
    drop(left);
    until_sample(&app, "downloads_total{outcome=\"broken\"}", 1.0).await;
    assert_eq!(app.delete(&small).send().await.unwrap().status(), 204);
    assert_eq!(app.delete(&small).send().await.unwrap().status(), 204);
    app.sweep().await;

    let scrape = until_sample(&app, "resources{state=\"deleted\"}", 1.0).await;
    scrape.assert(&[
        ("uploads_total{outcome=\"stored\"}", 2.0),
        ("uploads_total{outcome=\"refused\"}", 1.0),
        ("uploads_total{outcome=\"failed\"}", 1.0),
        ("upload_bytes_total", (4 + LARGE + 100) as f64),
        ("upload_duration_seconds_count", 2.0),
        ("downloads_total{outcome=\"completed\"}", 2.0),
        ("downloads_total{outcome=\"broken\"}", 1.0),
        ("downloads_total{outcome=\"refused\"}", 1.0),
        ("download_duration_seconds_count", 2.0),
        ("transfers_in_flight{direction=\"upload\"}", 0.0),
        ("transfers_in_flight{direction=\"download\"}", 0.0),
        ("resources{state=\"pending\"}", 0.0),
        ("resources{state=\"ready\"}", 1.0),
        ("resources{state=\"deleting\"}", 0.0),
        ("stored_bytes", LARGE as f64),
        ("disk_free_bytes", 123_456_789_000.0),
        ("deletions_total{reason=\"released\"}", 1.0),
        ("deletions_total{reason=\"unused\"}", 0.0),
        // One at the start.
        ("sweeps_total{outcome=\"ok\"}", 2.0),
        ("sweeps_total{outcome=\"failed\"}", 0.0),
        ("sweep_duration_seconds_count", 2.0),
        (
            "last_sweep_timestamp_seconds",
            "2026-01-01T12:00:00Z".parse::<Timestamp>().unwrap().as_second() as f64,
        ),
    ]);
    let sent = scrape.get("download_bytes_total").unwrap() as usize;
    assert!((6 + 1..LARGE).contains(&sent), "{sent}");
    let requests = |method: &str, status: &str| {
        format!(
            "http_requests_total{{route=\"/api/v1/resources/{{id}}\",method=\"{method}\",status=\"{status}\"}}"
        )
    };
    for (method, status, count) in [
        ("PUT", "201", 2.0),
        ("PUT", "413", 1.0),
        ("GET", "200", 2.0),
        ("GET", "206", 1.0),
        ("GET", "304", 1.0),
        ("GET", "404", 1.0),
        ("HEAD", "200", 1.0),
        ("DELETE", "204", 2.0),
    ] {
        scrape.assert(&[(&requests(method, status), count)]);
    }
    for ticket in [small, large] {
        assert!(!scrape.text.contains(&ticket.resource_id), "an id is a label");
        assert!(!scrape.text.contains(&ticket.resource_secret), "a secret is a label");
    }
}

#[tokio::test]
async fn v0_is_counted_as_v1_is() {
    let app = TestApp::start().await;
    let form = |owner: &str| {
        let body = format!(
            "--b\r\nContent-Disposition: form-data; name=\"resources\"\r\n\r\njars\r\n--b\r\n\
             Content-Disposition: form-data; name=\"resourcesOwner\"\r\n\r\n{owner}\r\n--b--\r\n"
        );
        let request = app.client.post(app.url("/api/v0/resources/")).body(body);
        request.header("content-type", "multipart/form-data; boundary=b")
    };
    let owner = "{\"ownerNamespace\":\"demo\",\"ownerLabels\":{\"app\":\"x\"},\"ownerType\":\"Pod\"}";
    let staged: serde_json::Value =
        serde_json::from_str(&form(owner).send().await.unwrap().text().await.unwrap()).unwrap();
    let (id, secret) = (staged["resourceId"].as_str().unwrap(), staged["resourceSecret"].as_str().unwrap());
    app.keep_secret(secret);
    assert_eq!(form("{}").send().await.unwrap().status(), 400);
    let path = format!("/api/v0/resources/{id}");
    assert_eq!(
        app.get(&path).header("authorization", secret).send().await.unwrap().text().await.unwrap(),
        "jars"
    );
    assert_eq!(app.get(&path).header("authorization", "wrong").send().await.unwrap().status(), 401);
    let scrape = until_sample(&app, "downloads_total{outcome=\"completed\"}", 1.0).await;
    scrape.assert(&[
        ("uploads_total{outcome=\"stored\"}", 1.0),
        ("uploads_total{outcome=\"refused\"}", 1.0),
        ("uploads_total{outcome=\"failed\"}", 0.0),
        ("upload_bytes_total", 8.0),
        ("downloads_total{outcome=\"refused\"}", 1.0),
        ("download_bytes_total", 4.0),
    ]);
}

#[tokio::test]
async fn an_upload_whose_client_leaves_early_is_counted_with_its_real_outcome() {
    let app = TestApp::start().await;
    let mut wire = Wire::connect(app.address).await;
    wire.send(upload_head("Content-Length: 4\r\n")).await;
    wire.send("ja").await;
    until_sample(&app, "upload_bytes_total", 2.0).await;
    let options = SqliteConnectOptions::new().filename(app.data_dir().join("ledger.db"));
    let mut other = SqliteConnection::connect_with(&options).await.unwrap();
    // The acknowledgement waits for the ledger, and the client does not.
    sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    wire.send("rs").await;
    let is_published = || async { app.files().iter().any(|file| file.starts_with("bundles/")) };
    until("the bytes are published", is_published).await;
    drop(wire);
    let given_up = "http_requests_total{route=\"/api/v1/resources/{id}\",method=\"PUT\",status=\"aborted\"}";
    let scrape = until_sample(&app, given_up, 1.0).await;
    scrape.assert(&[("uploads_total{outcome=\"stored\"}", 0.0), ("uploads_total{outcome=\"failed\"}", 0.0)]);
    sqlx::query("ROLLBACK").execute(&mut other).await.unwrap();
    let scrape = until_sample(&app, "uploads_total{outcome=\"stored\"}", 1.0).await;
    scrape.assert(&[("uploads_total{outcome=\"failed\"}", 0.0)]);
}

// Invariant: clients cannot create metric series.
#[tokio::test]
async fn what_clients_make_up_makes_no_new_series() {
    let app = TestApp::start().await;
    let ask = async |path: String, method: &str| {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        app.client.request(method, app.url(&path)).send().await.unwrap();
    };
    let paths = |word: &str| {
        ["/", "/api/v1/", "/api/v1/resources/", "/metrics/", "/api/v1/resources/x/metadata/"]
            .map(|path| format!("{path}{word}"))
    };
    for method in ["GET", "MADE-UP"] {
        for path in paths("first") {
            ask(path, method).await;
        }
    }
    let before = Scrape::of(&app).await;
    for _ in 0..20 {
        let word = format!("{:016x}", rand::random::<u64>());
        for path in paths(&word) {
            ask(path.clone(), "GET").await;
            ask(path, &format!("M{word}")).await;
        }
    }
    let after = Scrape::of(&app).await;
    let names = |scrape: &Scrape| -> Vec<String> {
        // The first scrape itself is seen by the second.
        let own = |sample: &&String| !sample.contains("route=\"/metrics\"");
        scrape.samples.keys().filter(own).cloned().collect()
    };
    assert_eq!(names(&before), names(&after));
    let unknown = |status: u16, method: &str| {
        after
            .get(&format!("http_requests_total{{route=\"unknown\",method=\"{method}\",status=\"{status}\"}}"))
    };
    assert_eq!((unknown(404, "GET"), unknown(404, "other")), (Some(84.0), Some(84.0)), "{}", after.text);
}

#[tokio::test]
async fn what_operators_ask_is_counted_and_not_logged_as_a_request() {
    let app = TestApp::start().await;
    let id = format!("operator-{:016x}", rand::random::<u64>());
    for path in ["/healthz", "/readyz", "/metrics"] {
        app.get(path).header("x-request-id", &id).send().await.unwrap();
    }
    let scrape = Scrape::of(&app).await;
    for path in ["/healthz", "/readyz", "/metrics"] {
        scrape.assert(&[(
            &format!("http_requests_total{{route=\"{path}\",method=\"GET\",status=\"200\"}}"),
            1.0,
        )]);
    }
    let lines = logs::lines_with(&id);
    assert!(lines.len() >= 3 && lines.iter().all(|line| !line.contains(" INFO ")), "{lines:?}");
}

#[tokio::test]
async fn what_cannot_be_looked_up_is_left_out_and_the_rest_is_there() {
    let app = with_some_disk().await;
    app.stage("jars").await;
    app.faults.set(Step::StoreSpace, Fault::FailBefore);
    let scrape = Scrape::of(&app).await;
    assert_eq!(scrape.get("disk_free_bytes"), None);
    scrape.assert(&[("uploads_total{outcome=\"stored\"}", 1.0), ("resources{state=\"ready\"}", 1.0)]);
}

#[tokio::test]
async fn a_scrape_shows_what_the_process_uses_under_the_usual_names() {
    let app = TestApp::start().await;
    let scrape = Scrape::of(&app).await;
    let (now, value) = (Timestamp::now().as_second() as f64, |name: &str| scrape.samples[name]);
    assert!((now - 600.0..=now + 1.0).contains(&value("process_start_time_seconds")), "{}", scrape.text);
    assert!(value("process_cpu_seconds_total") > 0.0, "{}", scrape.text);
    assert!(value("process_resident_memory_bytes") > 1024.0 * 1024.0, "{}", scrape.text);
    let again = Scrape::of(&app).await;
    assert_eq!(again.samples["process_start_time_seconds"], value("process_start_time_seconds"));
    assert!(again.samples["process_cpu_seconds_total"] >= value("process_cpu_seconds_total"));
}

#[tokio::test]
async fn a_download_that_breaks_off_is_logged_with_resource_and_request() {
    let app = TestApp::start().await;
    let ticket = app.stage(vec![7; LARGE]).await;
    let id = format!("broken-{:016x}", rand::random::<u64>());
    let request =
        download_request(&ticket).replace("Host: x\r\n", &format!("Host: x\r\nX-Request-Id: {id}\r\n"));
    let mut wire = Wire::connect(app.address).await;
    wire.send(request).await;
    wire.0.readable().await.unwrap();
    drop(wire);
    let is_said = || async {
        let mut lines = logs::lines_with(&id).into_iter();
        lines.any(|line| {
            line.contains("a download broke off")
                && line.contains(&format!("resource_id={}", ticket.resource_id))
                && line.ends_with(" peer=127.0.0.1")
        })
    };
    until("it is logged", is_said).await;
}

#[test]
fn what_was_kept_before_and_is_not_kept_any_more_is_zero() {
    let metrics = Metrics::new();
    metrics.kept(&[("present", 3), ("unknown", 2)]);
    metrics.kept(&[("present", 1), ("downloading", 4)]);
    let scrape = exposition(&metrics);
    assert_eq!(
        scrape.series("resources_kept").into_iter().collect::<BTreeMap<_, _>>(),
        BTreeMap::from([
            ("{why=\"present\"}", 1.0),
            ("{why=\"unknown\"}", 0.0),
            ("{why=\"downloading\"}", 4.0)
        ])
    );
}

#[test]
fn a_sweep_that_failed_is_not_the_last_that_succeeded() {
    use cloakroom_core::metrics::SweepOutcome::{Failed, Ok};
    let metrics = Metrics::new();
    let at = |second| Timestamp::from_second(second).unwrap();
    metrics.swept(Ok, std::time::Duration::from_millis(3), at(100));
    metrics.swept(Failed, std::time::Duration::from_secs(7), at(200));
    exposition(&metrics).assert(&[
        ("last_sweep_timestamp_seconds", 100.0),
        ("sweeps_total{outcome=\"ok\"}", 1.0),
        ("sweeps_total{outcome=\"failed\"}", 1.0),
        ("sweep_duration_seconds_bucket{le=\"0.005\"}", 1.0),
        ("sweep_duration_seconds_bucket{le=\"+Inf\"}", 2.0),
    ]);
}

fn exposition(metrics: &Metrics) -> Scrape {
    let limits = Vec::new();
    let stock = Stock {
        uploads: 0,
        downloads: 0,
        stored_bytes: 0,
        strays: 0,
        stray_bytes: 0,
        free_bytes: None,
        resources: BTreeMap::new(),
        limits,
    };
    Scrape::new(metrics.exposition(&stock).unwrap())
}
