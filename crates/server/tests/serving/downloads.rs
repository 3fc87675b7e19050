//! Getting a bundle back: whole, in part, under conditions, or not at all.

use cloakroom_core::protocol::digest;
use cloakroom_core::protocol::v1::Ticket;
use cloakroom_testing::logs;
use cloakroom_testing::wire::{Answer, ask};
use reqwest::{Method, RequestBuilder, Response};
use sha2::{Digest as _, Sha256};

use crate::support::TestApp;
use crate::support::app::{Options, problem, walk};
use crate::support::faults::{Fault, Step};

const BUNDLE: &str = "0123456789";

async fn staged() -> (TestApp, Ticket) {
    let app = TestApp::start().await;
    let ticket = app.stage(BUNDLE).await;
    (app, ticket)
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

fn request(app: &TestApp, method: Method, ticket: &Ticket) -> RequestBuilder {
    let url = app.url(&format!("/api/v1/resources/{}", ticket.resource_id));
    app.client.request(method, url).bearer_auth(&ticket.resource_secret)
}

#[tokio::test]
async fn a_download_says_what_it_is() {
    let (app, ticket) = staged().await;
    let response = app.download(&ticket).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let etag = format!("\"{}\"", ticket.sha256);
    let repr_digest = digest::format(&Sha256::digest(BUNDLE).into());
    for (name, expected) in [
        ("content-type", "application/octet-stream"),
        ("content-length", "10"),
        ("accept-ranges", "bytes"),
        ("etag", &etag),
        ("repr-digest", &repr_digest),
        ("cache-control", "private, no-transform"),
        ("x-content-type-options", "nosniff"),
        ("content-disposition", "attachment; filename=\"deps.tgz\""),
        ("content-range", ""),
        ("content-encoding", ""),
        ("transfer-encoding", ""),
    ] {
        assert_eq!(header(&response, name), expected, "{name}");
    }
    assert_eq!(response.text().await.unwrap(), BUNDLE);
}

#[tokio::test]
async fn the_log_has_the_address_of_every_client_also_of_a_refused_one() {
    for (trusted, sender) in
        [(None, " peer=127.0.0.1"), (Some("127.0.0.0/8"), " peer=203.0.113.9 proxy=127.0.0.1")]
    {
        let mut options = Options::default();
        options.settings.trusted_proxies =
            trusted.map(|networks| networks.parse().unwrap()).unwrap_or_default();
        let app = TestApp::start_with(options).await;
        let ticket = app.stage(BUNDLE).await;
        let (v1, v0) = ("/api/v1/resources", "/api/v0/resources");
        let id = &ticket.resource_id;
        for (request, status) in [
            (app.download(&ticket), 200),
            (app.get(&format!("{v0}/{id}")).header("authorization", &ticket.resource_secret), 200),
            (app.get(&format!("{v1}/{id}")), 401),
            (app.get(&format!("{v0}/{id}")).bearer_auth("guessed-horse-battery"), 401),
            (app.get(&format!("{v1}/{id}")).bearer_auth("guessed-horse-battery"), 404),
            (app.get("/nowhere"), 404),
        ] {
            let request_id = format!("sent-{:016x}", rand::random::<u64>());
            let request =
                request.header("x-request-id", &request_id).header("x-forwarded-for", "203.0.113.9");
            assert_eq!(request.send().await.unwrap().status(), status);
            let lines = logs::lines_with(&request_id);
            let is_said = |line: &String| {
                line.contains(&format!("answered status={status} ")) && line.ends_with(sender)
            };
            assert!(lines.iter().any(is_said), "{status} {sender}: {lines:?}");
        }
        app.keep_secret("guessed-horse-battery");
    }
}

#[tokio::test]
async fn no_cache_on_the_way_keeps_an_answer_that_is_not_a_bundle() {
    let (app, ticket) = staged().await;
    let path = format!("/api/v1/resources/{}", ticket.resource_id);
    let metadata = format!("{path}/metadata");
    for (what, request, status) in [
        ("a ticket", app.put("", "more"), 201),
        ("metadata", app.get(&metadata).bearer_auth(&ticket.resource_secret), 200),
        ("another secret", app.get(&path).bearer_auth("another"), 404),
        ("no secret", app.get(&path), 401),
        ("no such path", app.get("/nowhere"), 404),
        ("another method", app.client.patch(app.url(&path)), 405),
        ("a range that is none", app.download(&ticket).header("range", "bytes=100-"), 416),
        ("what the server is", app.get("/api/v1"), 200),
        ("a probe", app.get("/healthz"), 200),
    ] {
        let response = request.send().await.unwrap();
        assert_eq!(
            (response.status().as_u16(), header(&response, "cache-control")),
            (status, "no-store"),
            "{what}"
        );
    }
}

#[tokio::test]
async fn a_head_has_the_headers_of_the_get_and_no_body() {
    let (app, ticket) = staged().await;
    let etag = format!("\"{}\"", ticket.sha256);
    // Range has no meaning for HEAD.
    for (name, value, status) in [
        ("x", "y", 200),
        ("if-none-match", etag.as_str(), 304),
        ("if-match", "\"a\"", 412),
        ("authorization", "Bearer x", 404),
    ] {
        let mut answers = Vec::new();
        for method in [Method::GET, Method::HEAD] {
            // The helper sets Authorization, and a second one would be added to it.
            let request = app.client.request(method, &ticket.url).header("x-request-id", "the-same");
            let request =
                if name == "authorization" { request } else { request.bearer_auth(&ticket.resource_secret) };
            let response = request.header(name, value).send().await.unwrap();
            assert_eq!(response.status(), status, "{name}");
            let mut headers = response.headers().clone();
            headers.remove("date");
            if status == 304 {
                // It may be left out, but it may not be that of the empty body (RFC 9110, section 8.6).
                assert!(headers.remove("content-length").is_none_or(|length| length == "10"));
            }
            answers.push((headers, response.bytes().await.unwrap()));
        }
        assert_eq!(answers[0].0, answers[1].0, "{name}");
        assert_eq!(answers[1].1.len(), 0, "{name}");
    }
    let ranged = request(&app, Method::HEAD, &ticket).header("range", "bytes=0-1").send().await.unwrap();
    assert_eq!((ranged.status().as_u16(), header(&ranged, "content-length")), (200, "10"));
}

#[tokio::test]
async fn only_an_answer_with_bytes_opens_the_bundle() {
    let (app, ticket) = staged().await;
    app.faults.set(Step::StoreOpen, Fault::FailBefore);
    let etag = format!("\"{}\"", ticket.sha256);
    for (method, name, value, status) in [
        (Method::HEAD, "x", "y", 200),
        (Method::GET, "if-none-match", etag.as_str(), 304),
        (Method::GET, "if-match", "\"a\"", 412),
        (Method::GET, "range", "bytes=10-", 416),
        (Method::GET, "x", "y", 500),
        (Method::GET, "range", "bytes=0-1", 500),
    ] {
        let answer = request(&app, method.clone(), &ticket).header(name, value).send().await.unwrap();
        assert_eq!(answer.status(), status, "{method} {name}");
    }
    assert!(!app.ready_row(&ticket.resource_id).await.is_used(), "an error is no use");
    app.faults.clear();
    std::fs::remove_file(app.data_dir().join(&app.files()[0])).unwrap();
    assert_eq!(request(&app, Method::HEAD, &ticket).send().await.unwrap().status(), 200);
    let lost = request(&app, Method::GET, &ticket).send().await.unwrap();
    assert_eq!(lost.status(), 500);
    assert_eq!(problem(lost).await.code.as_str(), "internal");
    assert!(!app.ready_row(&ticket.resource_id).await.is_used());
}

#[tokio::test]
async fn a_range_gets_its_part() {
    let (app, ticket) = staged().await;
    for (range, content_range, part) in [
        ("bytes=0-0", "bytes 0-0/10", "0"),
        ("bytes=2-4", "bytes 2-4/10", "234"),
        ("bytes=7-", "bytes 7-9/10", "789"),
        ("bytes=7-99999999999999999999999", "bytes 7-9/10", "789"),
        ("bytes=-3", "bytes 7-9/10", "789"),
        ("bytes=-99", "bytes 0-9/10", BUNDLE),
        ("bytes=0-9", "bytes 0-9/10", BUNDLE),
    ] {
        let response = app.download(&ticket).header("range", range).send().await.unwrap();
        assert_eq!(
            (response.status().as_u16(), header(&response, "content-range")),
            (206, content_range),
            "{range}"
        );
        assert_eq!(header(&response, "content-length"), part.len().to_string(), "{range}");
        assert_eq!(header(&response, "etag"), format!("\"{}\"", ticket.sha256), "{range}");
        // Of the whole bundle, not of the part (RFC 9530, section 3.1).
        let whole = digest::format(&Sha256::digest(BUNDLE).into());
        assert_eq!(header(&response, "repr-digest"), whole, "{range}");
        assert_eq!(header(&response, "content-digest"), "", "{range}");
        assert_eq!(response.text().await.unwrap(), part, "{range}");
    }
}

#[tokio::test]
async fn a_range_of_no_bytes_is_refused_with_the_true_length() {
    let (app, ticket) = staged().await;
    for range in ["bytes=10-", "bytes=10-12", "bytes=99999999999999999999-", "bytes=-0"] {
        let response = app.download(&ticket).header("range", range).send().await.unwrap();
        assert_eq!(header(&response, "content-range"), "bytes */10", "{range}");
        let refused = problem(response).await;
        assert_eq!((refused.status, refused.code.as_str()), (416, "range-not-satisfiable"), "{range}");
    }
    assert!(!app.ready_row(&ticket.resource_id).await.is_used());
}

#[tokio::test]
async fn a_range_that_is_none_is_ignored() {
    let (app, ticket) = staged().await;
    for range in
        ["bytes=0-1,4-5", "bytes=4-2", "lines=0-1", "bytes", "bytes=a-b", "bytes=-", "bytes=1-2-3", ""]
    {
        let response = app.download(&ticket).header("range", range).send().await.unwrap();
        assert_eq!((response.status().as_u16(), header(&response, "content-range")), (200, ""), "{range}");
        assert_eq!(response.text().await.unwrap(), BUNDLE, "{range}");
    }
}

#[tokio::test]
async fn an_if_range_holds_only_for_the_very_same_bundle() {
    let (app, ticket) = staged().await;
    let etag = format!("\"{}\"", ticket.sha256);
    let weak = format!("W/{etag}");
    for (if_range, status, body) in [
        (etag.as_str(), 206, "789"),
        (&weak, 200, BUNDLE),
        ("\"other\"", 200, BUNDLE),
        ("Thu, 01 Jan 2026 12:00:00 GMT", 200, BUNDLE),
    ] {
        let request = app.download(&ticket).header("range", "bytes=7-").header("if-range", if_range);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), status, "{if_range}");
        assert_eq!(response.text().await.unwrap(), body, "{if_range}");
    }
}

#[tokio::test]
async fn a_client_that_has_the_bundle_is_told_so() {
    let (app, ticket) = staged().await;
    let etag = format!("\"{}\"", ticket.sha256);
    for (tags, status) in [
        (etag.clone(), 304),
        (format!("W/{etag}"), 304),
        (format!("\"other\", {etag}"), 304),
        ("*".to_owned(), 304),
        ("\"other\"".to_owned(), 200),
    ] {
        for method in [Method::GET, Method::HEAD] {
            let request = request(&app, method.clone(), &ticket).header("if-none-match", &tags);
            let response = request.send().await.unwrap();
            assert_eq!(response.status(), status, "{method} {tags}");
            assert_eq!(header(&response, "etag"), etag);
            assert_eq!(header(&response, "cache-control"), "private, no-transform");
            let body = response.text().await.unwrap();
            assert_eq!(body, if status == 200 && method == Method::GET { BUNDLE } else { "" });
        }
    }
}

#[tokio::test]
async fn a_client_that_means_another_bundle_is_told_so() {
    let (app, ticket) = staged().await;
    let etag = format!("\"{}\"", ticket.sha256);
    for (tags, status) in [
        (etag.clone(), 200),
        ("*".to_owned(), 200),
        (format!("W/{etag}"), 412),
        ("\"other\"".to_owned(), 412),
    ] {
        let response = app.download(&ticket).header("if-match", &tags).send().await.unwrap();
        assert_eq!(response.status(), status, "{tags}");
        if status == 412 {
            assert_eq!(problem(response).await.code.as_str(), "precondition-failed");
        }
    }
}

/// Everything that needs a ticket.
fn with_id(app: &TestApp, id: &str) -> [RequestBuilder; 4] {
    let path = format!("/api/v1/resources/{id}");
    [
        app.client.get(app.url(&path)),
        app.client.head(app.url(&path)),
        app.client.delete(app.url(&path)),
        app.client.get(app.url(&format!("{path}/metadata"))),
    ]
}

#[tokio::test]
async fn a_wrong_secret_and_an_unknown_id_get_the_same_answer() {
    let (app, ticket) = staged().await;
    let unknown = "4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1";
    for index in 0..4 {
        let mut answers = Vec::new();
        for (id, secret) in [
            (ticket.resource_id.as_str(), "wrong"),
            (&ticket.resource_id, &ticket.resource_secret[1..]),
            (unknown, &ticket.resource_secret),
            ("none", "wrong"),
        ] {
            let [request] =
                with_id(&app, id).into_iter().skip(index).take(1).collect::<Vec<_>>().try_into().unwrap();
            let response =
                request.header("x-request-id", "the-same").bearer_auth(secret).send().await.unwrap();
            assert_eq!(response.status(), 404);
            let mut headers = response.headers().clone();
            headers.remove("date");
            answers.push((headers, response.text().await.unwrap()));
        }
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
        assert!(index == 1 || answers[0].1.contains("\"code\":\"not-found\""), "{answers:?}");
    }
    assert_eq!(app.download(&ticket).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_ticket_opens_its_own_resource_and_no_other_one() {
    let (app, ticket) = staged().await;
    let other = app.stage("another bundle").await;
    for request in with_id(&app, &other.resource_id) {
        let response = request.bearer_auth(&ticket.resource_secret).send().await.unwrap();
        assert_eq!(response.status(), 404);
    }
    assert_eq!(app.download(&other).send().await.unwrap().text().await.unwrap(), "another bundle");
}

#[tokio::test]
async fn the_data_directory_has_no_secret_of_a_ticket() {
    let (app, ticket) = staged().await;
    let secret = ticket.resource_secret.as_bytes();
    let mut files = Vec::new();
    walk(app.data_dir(), &mut files);
    assert!(files.len() > 2, "{files:?}");
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        assert!(!bytes.windows(secret.len()).any(|part| part == secret), "{}", file.display());
    }
}

#[tokio::test]
async fn without_a_ticket_nothing_is_said_but_how_to_show_one() {
    let (app, ticket) = staged().await;
    for authorization in [None, Some(""), Some("Bearer"), Some("bearer ")] {
        for id in [ticket.resource_id.as_str(), "4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1", "none"] {
            for request in with_id(&app, id) {
                let request = authorization
                    .iter()
                    .fold(request, |request, value| request.header("authorization", *value));
                let response = request.send().await.unwrap();
                assert_eq!(response.status(), 401, "{authorization:?}");
                assert_eq!(header(&response, "www-authenticate"), "Bearer realm=\"cloakroom\"");
                assert_eq!(header(&response, "content-type"), "application/problem+json");
            }
        }
    }
    let refused =
        problem(app.get(&format!("/api/v1/resources/{}", ticket.resource_id)).send().await.unwrap()).await;
    assert_eq!(refused.code.as_str(), "unauthorized");
    assert!(refused.detail.contains("Authorization: Bearer SECRET"), "{}", refused.detail);
    assert_eq!(app.files().len(), 1);
}

#[tokio::test]
async fn a_secret_is_taken_bare_or_as_a_bearer_in_any_case() {
    let (app, ticket) = staged().await;
    let secret = &ticket.resource_secret;
    for (authorization, status) in [
        (secret.clone(), 200),
        (format!("Bearer {secret}"), 200),
        (format!("bearer {secret}"), 200),
        (format!("BEARER   {secret}"), 200),
        (format!("Basic {secret}"), 404),
        (format!("Bearer {secret}x"), 404),
        (format!("Bearer {}", secret.to_uppercase()), 404),
    ] {
        let request = app.client.get(&ticket.url).header("authorization", authorization);
        assert_eq!(request.send().await.unwrap().status(), status);
    }
}

async fn on_the_wire(app: &TestApp, ticket: &Ticket, method: &str, path: &str) -> Answer {
    let secret = &ticket.resource_secret;
    let request = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {secret}\r\n\r\n");
    ask(app.address, request).await
}

#[tokio::test]
async fn what_is_no_id_opens_nothing() {
    let (app, ticket) = staged().await;
    let id = &ticket.resource_id;
    let shard = &id[..2];
    for no_id in [
        "..".to_owned(),
        ".".to_owned(),
        "%2e%2e".to_owned(),
        "%2e%2e%2f%2e%2e%2fetc%2fpasswd".to_owned(),
        "..%5c..%5cledger.db".to_owned(),
        format!("..%2f..%2fbundles%2f{shard}%2f{id}"),
        "%00".to_owned(),
        format!("{id}%00"),
        format!("{id}%20"),
        format!("{id}%0a"),
        "%ff%fe".to_owned(),
        "a".repeat(10_000),
        "%61".repeat(3_000),
        id.to_uppercase(),
        id.replace('-', ""),
        format!("%7B{id}%7D"),
        format!("urn:uuid:{id}"),
    ] {
        for (method, suffix) in [("GET", ""), ("DELETE", ""), ("GET", "/metadata")] {
            let path = format!("/api/v1/resources/{no_id}{suffix}");
            let answer = on_the_wire(&app, &ticket, method, &path).await;
            let shown: String = path.chars().take(80).collect();
            assert_eq!(answer.status, 404, "{method} {shown}: {}", answer.text());
            assert!(answer.text().contains("\"code\":\"not-found\""), "{method} {shown}: {}", answer.text());
            assert!(answer.body.len() < 1000);
        }
    }
    assert_eq!(app.files().len(), 1);
}

#[tokio::test]
async fn a_path_that_climbs_leads_nowhere() {
    let (app, ticket) = staged().await;
    let id = &ticket.resource_id;
    for path in [
        "/api/v1/resources/../../etc/passwd".to_owned(),
        "/api/v1/resources/../../../../../../etc/passwd".to_owned(),
        format!("/api/v1/resources/../resources/{id}"),
        format!("/api/v1//resources/{id}"),
        format!("//api/v1/resources/{id}"),
        format!("/api/v1/resources/{id}/"),
        format!("/API/v1/resources/{id}"),
    ] {
        let answer = on_the_wire(&app, &ticket, "GET", &path).await;
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
        assert!(answer.text().contains("\"code\":\"no-such-path\""), "{path}: {}", answer.text());
        assert!(!answer.text().contains("root:"));
    }
}
