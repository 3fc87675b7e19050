//! URLs with a read key, for programs that can send no header.

use std::time::Duration;

use cloakroom_core::clock::Clock as _;
use cloakroom_core::protocol::v1::{KeyedUrl, Ticket, keys_path, metadata_path, resource_path};
use reqwest::{RequestBuilder, Response, StatusCode};

use crate::support::TestApp;
use crate::support::app::{Options, problem};

const BUNDLE: &str = "0123456789";
const HOUR: Duration = Duration::from_hours(1);

fn keys(app: &TestApp, ticket: &Ticket) -> RequestBuilder {
    let url = app.url(&keys_path(&ticket.resource_id));
    app.client.post(url).bearer_auth(&ticket.resource_secret)
}

async fn json<T: serde::de::DeserializeOwned>(answer: Response) -> T {
    serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap()
}

/// A new key: its URL, and the key alone.
async fn new_key(app: &TestApp, ticket: &Ticket, body: &'static str) -> (KeyedUrl, String) {
    let answer = keys(app, ticket).body(body).send().await.unwrap();
    assert_eq!(answer.status(), 201);
    let made: KeyedUrl = json(answer).await;
    let (path, key) = made.url.split_once("?token=").unwrap();
    assert_eq!(path, app.url(&resource_path(&ticket.resource_id)));
    let key = key.to_owned();
    app.keep_secret(&key);
    (made, key)
}

async fn get(app: &TestApp, path_and_query: &str) -> Response {
    app.get(path_and_query).send().await.unwrap()
}

async fn status(app: &TestApp, path_and_query: &str) -> StatusCode {
    get(app, path_and_query).await.status()
}

#[tokio::test]
async fn a_key_downloads_its_resource_under_any_name() {
    let app = TestApp::start().await;
    let ticket = app.stage(BUNDLE).await;
    let (made, key) = new_key(&app, &ticket, "").await;
    assert_eq!(made.expires_at, app.clock.now().checked_add(24 * HOUR).unwrap());
    let path = resource_path(&ticket.resource_id);
    for name in [
        "",
        "/content/deps.tar.gz",
        "/content/a%2Fb",
        "/content/%2e%2e%2fx",
        "/content/%00",
        "/content/%C3%A9",
    ] {
        let answer = get(&app, &format!("{path}{name}?token={key}")).await;
        assert_eq!(answer.status(), 200, "{name}");
        assert_eq!(answer.text().await.unwrap(), BUNDLE, "{name}");
    }
    let named = format!("{path}/content/x.zip?a=b&token={key}");
    let part = app.get(&named).header("range", "bytes=2-4").send().await.unwrap();
    assert_eq!((part.status().as_u16(), part.text().await.unwrap().as_str()), (206, "234"));
    let head = app.client.head(app.url(&named)).send().await.unwrap();
    assert_eq!((head.status().as_u16(), head.headers()["content-length"].to_str().unwrap()), (200, "10"));
    // Ray sends one token to every address of a cluster.
    let with_token = app.get(&named).bearer_auth("a-token-for-other-hosts").send().await.unwrap();
    assert_eq!(with_token.status(), 200);
    // The ticket opens each of them, too.
    let by_ticket = app.get(&format!("{path}/content/x.zip")).bearer_auth(&ticket.resource_secret);
    assert_eq!(by_ticket.send().await.unwrap().status(), 200);
    for nowhere in ["/content", "/content/", "/content/a/b"] {
        assert_eq!(status(&app, &format!("{path}{nowhere}?token={key}")).await, 404, "{nowhere}");
    }
    let metadata = app.get(&metadata_path(&ticket.resource_id)).bearer_auth(&ticket.resource_secret);
    let metadata: serde_json::Value = json(metadata.send().await.unwrap()).await;
    assert!(metadata["firstUsedAt"].is_string(), "{metadata}");
}

#[tokio::test]
async fn a_key_opens_nothing_else() {
    let app = TestApp::start().await;
    let (ticket, other) = (app.stage(BUNDLE).await, app.stage(BUNDLE).await);
    let (_, key) = new_key(&app, &ticket, "").await;
    let path = resource_path(&ticket.resource_id);
    let cut = &key[..key.len() - 1];
    for wrong in [
        format!("{}?token={key}", resource_path(&other.resource_id)),
        format!("{path}?token={cut}"),
        format!("{path}?token="),
        format!("{path}?token=%ff"),
        format!("{path}?token={}", ticket.resource_secret),
        format!("/api/v1/resources/nothing?token={key}"),
    ] {
        let answer = problem(get(&app, &wrong).await).await;
        assert_eq!((answer.status, answer.code.as_str()), (404, "not-found"), "{wrong}");
    }
    let twice = problem(get(&app, &format!("{path}?token={key}&token={key}")).await).await;
    assert_eq!((twice.status, twice.code.as_str()), (400, "invalid-parameter"));
    for request in [
        app.get(&format!("{path}/metadata?token={key}")),
        app.client.delete(app.url(&format!("{path}?token={key}"))),
        app.client.post(app.url(&format!("{path}/keys?token={key}"))),
        app.client.delete(app.url(&format!("{path}/keys?token={key}"))),
        app.get(&format!("/api/v0/resources/{}?token={key}", ticket.resource_id)),
    ] {
        assert_eq!(request.send().await.unwrap().status(), 401);
    }
    let as_secret = app.get(&path).bearer_auth(&key).send().await.unwrap();
    assert_eq!(as_secret.status(), 404);
}

#[tokio::test]
async fn a_key_ends_after_its_time_when_all_are_ended_and_with_its_resource() {
    let app = TestApp::start().await;
    let ticket = app.ticket(app.put("&unusedTimeout=2d", BUNDLE).send().await.unwrap()).await;
    let path = resource_path(&ticket.resource_id);
    let (made, short) = new_key(&app, &ticket, r#"{"ttl":"2h"}"#).await;
    assert_eq!(made.expires_at, app.clock.now().checked_add(2 * HOUR).unwrap());
    let (_, long) = new_key(&app, &ticket, r#"{"ttl":"1d"}"#).await;
    let by = |key: &str| format!("{path}?token={key}");
    app.clock.advance(2 * HOUR - Duration::from_millis(1));
    assert_eq!(status(&app, &by(&short)).await, 200);
    app.clock.advance(Duration::from_millis(1));
    assert_eq!(
        (status(&app, &by(&short)).await, status(&app, &by(&long)).await),
        (404.try_into().unwrap(), 200.try_into().unwrap())
    );
    let end = || {
        let keys = app.client.delete(app.url(&keys_path(&ticket.resource_id)));
        keys.bearer_auth(&ticket.resource_secret).send()
    };
    for _ in 0..2 {
        assert_eq!(end().await.unwrap().status(), 204);
        assert_eq!(status(&app, &by(&long)).await, 404);
    }
    let (_, last) = new_key(&app, &ticket, "").await;
    let released = app.client.delete(app.url(&path)).bearer_auth(&ticket.resource_secret);
    assert_eq!(released.send().await.unwrap().status(), 204);
    assert_eq!(status(&app, &by(&last)).await, 404);
    for request in [keys(&app, &ticket).send().await, end().await] {
        assert_eq!(request.unwrap().status(), 410);
    }
}

#[tokio::test]
async fn sixteen_keys_are_all_and_one_that_ended_makes_room() {
    let app = TestApp::start().await;
    let ticket = app.ticket(app.put("&unusedTimeout=2d", BUNDLE).send().await.unwrap()).await;
    let (_, first) = new_key(&app, &ticket, r#"{"ttl":"2h"}"#).await;
    for _ in 1..16 {
        new_key(&app, &ticket, r#"{"ttl":"1h"}"#).await;
    }
    let refused = problem(keys(&app, &ticket).send().await.unwrap()).await;
    assert_eq!((refused.status, refused.code.as_str()), (409, "too-many-keys"));
    app.clock.advance(HOUR);
    new_key(&app, &ticket, "").await;
    assert_eq!(status(&app, &format!("{}?token={first}", resource_path(&ticket.resource_id))).await, 200);
}

#[tokio::test]
async fn terms_that_cannot_be_are_refused_and_not_repeated() {
    let mut options = Options::default();
    options.settings.lifetimes.max_key_ttl = HOUR;
    let app = TestApp::start_with(options).await;
    let ticket = app.stage(BUNDLE).await;
    for (body, said) in [
        (r#"{"ttl":"61m"}"#, "1h at most"),
        (r#"{"ttl":"0s"}"#, "shorter than a second"),
        (r#"{"ttl":"long"}"#, "ttl is not usable"),
        (r#"{"ttl":5}"#, "as the API describes it"),
        (r#"["1h"]"#, "as the API describes it"),
        (r#"{"for":"hunter2-hunter2"}"#, "as the API describes it"),
        ("hunter2-hunter2", "as the API describes it"),
    ] {
        let refused = problem(keys(&app, &ticket).body(body).send().await.unwrap()).await;
        assert_eq!((refused.status, refused.code.as_str()), (400, "invalid-parameter"), "{body}");
        assert!(refused.detail.contains(said) && !refused.detail.contains("hunter2"), "{}", refused.detail);
    }
    let with_query = app.client.post(app.url(&format!("{}?ttl=1m", keys_path(&ticket.resource_id))));
    let refused = problem(with_query.bearer_auth(&ticket.resource_secret).send().await.unwrap()).await;
    assert_eq!((refused.status, refused.code.as_str()), (400, "invalid-parameter"));
    let (made, _) = new_key(&app, &ticket, "").await;
    assert_eq!(made.expires_at, app.clock.now().checked_add(HOUR).unwrap(), "a day would be too long");
    for (secret, expected) in [(None, 401), (Some("another-horse"), 404)] {
        let request = app.client.post(app.url(&keys_path(&ticket.resource_id)));
        let request = secret.into_iter().fold(request, |request, secret| request.bearer_auth(secret));
        assert_eq!(request.send().await.unwrap().status(), expected);
    }
}

#[tokio::test]
async fn a_server_without_read_keys_takes_none_that_it_made_before() {
    let app = TestApp::start().await;
    let ticket = app.stage(BUNDLE).await;
    let (_, key) = new_key(&app, &ticket, "").await;
    let mut options = Options::default();
    options.settings.lifetimes.max_key_ttl = Duration::ZERO;
    let app = app.crash_and_restart_with(options).await;
    let refused = problem(keys(&app, &ticket).send().await.unwrap()).await;
    assert!(refused.detail.contains("--max-key-ttl"), "{}", refused.detail);
    let path = resource_path(&ticket.resource_id);
    for name in ["", "/content/deps.tar.gz"] {
        let answers = [key.as_str(), "another-horse"].map(|key| format!("{path}{name}?token={key}"));
        let by_key = problem(get(&app, &answers[0]).await).await;
        assert_eq!((by_key.status, by_key.code.as_str()), (404, "not-found"));
        let unknown = problem(get(&app, &answers[1]).await).await;
        assert_eq!((unknown.status, unknown.code, unknown.detail), (404, by_key.code, by_key.detail));
    }
    let head = app.client.head(app.url(&format!("{path}?token={key}"))).send().await.unwrap();
    assert_eq!(head.status(), 404);
    // It keeps them: they read again when they are turned on.
    let app = app.crash_and_restart().await;
    assert_eq!(status(&app, &format!("{path}?token={key}")).await, 200);
}

/// Its log would have the key.
#[tokio::test]
async fn no_key_goes_through_the_api_server() {
    let app = TestApp::start().await;
    let ticket = app.stage(BUNDLE).await;
    let (_, key) = new_key(&app, &ticket, "").await;
    let path = resource_path(&ticket.resource_id);
    let through = "/api/v1/namespaces/cloakroom/services/cloakroom:http/proxy/";
    let by_key = app.get(&format!("{path}?token={key}")).header("x-forwarded-uri", through);
    let refused = problem(by_key.send().await.unwrap()).await;
    assert_eq!((refused.status, refused.code.as_str()), (400, "invalid-parameter"));
    assert!(refused.detail.contains("API server"), "{}", refused.detail);
    let mut options = Options::default();
    options.settings.public_url = Some("https://cloakroom.example.com".parse().unwrap());
    let app = TestApp::start_with(options).await;
    let ticket = app.stage(BUNDLE).await;
    let answer = keys(&app, &ticket).header("x-forwarded-uri", through).send().await.unwrap();
    let made: KeyedUrl = json(answer).await;
    assert!(made.url.starts_with("https://cloakroom.example.com/api/v1/resources/"));
}
