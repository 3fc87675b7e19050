//! Handing a bundle in, in every way that clients do, and letting go of it again.

use std::collections::BTreeMap;
use std::time::Duration;

use cloakroom_core::clock::Clock as _;
use cloakroom_core::protocol::digest;
use cloakroom_core::protocol::v1::Ticket;
use cloakroom_core::resource::OwnerKinds;
use cloakroom_testing::logs;
use cloakroom_testing::wire::{Wire, ask, download_request};
use reqwest::Response;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::support::TestApp;
use crate::support::app::{Options, problem};

const OWNER: &str = "namespace=demo&label=app%3Ddemo";

/// The ticket of a `201` that came over the wire.
async fn asked(app: &TestApp, request: String) -> Ticket {
    let answer = ask(app.address, request).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let ticket: Ticket = serde_json::from_slice(&answer.body).unwrap();
    app.keep_secret(&ticket.resource_secret);
    ticket
}

async fn json_of(response: Response) -> Value {
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
}

async fn metadata(app: &TestApp, ticket: &Ticket) -> Value {
    let path = format!("/api/v1/resources/{}/metadata", ticket.resource_id);
    let response = app.get(&path).bearer_auth(&ticket.resource_secret).send().await.unwrap();
    assert_eq!(response.status(), 200);
    json_of(response).await
}

#[tokio::test]
async fn every_url_and_framing_that_curl_uses_stages_a_bundle() {
    let app = TestApp::start().await;
    let framings = [
        "Content-Length: 4\r\n\r\njars",
        "Transfer-Encoding: chunked\r\n\r\n1\r\nj\r\n3;x=y\r\nars\r\n0\r\n\r\n",
    ];
    for (method, path, file_name) in [
        ("PUT", "/api/v1/resources/deps.tgz", Some("deps.tgz")),
        ("PUT", "/api/v1/resources", None),
        ("PUT", "/api/v1/resources/", None),
        ("POST", "/api/v1/resources", None),
        ("POST", "/api/v1/resources/", None),
    ] {
        for framing in framings {
            let ticket =
                asked(&app, format!("{method} {path}?{OWNER} HTTP/1.1\r\nHost: x\r\n{framing}")).await;
            assert_eq!(ticket.size_bytes, 4, "{method} {path}");
            let row = app.ready_row(&ticket.resource_id).await.data.arrival;
            assert_eq!(row.file_name.as_ref().map(|name| name.as_str()), file_name, "{method} {path}");
            assert_eq!(row.uploaded_by.as_deref(), Some("127.0.0.1"));
            let response = app.download(&ticket).send().await.unwrap();
            assert_eq!(response.headers().contains_key("content-disposition"), file_name.is_some());
            assert_eq!(response.text().await.unwrap(), "jars", "{method} {path}");
        }
    }
    assert_eq!(app.files().len(), 10);
    assert_eq!(app.rows().await, BTreeMap::from([("ready", 10)]));
}

#[tokio::test]
async fn the_file_name_comes_back_in_content_disposition() {
    let app = TestApp::start().await;
    for (in_url, name, expected) in [
        ("deps.tgz", "deps.tgz", r#"attachment; filename="deps.tgz""#),
        ("my%20deps.tgz", "my deps.tgz", r#"attachment; filename="my deps.tgz""#),
        ("d%C3%A9ps.tgz", "déps.tgz", r#"attachment; filename="d_ps.tgz"; filename*=UTF-8''d%C3%A9ps.tgz"#),
        ("%E6%97%A5.tgz", "日.tgz", r#"attachment; filename="_.tgz"; filename*=UTF-8''%E6%97%A5.tgz"#),
        ("a%22b.tgz", "a\"b.tgz", r#"attachment; filename="a_b.tgz"; filename*=UTF-8''a%22b.tgz"#),
        ("a+b.tgz", "a+b.tgz", r#"attachment; filename="a+b.tgz""#),
        ("...", "...", r#"attachment; filename="...""#),
    ] {
        let path = format!("/api/v1/resources/{in_url}?{OWNER}");
        let ticket = app.ticket(app.client.put(app.url(&path)).body("jars").send().await.unwrap()).await;
        assert_eq!(metadata(&app, &ticket).await["fileName"], name);
        let response = app.download(&ticket).send().await.unwrap();
        assert_eq!(response.headers()["content-disposition"], expected);
    }
}

fn announced(bytes: &[u8]) -> String {
    digest::format(&Sha256::digest(bytes).into())
}

#[tokio::test]
async fn a_digest_that_is_right_is_accepted_in_every_form() {
    let app = TestApp::start().await;
    let right = announced(b"jars");
    let listed = format!("sha-512=:AAAA:, {right}");
    for headers in [
        vec![("content-digest", right.as_str())],
        vec![("repr-digest", &right)],
        vec![("content-digest", &right), ("repr-digest", &right)],
        vec![("content-digest", &listed)],
        vec![("content-digest", "sha-512=:AAAA:"), ("content-digest", &right)],
    ] {
        let request =
            headers.iter().fold(app.put("", "jars"), |request, (name, value)| request.header(*name, *value));
        assert_eq!(app.ticket(request.send().await.unwrap()).await.size_bytes, 4, "{headers:?}");
    }
}

#[tokio::test]
async fn a_digest_that_is_wrong_is_refused_and_nothing_is_kept() {
    let app = TestApp::start().await;
    let (right, wrong) = (announced(b"jars"), announced(b"jar"));
    let mismatch = |name: &'static str| (vec![(name, &wrong)], "digest-mismatch");
    for (headers, code) in [
        mismatch("content-digest"),
        mismatch("repr-digest"),
        (vec![("content-digest", &wrong), ("repr-digest", &right)], "invalid-header"),
        (vec![("content-digest", &right), ("repr-digest", &wrong)], "invalid-header"),
        (vec![("content-digest", &right), ("content-digest", &wrong)], "digest-mismatch"),
    ] {
        let request =
            headers.iter().fold(app.put("", "jars"), |request, (name, value)| request.header(*name, *value));
        let refused = problem(request.send().await.unwrap()).await;
        assert_eq!((refused.status, refused.code.as_str()), (400, code), "{headers:?}: {}", refused.detail);
        app.assert_nothing_kept().await;
    }
}

#[tokio::test]
async fn a_ticket_says_what_was_stored_when_until_when_and_where() {
    let app = TestApp::start().await;
    app.clock.advance(Duration::from_millis(1500));
    let response = app.put("", "jars").send().await.unwrap();
    assert_eq!(response.status(), 201);
    assert_eq!(response.headers()["content-type"], "application/json");
    let location = response.headers()["location"].to_str().unwrap().to_owned();
    let mut ticket = json_of(response).await;
    let secret = ticket["resourceSecret"].take().as_str().unwrap().to_owned();
    app.keep_secret(&secret);
    let id = ticket["resourceId"].as_str().unwrap().to_owned();
    let url = app.url(&format!("/api/v1/resources/{id}"));
    let expected = json!({
        "resourceId": id,
        "resourceSecret": null,
        "sizeBytes": 4,
        "sha256": digest::to_hex(&Sha256::digest(b"jars").into()),
        "createdAt": "2026-01-01T12:00:01.5Z",
        "expiresAt": "2026-01-01T12:30:01.5Z",
        "url": url,
    });
    assert_eq!(ticket, expected);
    assert_eq!(location, url);
    let is_url_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    assert!(secret.len() >= 43 && secret.chars().all(is_url_safe), "256 bits, to be pasted anywhere");
    assert_eq!(app.files(), [format!("bundles/{}/{id}", &id[..2])]);
    for file in ["ledger.db", "ledger.db-wal"] {
        let bytes = std::fs::read(app.data_dir().join(file)).unwrap();
        assert!(memchr::memmem::find(&bytes, secret.as_bytes()).is_none(), "{file} has the secret itself");
    }
    let lines = logs::lines_with(&id);
    let is_said =
        |line: &String| line.contains("staged") && line.contains("bytes=4 namespace=\"demo\" kind=Pod");
    assert!(lines.iter().any(is_said), "{lines:?}");
}

#[tokio::test]
async fn the_url_of_a_ticket_is_the_one_that_the_client_can_use() {
    let mut options = Options::default();
    options.settings.public_url = Some("https://jars.example.com/cloakroom/".parse().unwrap());
    let mut behind_a_proxy = Options::default();
    behind_a_proxy.settings.trusted_proxies = "127.0.0.1".parse().unwrap();
    for (app, cases) in [
        (
            TestApp::start().await,
            vec![("Host: jars.example.com\r\nX-Forwarded-Proto: https\r\n", "http://jars.example.com")],
        ),
        (
            TestApp::start_with(behind_a_proxy).await,
            vec![
                ("Host: cloakroom.spark:10000\r\n", "http://cloakroom.spark:10000"),
                ("Host: [::1]:10000\r\n", "http://[::1]:10000"),
                ("Host: jars.example.com\r\nX-Forwarded-Proto: https\r\n", "https://jars.example.com"),
                ("Host: jars.example.com\r\nX-Forwarded-Proto: HTTPS, http\r\n", "https://jars.example.com"),
                ("Host: jars.example.com\r\nX-Forwarded-Proto: javascript\r\n", "http://jars.example.com"),
                ("Host: user@jars.example.com\r\n", ""),
                ("Host: a b\"<>\r\n", ""),
                ("", ""),
            ],
        ),
        (
            TestApp::start_with(options).await,
            vec![("Host: other\r\nX-Forwarded-Proto: http\r\n", "https://jars.example.com/cloakroom")],
        ),
    ] {
        for (headers, base) in cases {
            // Only HTTP/1.0 may leave Host out.
            let version = if headers.is_empty() { "1.0" } else { "1.1" };
            let line = format!("PUT /api/v1/resources?{OWNER} HTTP/{version}");
            let ticket = asked(&app, format!("{line}\r\n{headers}Content-Length: 4\r\n\r\njars")).await;
            let expected = format!("{base}/api/v1/resources/{}", ticket.resource_id);
            assert_eq!(ticket.url, expected, "{headers}");
        }
    }
}

#[tokio::test]
async fn ttl_and_unused_timeout_are_what_ticket_and_metadata_say() {
    let app = TestApp::start().await;
    let created_at = app.clock.now();
    for (query, minutes, once_used) in [
        ("", 30, None),
        ("&unusedTimeout=2h", 120, None),
        ("&unusedTimeout=7d", 7 * 24 * 60, None),
        ("&ttl=10min", 10, Some(10)),
        ("&ttl=2h", 30, Some(120)),
        ("&ttl=1h&unusedTimeout=2H", 60, Some(60)),
    ] {
        let ticket = app.ticket(app.put(query, "jars").send().await.unwrap()).await;
        let at = |minutes: u64| created_at + Duration::from_mins(minutes);
        assert_eq!(ticket.expires_at, at(minutes), "{query}");
        assert_eq!(metadata(&app, &ticket).await["expiresAt"], json!(at(minutes)), "{query}");
        assert_eq!(app.download(&ticket).send().await.unwrap().text().await.unwrap(), "jars");
        let after = metadata(&app, &ticket).await.get("expiresAt").cloned();
        assert_eq!(after, once_used.map(|minutes| json!(at(minutes))), "{query}");
    }
}

#[tokio::test]
async fn an_empty_bundle_is_a_bundle() {
    let app = TestApp::start().await;
    for framing in ["Content-Length: 0\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "\r\n"] {
        let request = format!("PUT /api/v1/resources/empty?{OWNER} HTTP/1.1\r\nHost: x\r\n{framing}");
        let ticket = asked(&app, request).await;
        assert_eq!(ticket.size_bytes, 0);
        assert_eq!(ticket.sha256, digest::to_hex(&Sha256::digest(b"").into()));
        let response = app.download(&ticket).send().await.unwrap();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["content-length"]),
            (200, &"0".parse().unwrap())
        );
        assert_eq!(response.bytes().await.unwrap().len(), 0);
        assert!(metadata(&app, &ticket).await["firstUsedAt"].is_string());
        let ranged = app.download(&ticket).header("range", "bytes=0-").send().await.unwrap();
        assert_eq!(
            (ranged.status().as_u16(), &ranged.headers()["content-range"]),
            (416, &"bytes */0".parse().unwrap())
        );
    }
}

#[tokio::test]
async fn only_an_answer_with_bytes_in_it_is_a_use() {
    let app = TestApp::start().await;
    let ticket = app.stage("0123456789").await;
    let etag = format!("\"{}\"", ticket.sha256);
    let url = app.url(&format!("/api/v1/resources/{}", ticket.resource_id));
    let get = || app.download(&ticket);
    let head = app.client.head(url).bearer_auth(&ticket.resource_secret);
    for (request, status) in [
        (head, 200),
        (get().header("if-none-match", &etag), 304),
        (get().header("if-match", "\"other\""), 412),
        (get().header("range", "bytes=10-"), 416),
    ] {
        assert_eq!(request.send().await.unwrap().status(), status);
        let metadata = metadata(&app, &ticket).await;
        assert_eq!(
            (metadata.get("firstUsedAt"), metadata.get("lastUsedAt")),
            (None, None),
            "after a {status}"
        );
    }
    app.clock.advance(Duration::from_secs(1));
    assert_eq!(get().header("range", "bytes=9-").send().await.unwrap().text().await.unwrap(), "9");
    app.clock.advance(Duration::from_secs(1));
    assert_eq!(get().send().await.unwrap().text().await.unwrap(), "0123456789");
    let metadata = metadata(&app, &ticket).await;
    assert_eq!(metadata["firstUsedAt"], "2026-01-01T12:00:01Z");
    assert_eq!(metadata["lastUsedAt"], "2026-01-01T12:00:02Z");
}

#[tokio::test]
async fn an_owner_is_kept_as_it_was_named() {
    let app = TestApp::start().await;
    let mut cases = vec![
        (
            "namespace=demo&name=driver-1".to_owned(),
            json!({"kind": "Pod", "namespace": "demo", "labels": {}, "name": "driver-1"}),
        ),
        (
            "namespace=demo&label=a%2Fb%3Dc&label=app=x&label=empty=&label=app=x".to_owned(),
            json!({"kind": "Pod", "namespace": "demo", "labels": {"a/b": "c", "app": "x", "empty": ""}}),
        ),
    ];
    for kind in OwnerKinds::DEFAULT.split(',') {
        let owner = json!({"kind": kind, "namespace": "a-1", "labels": {"app": "x"}, "name": "n.m"});
        cases.push((format!("kind={kind}&namespace=a-1&label=app=x&name=n.m"), owner));
    }
    for (query, owner) in cases {
        let request = app.client.post(app.url(&format!("/api/v1/resources?{query}"))).body("jars");
        let ticket = app.ticket(request.send().await.unwrap()).await;
        let metadata = metadata(&app, &ticket).await;
        assert_eq!(metadata["owner"], owner, "{query}");
        assert_eq!((&metadata["state"], &metadata["sizeBytes"]), (&json!("ready"), &json!(4)));
    }
}

#[tokio::test]
async fn a_deleted_resource_is_gone_with_reason_and_time_until_forgotten() {
    let app = TestApp::start().await;
    let ticket = app.stage("jars").await;
    app.clock.advance(Duration::from_mins(3));
    for _ in 0..2 {
        let response = app.delete(&ticket).send().await.unwrap();
        assert_eq!((response.status().as_u16(), response.text().await.unwrap().as_str()), (204, ""));
        assert_eq!(app.files(), Vec::<String>::new());
        assert_eq!(app.rows().await, BTreeMap::from([("deleted", 1)]));
        app.clock.advance(Duration::from_mins(1));
    }
    let path = format!("/api/v1/resources/{}", ticket.resource_id);
    let metadata = app.get(&format!("{path}/metadata")).bearer_auth(&ticket.resource_secret);
    for request in [app.download(&ticket), metadata] {
        let gone = problem(request.send().await.unwrap()).await;
        assert_eq!((gone.status, gone.code.as_str()), (410, "gone"));
        assert_eq!(gone.deletion_reason.as_deref(), Some("released"));
        assert_eq!(gone.deleted_at, Some("2026-01-01T12:03:00Z".parse().unwrap()));
    }
    let head = app.client.head(app.url(&path)).bearer_auth(&ticket.resource_secret);
    assert_eq!(head.send().await.unwrap().status(), 410);
    let stranger = problem(app.get(&path).bearer_auth("wrong").send().await.unwrap()).await;
    assert_eq!((stranger.status, stranger.deletion_reason), (404, None));

    app.clock.advance(Duration::from_hours(7 * 24));
    assert_eq!(app.sweep().await.forgotten.expired, 1);
    app.assert_nothing_kept().await;
    for request in [app.download(&ticket), app.delete(&ticket)] {
        assert_eq!(problem(request.send().await.unwrap()).await.status, 404);
    }
}

#[tokio::test]
async fn a_download_in_flight_hides_no_end_of_its_resource() {
    let app = TestApp::start().await;
    let ticket = app.ticket(app.put("&ttl=2h", vec![7; 30_000_000]).send().await.unwrap()).await;
    let mut wire = Wire::connect(app.address).await;
    wire.send(download_request(&ticket)).await;
    wire.0.readable().await.unwrap();
    let kept = metadata(&app, &ticket).await;
    assert_eq!(kept["keptBecause"], "downloading");
    assert_eq!(kept["expiresAt"], json!(ticket.created_at + Duration::from_hours(2)));
    assert_eq!(wire.answer().await.body.len(), 30_000_000);
}

#[tokio::test]
async fn a_download_in_flight_survives_the_delete() {
    let app = TestApp::start().await;
    let bundle: Vec<u8> = (0..30_000_000_u32).map(|at| (at % 253) as u8).collect();
    let ticket = app.stage(bundle.clone()).await;
    let mut wire = Wire::connect(app.address).await;
    wire.send(download_request(&ticket)).await;
    wire.0.readable().await.unwrap();
    assert_eq!(app.staging.in_flight(), (0, 1));
    assert_eq!(app.delete(&ticket).send().await.unwrap().status(), 204);
    assert_eq!(app.download(&ticket).send().await.unwrap().status(), 410);
    let answer = wire.answer().await;
    assert_eq!(answer.status, 200);
    assert!(answer.body == bundle, "the download has other bytes");
}
