//! What is refused, how that is said, and that it leaves nothing behind.

use cloakroom_core::protocol::problem::Problem;
use cloakroom_testing::wait::until;
use cloakroom_testing::wire::{Wire, ask, upload_head};
use reqwest::RequestBuilder;
use tokio::io::AsyncWriteExt as _;

use crate::support::TestApp;
use crate::support::app::{Options, problem};

async fn refused(app: &TestApp, what: &str, request: RequestBuilder, status: u16, code: &str) -> Problem {
    let refused = problem(request.send().await.unwrap()).await;
    assert_eq!((refused.status, refused.code.as_str()), (status, code), "{what}: {}", refused.detail);
    let shown: String = refused.detail.chars().take(2).collect();
    assert!(shown.chars().all(|c| !c.is_uppercase() || c == 'C'), "{what}: {}", refused.detail);
    assert!(!refused.detail.ends_with('.') && refused.detail.len() < 600, "{what}: {}", refused.detail);
    app.assert_nothing_kept().await;
    refused
}

#[tokio::test]
async fn an_owner_that_is_missing_or_malformed_is_refused_by_name() {
    let app = TestApp::start().await;
    let long = "a".repeat(64);
    let many: String = (0..65).map(|number| format!("&label=l{number}=x")).collect();
    for (query, says) in [
        ("", "namespace is missing"),
        ("label=app=x", "namespace is missing"),
        ("namespace=&label=app=x", "namespace is missing"),
        ("namespace=demo", "label is missing"),
        ("namespace=De%20mo&label=app=x", "namespace “De mo”"),
        ("namespace=-demo&label=app=x", "namespace “-demo”"),
        (&format!("namespace={long}&label=app=x"), "namespace “aaa"),
        ("namespace=demo%00&label=app=x", "namespace “demo\u{fffd}”"),
        ("namespace=demo&label=app", "label “app” has no value"),
        ("namespace=demo&label=", "label “” has no value"),
        ("namespace=demo&label==x", "label key “”"),
        ("namespace=demo&label=a%20b=x", "label key “a b”"),
        ("namespace=demo&label=a/b/c=x", "label key “a/b/c”"),
        ("namespace=demo&label=app=x%20y", "value “x y” of label app"),
        ("namespace=demo&label=app=a=b", "value “a=b” of label app"),
        (&format!("namespace=demo&label=app={long}"), "value “aaa"),
        ("namespace=demo&label=app=x&label=app=y", "label app is given twice"),
        (&format!("namespace=demo{many}"), "65 labels are too many"),
        ("namespace=demo&name=", "name “”"),
        ("namespace=demo&name=Driver", "name “Driver”"),
        ("namespace=demo&name=a..b", "name “a..b”"),
        ("namespace=demo&label=app=x&kind=", "kind “”"),
        ("namespace=demo&label=app=x&kind=pod", "kind “pod”"),
        (
            "namespace=demo&label=app=x&kind=Banana",
            "kind “Banana” is not accepted here: this server accepts Pod,",
        ),
        ("namespace=demo&label=app=x&kind=Pod.v1", "kind “Pod.v1” is not accepted"),
        ("namespace=demo&label=%ff=x", "label key"),
    ] {
        let request = app.client.put(app.url(&format!("/api/v1/resources/deps.tgz?{query}"))).body("jars");
        let refused = refused(&app, query, request, 400, "invalid-owner").await;
        assert!(refused.detail.contains(says), "{query}: {}", refused.detail);
    }
}

#[tokio::test]
async fn a_parameter_that_is_wrong_is_refused_by_name() {
    let app = TestApp::start().await;
    for (query, says) in [
        ("&ttl=abc", "ttl is not usable: `abc`"),
        ("&ttl=", "ttl is not usable"),
        ("&ttl=-1s", "it is negative"),
        ("&ttl=1.5h", "it has a fraction"),
        ("&ttl=30", "it has no unit"),
        ("&ttl=0s", "ttl is zero"),
        ("&ttl=1us", "ttl is zero"),
        ("&ttl=99999999999d", "it is more than 106751d"),
        ("&ttl=1h&ttl=1h", "ttl is given more than once"),
        ("&unusedTimeout=0ms", "unusedTimeout is zero"),
        ("&unusedTimeout=8d", "unusedTimeout may be 7d at most on this server (--max-unused)"),
        ("&unusedTimeout=1h&unusedTimeout=2h", "unusedTimeout is given more than once"),
        ("&namespace=other", "namespace is given more than once"),
        ("&kind=Pod&kind=Pod", "kind is given more than once"),
        ("&name=a&name=b", "name is given more than once"),
        (
            "&colour=blue",
            "“colour” is unknown: an upload takes namespace, label, name, kind, ttl, unusedTimeout",
        ),
        ("&TTL=1h", "“TTL” is unknown"),
        ("&unusedtimeout=1h", "“unusedtimeout” is unknown"),
        ("&=x", "“” is unknown"),
    ] {
        let refused = refused(&app, query, app.put(query, "jars"), 400, "invalid-parameter").await;
        assert!(refused.detail.contains(says), "{query}: {}", refused.detail);
    }
    let nasty = "a%E2%80%AEb%E2%80%A8c%E2%80%8Bd";
    for query in [format!("&{nasty}=x"), format!("&ttl={nasty}")] {
        let refused = refused(&app, &query, app.put(&query, "jars"), 400, "invalid-parameter").await;
        assert!(refused.detail.contains("a\u{fffd}b\u{fffd}c\u{fffd}d"), "{:?}", refused.detail);
    }
    let long = "a".repeat(256);
    for name in ["..", ".", "%2e%2e", "a%2Fb", "a%5Cb", "a%00", "a%0D%0Ab", "%ff", "%7f", &long] {
        let path = format!("PUT /api/v1/resources/{name}?namespace=demo&label=app=x HTTP/1.1");
        let answer = ask(app.address, format!("{path}\r\nHost: x\r\nContent-Length: 4\r\n\r\njars")).await;
        assert_eq!(answer.status, 400, "{name}: {}", answer.text());
        assert!(
            answer.text().contains("the file name in the URL is not usable"),
            "{name}: {}",
            answer.text()
        );
        app.assert_nothing_kept().await;
    }
}

#[tokio::test]
async fn a_header_that_is_wrong_is_refused_by_name() {
    let app = TestApp::start().await;
    for (name, value, status, code, says) in [
        ("content-range", "bytes 0-3/10", 400, "invalid-header", "Content-Range is not possible"),
        (
            "content-digest",
            "sha-256=abc",
            400,
            "invalid-header",
            "content-digest: the digest header is malformed",
        ),
        ("content-digest", "", 400, "invalid-header", "content-digest: the digest header is malformed"),
        ("content-digest", "sha-256=:AAAA:", 400, "invalid-header", "44 characters of base64"),
        ("repr-digest", "md5=:AAAA:", 400, "invalid-header", "repr-digest: the digest header has no sha-256"),
        (
            "content-type",
            "multipart/form-data; boundary=x",
            415,
            "unsupported-media-type",
            "use curl -T FILE",
        ),
        ("content-type", "Multipart/Form-Data", 415, "unsupported-media-type", "/api/v0/resources"),
    ] {
        let refused = refused(&app, name, app.put("", "jars").header(name, value), status, code).await;
        assert!(refused.detail.contains(says), "{name}: {value}: {}", refused.detail);
    }
}

#[tokio::test]
async fn a_method_that_a_route_does_not_have_is_refused_with_those_that_it_has() {
    let app = TestApp::start().await;
    let id = "4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1";
    for (path, allowed) in [
        ("/api/v1/resources".to_owned(), "POST PUT"),
        ("/api/v1/resources/".to_owned(), "POST PUT"),
        (format!("/api/v1/resources/{id}"), "DELETE GET HEAD PUT"),
        (format!("/api/v1/resources/{id}/metadata"), "GET HEAD"),
        ("/api/v0/resources".to_owned(), "POST"),
        ("/api/v0/resources/".to_owned(), "POST"),
        (format!("/api/v0/resources/{id}"), "GET HEAD"),
        ("/api/v0/ping".to_owned(), "GET HEAD"),
        ("/api/ping".to_owned(), "GET HEAD"),
        ("/api/openapi.json".to_owned(), "GET HEAD"),
        ("/".to_owned(), "GET HEAD"),
        ("/healthz".to_owned(), "GET HEAD"),
        ("/readyz".to_owned(), "GET HEAD"),
    ] {
        for method in ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"] {
            if allowed.split(' ').any(|name| name == method) {
                continue;
            }
            let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
            let response = app.client.request(method.clone(), app.url(&path)).send().await.unwrap();
            assert_eq!(response.status(), 405, "{method} {path}");
            let mut allow: Vec<&str> =
                response.headers()["allow"].to_str().unwrap().split(',').map(str::trim).collect();
            allow.sort_unstable();
            assert_eq!(allow.join(" "), allowed, "{method} {path}");
            assert_eq!(problem(response).await.code.as_str(), "method-not-allowed", "{method} {path}");
        }
    }
    app.assert_nothing_kept().await;
}

#[tokio::test]
async fn a_path_that_is_none_is_refused_with_those_that_are() {
    let app = TestApp::start().await;
    for path in [
        "/index.html",
        "/api",
        "/api/v1/",
        "/api/v2/resources",
        "/api/v1/resource",
        "/metrics/x",
        "/api/v1/resources/a/b",
        "/healthz/",
    ] {
        for method in [reqwest::Method::GET, reqwest::Method::POST] {
            let request = app.client.request(method, app.url(path)).body("jars");
            let refused = refused(&app, path, request, 404, "no-such-path").await;
            assert!(refused.detail.contains("/api/v1/resources"), "{}", refused.detail);
        }
    }
}

/// A server that takes bundles of 1 MiB.
async fn small() -> TestApp {
    let mut options = Options::default();
    options.limits.capacity.max_resource_size = 1 << 20;
    TestApp::start_with(options).await
}

#[tokio::test]
async fn what_will_be_refused_is_refused_before_its_body_is_asked_for() {
    let app = small().await;
    let waits = "Expect: 100-continue\r\n";
    let length = "Content-Length: 1048577\r\n";
    let good = "namespace=demo&label=app=x";
    for (query, headers, status) in [
        (good, length.to_owned(), 413),
        (good, "Content-Length: 18446744073709551613\r\n".to_owned(), 413),
        ("label=app=x", "Content-Length: 5\r\n".to_owned(), 400),
        ("label=app=x", "Transfer-Encoding: chunked\r\n".to_owned(), 400),
        (good, "Content-Length: 5\r\nContent-Type: multipart/form-data\r\n".to_owned(), 415),
        (good, "Content-Length: 5\r\nContent-Digest: x\r\n".to_owned(), 400),
    ] {
        let head = format!("PUT /api/v1/resources/a?{query} HTTP/1.1\r\nHost: x\r\n{waits}{headers}\r\n");
        let mut wire = Wire::connect(app.address).await;
        wire.send(head).await;
        // The first answer is the last: no `100 Continue` comes before it, and the connection ends.
        let answer = wire.answer().await;
        assert_eq!(answer.status, status, "{headers}");
        assert_eq!(wire.rest().await, b"", "{headers}");
        app.assert_nothing_kept().await;
    }
    let mut wire = Wire::connect(app.address).await;
    wire.send(upload_head("Expect: 100-continue\r\nContent-Length: 4\r\n")).await;
    assert_eq!(wire.answer().await.status, 100);
    wire.send("jars").await;
    assert_eq!(wire.answer().await.status, 201);
}

#[tokio::test]
async fn a_body_without_a_length_is_refused_when_it_passes_the_limit() {
    let app = small().await;
    for piece in [1 << 20, 64 << 10] {
        let mut wire = Wire::connect(app.address).await;
        wire.send(upload_head("Transfer-Encoding: chunked\r\n")).await;
        for _ in 0..(2 << 20) / piece {
            wire.send([format!("{piece:x}\r\n").as_bytes(), &vec![7; piece], b"\r\n"].concat()).await;
        }
        let answer = wire.answer().await;
        assert_eq!(answer.status, 413, "{}", answer.text());
        assert!(answer.text().contains("at most 1 MiB (--max-resource-size)"), "{}", answer.text());
        app.assert_nothing_kept().await;
    }
    app.ticket(app.put("", vec![7; 1 << 20]).send().await.unwrap()).await;
}

/// A proxy in front that goes by the length would take what follows for another client's request.
#[tokio::test]
async fn a_length_beside_chunked_is_left_out_and_no_second_request_is_served() {
    let app = TestApp::start().await;
    let both = ["Content-Length: 4\r\n", "Transfer-Encoding: chunked\r\n"];
    for framing in [both.concat(), [both[1], both[0]].concat()] {
        let mut wire = Wire::connect(app.address).await;
        let body = "4\r\njars\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
        wire.send(format!("{}{body}", upload_head(&framing))).await;
        let said = String::from_utf8(wire.rest().await).unwrap();
        assert!(said.starts_with("HTTP/1.1 201 "), "{framing}{said}");
        assert!(said.contains("\r\nconnection: close\r\n"), "{framing}{said}");
        assert_eq!(said.matches("HTTP/1.1 ").count(), 1, "{framing}{said}");
    }
}

#[tokio::test]
async fn a_body_that_ends_early_leaves_nothing() {
    let app = TestApp::start().await;
    for (framing, sent) in [
        ("Content-Length: 500000\r\n", vec![7; 300_000]),
        ("Transfer-Encoding: chunked\r\n", b"5\r\njars".to_vec()),
        ("Transfer-Encoding: chunked\r\n", b"4\r\njars\r\n".to_vec()),
        ("Transfer-Encoding: chunked\r\n", b"4\r\njars\r\nxyz\r\n".to_vec()),
        ("Transfer-Encoding: chunked\r\n", b"fffffffffffffffff\r\njars\r\n".to_vec()),
    ] {
        // Half closed: the client still listens.
        let mut wire = Wire::connect(app.address).await;
        wire.send(upload_head(framing)).await;
        wire.send(&sent).await;
        wire.0.shutdown().await.unwrap();
        let said = String::from_utf8(wire.rest().await).unwrap();
        assert!(
            said.starts_with("HTTP/1.1 400 ") && said.contains("\"code\":\"incomplete-body\""),
            "{framing}{said}"
        );
        app.assert_nothing_kept().await;

        let mut wire = Wire::connect(app.address).await;
        wire.send(upload_head(framing)).await;
        wire.send(&sent[..sent.len().min(4)]).await;
        until("the upload has begun", async || !app.files().is_empty()).await;
        drop(wire);
        until("nothing is left", async || app.files().is_empty() && app.rows().await.is_empty()).await;
    }
}

// Invariant: an ambiguous request is refused before anything is done.
#[tokio::test]
async fn an_ambiguous_request_is_refused_before_anything_is_done() {
    let app = TestApp::start().await;
    let line = "PUT /api/v1/resources/a?namespace=demo&label=app=x HTTP/1.1\r\n";
    let length = "Content-Length: 4\r\n\r\njars";
    let chunks = "\r\n4\r\njars\r\n0\r\n\r\n";
    for (request, status, code) in [
        (format!("{line}{length}"), 400, "invalid-header"),
        (format!("{line}Host: x\r\nHost: x\r\n{length}"), 400, "invalid-header"),
        (format!("{line}Host: x\r\nHost: y\r\n{length}"), 400, "invalid-header"),
        (
            format!("{line}Host: x\r\nTransfer-Encoding: gzip, chunked\r\n{chunks}"),
            501,
            "unsupported-transfer-coding",
        ),
        (
            format!("{line}Host: x\r\nTransfer-Encoding: GZIP\r\nTransfer-Encoding: chunked\r\n{chunks}"),
            501,
            "unsupported-transfer-coding",
        ),
        (format!("{line}Host: x\r\nTransfer-Encoding: chunked, chunked\r\n{chunks}"), 400, "invalid-header"),
    ] {
        let mut wire = Wire::connect(app.address).await;
        wire.send(&request).await;
        let answer = wire.answer().await;
        assert_eq!(answer.status, status, "{request}{}", answer.text());
        assert!(answer.text().contains(code), "{request}{}", answer.text());
        assert_eq!(wire.rest().await, b"", "the connection ends: {request}");
        app.assert_nothing_kept().await;
    }
    // HTTP/1.0 has no Host, and is spoken by health checks of old balancers.
    let mut wire = Wire::connect(app.address).await;
    wire.send("GET /healthz HTTP/1.0\r\n\r\n").await;
    assert_eq!(wire.answer().await.status, 200);
}

#[tokio::test]
async fn a_length_that_is_none_is_refused_and_the_connection_closed() {
    let app = TestApp::start().await;
    for lengths in [
        "Content-Length: -1\r\n",
        "Content-Length: +4\r\n",
        "Content-Length: 0x4\r\n",
        "Content-Length: 4 4\r\n",
        "Content-Length: four\r\n",
        "Content-Length: \r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Content-Length: 4\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: chunked, gzip\r\n",
    ] {
        let mut wire = Wire::connect(app.address).await;
        wire.send(format!("{}jars", upload_head(lengths))).await;
        let said = String::from_utf8(wire.rest().await).unwrap();
        assert!(said.starts_with("HTTP/1.1 400 "), "{lengths}{said}");
        app.assert_nothing_kept().await;
    }
}
