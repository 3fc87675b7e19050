//! The original's protocol, as its clients speak it.

use std::time::Duration;

use cloakroom_core::text::is_unfit;
use cloakroom_server::http::{TokenFile, TokenUse, UploadAuth};
use cloakroom_testing::wait::until;
use cloakroom_testing::wire::{Answer, Wire, ask};
use reqwest::Response;
use serde_json::Value;

use crate::support::TestApp;
use crate::support::app::{Options, problem};

const RECORDED: &[u8] = include_bytes!("fixtures/okhttp-upload.http");
const OWNER: &str = r#"{"ownerNamespace":"demo","ownerLabels":{"app":"demo"},"ownerType":"Pod"}"#;
const BOUNDARY: &str = "fc427bd9-043b-41f6-9036-4789001967c9";

/// A part as OkHttp writes it, with or without a length.
fn part(name: &str, length: Option<u64>, content: &[u8]) -> Vec<u8> {
    let length = length.map(|length| format!("Content-Length: {length}\r\n")).unwrap_or_default();
    let head = format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\
         Content-Transfer-Encoding: binary\r\nContent-Type: multipart/form-data\r\n{length}\r\n"
    );
    [head.as_bytes(), content, b"\r\n"].concat()
}

fn resources(content: &[u8]) -> Vec<u8> {
    part("resources", Some(content.len() as u64), content)
}

fn owner(json: &str) -> Vec<u8> {
    part("resourcesOwner", Some(json.len() as u64), json.as_bytes())
}

fn form(parts: &[Vec<u8>]) -> Vec<u8> {
    [parts.concat(), format!("--{BOUNDARY}--\r\n").into_bytes()].concat()
}

async fn post_to(app: &TestApp, path: &str, body: Vec<u8>) -> Response {
    let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
    app.client.post(app.url(path)).header("content-type", content_type).body(body).send().await.unwrap()
}

async fn post(app: &TestApp, body: Vec<u8>) -> Response {
    post_to(app, "/api/v0/resources/", body).await
}

/// Id and secret of a `200`, which has nothing else in it.
fn ticket(app: &TestApp, body: &[u8]) -> (String, String) {
    let Value::Object(fields) = serde_json::from_slice(body).unwrap() else { panic!("not an object") };
    assert_eq!(fields.keys().collect::<Vec<_>>(), ["resourceId", "resourceSecret"]);
    let text = |name: &str| fields[name].as_str().unwrap().to_owned();
    app.keep_secret(&text("resourceSecret"));
    (text("resourceId"), text("resourceSecret"))
}

async fn stage(app: &TestApp, bundle: &[u8]) -> (String, String) {
    let response = post(app, form(&[resources(bundle), owner(OWNER)])).await;
    assert_eq!(response.status(), 200);
    ticket(app, &response.bytes().await.unwrap())
}

async fn get(app: &TestApp, id: &str, secret: &str) -> Response {
    app.get(&format!("/api/v0/resources/{id}")).header("authorization", secret).send().await.unwrap()
}

#[tokio::test]
async fn a_recorded_upload_of_the_originals_client_comes_back_byte_for_byte() {
    let app = TestApp::start().await;
    let answer = ask(app.address, RECORDED).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, "application/json"));
    let (id, secret) = ticket(&app, &answer.body);

    let request = format!(
        "GET /api/v0/resources/{id} HTTP/1.1\r\nAuthorization: {secret}\r\nHost: 127.0.0.1\r\n\
         Connection: Keep-Alive\r\nAccept-Encoding: gzip\r\nUser-Agent: okhttp/3.8.1\r\n\r\n"
    );
    let downloaded = ask(app.address, request).await;
    let start = memchr::memmem::find(RECORDED, b"Content-Length: 316\r\n\r\n").unwrap() + 23;
    let bundle = &RECORDED[start..start + 316];
    assert_eq!((downloaded.status, downloaded.header("content-type")), (200, "application/octet-stream"));
    assert_eq!((downloaded.header("content-length"), downloaded.header("content-encoding")), ("316", ""));
    assert_eq!(downloaded.body, bundle);
    assert_eq!(app.files(), [format!("bundles/{}/{id}", &id[..2])]);
    assert_eq!(std::fs::read(app.data_dir().join(&app.files()[0])).unwrap(), bundle);

    let recorded_owner = app.ready_row(&id).await.data.owner;
    assert_eq!((recorded_owner.kind().as_str(), recorded_owner.namespace()), ("Pod", "spark-cluster"));
    let labels = [("spark-app-selector", "spark-0f3c"), ("spark-role", "driver")];
    assert_eq!(recorded_owner.labels().collect::<Vec<_>>(), labels);
}

#[tokio::test]
async fn a_form_for_an_owner_without_memory_is_refused() {
    let mut options = Options::default();
    options.limits.owner_memory_bytes = 0;
    let app = TestApp::start_with(options).await;
    for parts in [[resources(b"jars"), owner(OWNER)], [owner(OWNER), resources(b"jars")]] {
        let refused = problem(post(&app, form(&parts)).await).await;
        assert_eq!((refused.status, refused.code.as_str()), (507, "insufficient-storage"));
        assert!(refused.detail.starts_with("no memory for another owner"), "{refused:?}");
    }
    until("nothing is kept", async || app.files().is_empty()).await;
}

#[tokio::test]
async fn the_parts_may_come_in_any_order_and_the_path_may_end_with_a_slash() {
    let app = TestApp::start().await;
    let parts = [resources(b"jars"), owner(OWNER)];
    let reversed = [parts[1].clone(), parts[0].clone()];
    for body in [form(&parts), form(&reversed)] {
        for path in ["/api/v0/resources", "/api/v0/resources/"] {
            let response = post_to(&app, path, body.clone()).await;
            assert_eq!(response.status(), 200, "{path}");
            let (id, secret) = ticket(&app, &response.bytes().await.unwrap());
            assert_eq!(get(&app, &id, &secret).await.bytes().await.unwrap(), "jars");
        }
    }
}

#[tokio::test]
async fn both_pings_answer_pong_as_plain_text() {
    let app = TestApp::start().await;
    for path in ["/api/v0/ping", "/api/ping"] {
        let response = app.get(path).send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert!(response.headers()["content-type"].to_str().unwrap().starts_with("text/plain"));
        assert_eq!(response.text().await.unwrap(), "pong");
    }
}

#[tokio::test]
async fn an_unknown_id_and_a_wrong_secret_are_told_apart_and_gone_is_unknown() {
    let app = TestApp::start().await;
    let (id, secret) = stage(&app, b"jars").await;
    for unknown in ["4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1", "nonsense", "..%2f..%2fetc%2fpasswd"] {
        let refused = problem(get(&app, unknown, &secret).await).await;
        assert_eq!((refused.status, refused.code.as_str()), (404, "not-found"), "{unknown}");
    }
    let missing = app.get(&format!("/api/v0/resources/{id}")).send().await.unwrap();
    for refused in [missing, get(&app, &id, "wrong").await, get(&app, &id, &secret[1..]).await] {
        assert!(refused.headers().contains_key("www-authenticate"));
        let refused = problem(refused).await;
        assert_eq!((refused.status, refused.code.as_str()), (401, "unauthorized"));
    }
    assert!(!app.ready_row(&id).await.is_used(), "a refused download is no use");

    app.clock.advance(Duration::from_mins(31));
    assert_eq!(app.sweep().await.expired, 1);
    assert_eq!(get(&app, &id, &secret).await.status(), 404);
    assert_eq!(get(&app, &id, "wrong").await.status(), 401);
}

#[tokio::test]
async fn no_answer_is_ever_compressed() {
    let app = TestApp::start().await;
    let (id, secret) = stage(&app, &[b'a'; 100_000]).await;
    let found = format!("/api/v0/resources/{id}");
    for (path, status) in [(found.as_str(), 200), ("/api/v0/ping", 200), ("/api/v0/resources/x", 404)] {
        let request = app.get(path).header("authorization", &secret).header("accept-encoding", "gzip, br");
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), status);
        assert!(!response.headers().contains_key("content-encoding"), "{path}");
    }
}

#[tokio::test]
async fn what_one_protocol_stages_the_other_one_knows() {
    let app = TestApp::start().await;
    let (id, secret) = stage(&app, b"old").await;
    let url = format!("/api/v1/resources/{id}");
    let metadata = app.get(&format!("{url}/metadata")).bearer_auth(&secret).send().await.unwrap();
    let metadata: Value = serde_json::from_slice(&metadata.bytes().await.unwrap()).unwrap();
    assert_eq!(metadata["sizeBytes"], 3);
    assert_eq!(metadata["owner"]["labels"]["app"], "demo");
    assert_eq!(app.get(&url).bearer_auth(&secret).send().await.unwrap().text().await.unwrap(), "old");

    let new = app.stage("new").await;
    let response = get(&app, &new.resource_id, &new.resource_secret).await;
    assert_eq!((response.status().as_u16(), response.text().await.unwrap().as_str()), (200, "new"));
    app.delete(&new).send().await.unwrap();
    assert_eq!(get(&app, &new.resource_id, &new.resource_secret).await.status(), 404);
}

#[tokio::test]
async fn the_first_download_marks_the_resource_used_and_keeps_it() {
    let app = TestApp::start().await;
    let (id, secret) = stage(&app, b"jars").await;
    assert!(!app.ready_row(&id).await.is_used());
    app.clock.advance(Duration::from_mins(1));
    let first = cloakroom_core::clock::Clock::now(&*app.clock);
    get(&app, &id, &secret).await.bytes().await.unwrap();
    app.clock.advance(Duration::from_mins(1));
    get(&app, &id, &secret).await.bytes().await.unwrap();
    let row = app.ready_row(&id).await.data.history;
    assert_eq!(row.first_used_at, Some(first));
    assert_eq!(row.last_used_at, Some(cloakroom_core::clock::Clock::now(&*app.clock)));
    app.clock.advance(Duration::from_hours(24));
    assert_eq!(app.sweep().await.expired, 0);
    assert_eq!(get(&app, &id, &secret).await.status(), 200);
}

#[tokio::test]
async fn a_form_that_is_not_the_protocols_is_refused_and_leaves_nothing() {
    let app = TestApp::start().await;
    let jars = resources(b"jars");
    let owned = owner(OWNER);
    let long = |length| vec![part("resources", Some(length), b"jars"), owned.clone()];
    let by = |json: &str| vec![jars.clone(), owner(json)];
    let large_owner = format!("{}{OWNER}", " ".repeat(64 << 10));
    let cases = [
        ("two bundles", vec![jars.clone(), jars.clone(), owned.clone()], 400, "invalid-multipart"),
        ("two owners", vec![jars.clone(), owned.clone(), owned.clone()], 400, "invalid-multipart"),
        ("no bundle", vec![owned.clone()], 400, "invalid-multipart"),
        ("nothing", vec![], 400, "invalid-multipart"),
        ("no owner", vec![jars.clone()], 400, "invalid-owner"),
        (
            "an unknown part",
            vec![jars.clone(), part("x", None, b""), owned.clone()],
            400,
            "invalid-multipart",
        ),
        (
            "a part that is invisible or turns text round",
            vec![jars.clone(), part("a\u{202e}b\u{2028}c\u{200b}d", None, b""), owned.clone()],
            400,
            "invalid-multipart",
        ),
        ("a large owner", by(&large_owner), 400, "invalid-owner"),
        ("an owner that is no JSON", by("{"), 400, "invalid-owner"),
        ("an owner without labels", by(r#"{"ownerNamespace":"demo"}"#), 400, "invalid-owner"),
        ("a bad namespace", by(&OWNER.replace("\"demo\",", "\"De mo\",")), 400, "invalid-owner"),
        ("no labels at all", by(&OWNER.replace(r#""app":"demo""#, "")), 400, "invalid-owner"),
        ("an unknown kind", by(&OWNER.replace("Pod", "Banana")), 400, "invalid-owner"),
        ("a length that is too long", long(5), 400, "incomplete-body"),
        ("a length that is too short", long(3), 400, "incomplete-body"),
        ("a length beyond all limits", long(u64::MAX), 413, "too-large"),
    ];
    for (what, parts, status, code) in cases {
        let refused = problem(post(&app, form(&parts)).await).await;
        assert_eq!((refused.status, refused.code.as_str()), (status, code), "{what}: {}", refused.detail);
        assert!(!refused.detail.contains(is_unfit), "{what}: {:?}", refused.detail);
        app.assert_nothing_kept().await;
    }
}

#[tokio::test]
async fn a_body_without_its_closing_boundary_is_refused_and_leaves_nothing() {
    let app = TestApp::start().await;
    let whole = form(&[resources(b"jars"), owner(OWNER)]);
    let closing = whole.len() - format!("--{BOUNDARY}--\r\n").len();
    for end in [0, 20, 150, closing - 40, closing, closing + 10] {
        let refused = problem(post(&app, whole[..end].to_vec()).await).await;
        assert_eq!((refused.status, refused.code.as_str()), (400, "invalid-multipart"), "cut at {end}");
        app.assert_nothing_kept().await;
    }
}

#[tokio::test]
async fn a_connection_that_breaks_in_the_middle_of_the_form_leaves_nothing() {
    let app = TestApp::start().await;
    for end in [RECORDED.len() - 600, RECORDED.len() - 300, RECORDED.len() - 1] {
        let mut wire = Wire::connect(app.address).await;
        assert!(wire.send(&RECORDED[..end]).await);
        until("the upload has begun or the form is read", async || !app.rows().await.is_empty()).await;
        drop(wire);
        until("nothing is left", async || app.rows().await.is_empty() && app.files().is_empty()).await;
    }
}

#[tokio::test]
async fn another_content_type_is_refused_with_the_way_out() {
    let app = TestApp::start().await;
    let types = [
        ("application/gzip", 415, "unsupported-media-type"),
        ("multipart/mixed; boundary=a", 415, "unsupported-media-type"),
        ("multipart/form-data", 400, "invalid-multipart"),
        ("multipart/form-data; boundary=", 400, "invalid-multipart"),
    ];
    for (content_type, status, code) in types {
        let request = app.client.post(app.url("/api/v0/resources")).header("content-type", content_type);
        let refused = problem(request.body("jars").send().await.unwrap()).await;
        assert_eq!((refused.status, refused.code.as_str()), (status, code), "{content_type}");
        app.assert_nothing_kept().await;
    }
}

/// Sends `head` and then `chunk` again and again, in a body without a length, until the server has enough.
async fn endlessly(app: &TestApp, head: &[u8], chunk: &[u8]) -> (Answer, usize) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    const FAR_TOO_MUCH: usize = 1 << 30;
    let (mut reading, mut writing) = Wire::connect(app.address).await.0.into_split();
    let reader = tokio::spawn(async move {
        let (mut answer, mut buffer) = (Vec::new(), [0; 4096]);
        while let Ok(read @ 1..) = reading.read(&mut buffer).await {
            answer.extend_from_slice(&buffer[..read]);
        }
        answer
    });
    let request = format!(
        "POST /api/v0/resources HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\
         Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n{:x}\r\n",
        head.len()
    );
    writing.write_all(&[request.as_bytes(), head, b"\r\n"].concat()).await.unwrap();
    let framed = [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat();
    let mut sent = 0;
    while sent < FAR_TOO_MUCH && writing.write_all(&framed).await.is_ok() {
        sent += chunk.len();
    }
    assert!(sent < FAR_TOO_MUCH, "the server takes everything");
    let bytes = reader.await.unwrap();
    let end = memchr::memmem::find(&bytes, b"\r\n\r\n").expect("no answer");
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (Answer { status, head, body: bytes[end + 4..].to_vec() }, sent)
}

#[tokio::test]
async fn a_form_that_never_ends_is_refused_at_its_limits_and_leaves_nothing() {
    let mut options = Options::default();
    options.limits.capacity.max_resource_size = 1 << 20;
    options.connections.linger = Duration::ZERO;
    let app = TestApp::start_with(options).await;
    let chunk = [b'x'; 64 << 10];
    let start = |name: &str| part(name, None, b"");
    let (in_headers, whole) = (start("resources"), form(&[resources(b"jars"), owner(OWNER)]));
    let cases: [(&str, &[u8], u16, &str); 5] = [
        ("the bundle", &in_headers, 413, "too-large"),
        ("the owner", &start("resourcesOwner"), 400, "invalid-owner"),
        ("the preamble", b"", 400, "invalid-multipart"),
        ("the headers of a part", &in_headers[..60], 400, "invalid-multipart"),
        ("the epilogue", &whole, 400, "invalid-multipart"),
    ];
    for (what, head, status, code) in cases {
        // A chunk of length zero would end the body.
        let head = if head.is_empty() { b"x" } else { head };
        let (answer, sent) = endlessly(&app, head, &chunk).await;
        assert_eq!(answer.status, status, "{what}: {}", answer.text());
        assert!(answer.text().contains(code), "{what}: {}", answer.text());
        // The limit, what is drained, and what fits into the buffers of two sockets.
        assert!(sent <= 300 << 20, "{what}: {sent} bytes were taken");
        app.assert_nothing_kept().await;
    }
}

#[tokio::test]
async fn the_upload_token_holds_for_v0_too() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, "correct-horse-battery\n").unwrap();
    let mut options = Options::default();
    options.settings.upload_auth = UploadAuth::Token(TokenFile::open(&tokens, TokenUse::Upload).unwrap());
    let app = TestApp::start_with(options).await;
    app.keep_secret("correct-horse-battery");
    let body = form(&[resources(b"jars"), owner(OWNER)]);
    let with = async |token: Option<&str>| {
        let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
        let request = app.client.post(app.url("/api/v0/resources/")).header("content-type", content_type);
        let request = token.iter().fold(request, |request, token| request.header("authorization", *token));
        request.body(body.clone()).send().await.unwrap()
    };
    for token in [None, Some("Bearer wrong-horse-battery"), Some("")] {
        let refused = problem(with(token).await).await;
        assert_eq!((refused.status, refused.code.as_str()), (401, "unauthorized"), "{token:?}");
        app.assert_nothing_kept().await;
    }
    for token in ["Bearer correct-horse-battery", "correct-horse-battery"] {
        let accepted = with(Some(token)).await;
        assert_eq!(accepted.status(), 200);
        let (id, secret) = ticket(&app, &accepted.bytes().await.unwrap());
        assert_eq!(get(&app, &id, &secret).await.status(), 200);
    }
}
