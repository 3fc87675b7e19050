//! Upload auth by Kubernetes: a user with the right in the owner's namespace may stage for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use cloakroom_cluster::{AcceptedTokens, ApiServer, Reviews};
use cloakroom_core::protocol::{CHALLENGE, WRONG_SECRET};
use cloakroom_server::http::UploadAuth;
use cloakroom_testing::clock::ManualClock;
use cloakroom_testing::logs;
use cloakroom_testing::wait::until_true;
use cloakroom_testing::wire::Wire;
use serde_json::{Value, json};

use crate::support::TestApp;
use crate::support::app::{Options, problem};

mod audiences;
mod floods;

const TOKEN: &str = "token-of-the-submitter";
/// Of another user.
const OTHER_TOKEN: &str = "token-of-another-user";
const USER: &str = "system:serviceaccount:spark:submitter";
/// Of this server.
const AUDIENCE: &str = "cloakroom.cloakroom";
const CALL_TIMEOUT: Duration = Duration::from_millis(200);

/// Far more than a test takes; used up by a hang only.
const PATIENT: Duration = Duration::from_secs(30);

/// How the API server answers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mood {
    Good,
    Fails(u16),
    Hangs,
    Babbles,
    /// About tokens that it does not know.
    HangsForStrangers,
    /// About namespaces that begin with `many`.
    HangsForMany,
}

/// An API server that knows one token.
struct Cluster {
    mood: Mutex<Mood>,
    is_token_good: Mutex<bool>,
    /// Namespaces in which the user may create pods.
    allowed: Mutex<BTreeSet<String>>,
    /// Further tokens, and what is said of each.
    others: Mutex<BTreeMap<String, Value>>,
    asked: Mutex<Vec<Value>>,
}

impl Cluster {
    fn set(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    fn allow(&self, namespace: &str) {
        self.allowed.lock().unwrap().insert(namespace.to_owned());
    }

    fn said_of(&self, token: &Value) -> Option<Value> {
        self.others.lock().unwrap().get(token.as_str()?).cloned()
    }

    /// Kinds of the questions so far, in order.
    fn asked(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked.iter().map(|review| review["kind"].as_str().unwrap().to_owned()).collect()
    }

    async fn answer(&self, review: Value) -> Response {
        self.asked.lock().unwrap().push(review.clone());
        let mood = *self.mood.lock().unwrap();
        match mood {
            Mood::HangsForStrangers
                if review["spec"]["token"].as_str().is_some_and(|token| token != TOKEN) =>
            {
                std::future::pending().await
            }
            Mood::HangsForMany
                if review["spec"]["resourceAttributes"]["namespace"]
                    .as_str()
                    .is_some_and(|namespace| namespace.starts_with("many")) =>
            {
                std::future::pending().await
            }
            Mood::Good | Mood::HangsForStrangers | Mood::HangsForMany => {
                (StatusCode::CREATED, Json(self.reviewed(review))).into_response()
            }
            Mood::Hangs => std::future::pending().await,
            Mood::Babbles => (StatusCode::CREATED, format!("{{\"{TOKEN}\"")).into_response(),
            Mood::Fails(code) => {
                let status = json!({"kind": "Status", "status": "Failure", "message": "no", "reason": "x", "code": code});
                (StatusCode::from_u16(code).unwrap(), Json(status)).into_response()
            }
        }
    }

    fn reviewed(&self, mut review: Value) -> Value {
        let spec = review["spec"].clone();
        review["status"] = match review["kind"].as_str().unwrap() {
            "TokenReview" if spec["token"] == TOKEN && *self.is_token_good.lock().unwrap() => json!({
                "authenticated": true,
                "user": {"username": USER, "uid": "u-1", "groups": ["g1", "g2"], "extra": {"pod": ["p"]}},
            }),
            "TokenReview" if spec["token"] == OTHER_TOKEN => {
                json!({"authenticated": true, "user": {"username": "system:serviceaccount:spark:other"}})
            }
            "TokenReview" if self.said_of(&spec["token"]).is_some() => self.said_of(&spec["token"]).unwrap(),
            "TokenReview" => json!({"error": "[invalid bearer token]"}),
            "SubjectAccessReview" => {
                let namespace = spec["resourceAttributes"]["namespace"].as_str().unwrap();
                json!({"allowed": self.allowed.lock().unwrap().contains(namespace)})
            }
            other => panic!("{other}"),
        };
        review
    }
}

struct Guarded {
    app: TestApp,
    cluster: Arc<Cluster>,
}

async fn guarded_with(call_timeout: Duration) -> Guarded {
    guarded_by(call_timeout, Options::default(), true).await
}

async fn guarded_by(call_timeout: Duration, mut options: Options, cluster_tokens: bool) -> Guarded {
    let cluster = Arc::new(Cluster {
        mood: Mutex::new(Mood::Good),
        is_token_good: Mutex::new(true),
        allowed: Mutex::new(BTreeSet::from(["demo".to_owned()])),
        others: Mutex::default(),
        asked: Mutex::default(),
    });
    let take =
        async |State(cluster): State<Arc<Cluster>>, Json(review): Json<Value>| cluster.answer(review).await;
    let router = Router::new()
        .route("/apis/authentication.k8s.io/v1/tokenreviews", post(take))
        .route("/apis/authorization.k8s.io/v1/subjectaccessreviews", post(take))
        .with_state(Arc::clone(&cluster));
    let server =
        ApiServer::with_client(kube::Client::new(router, "default"), "https://in.process", call_timeout);
    let clock = Arc::new(ManualClock::new());
    let accepted = AcceptedTokens { audience: AUDIENCE.to_owned(), cluster_tokens };
    options.settings.upload_auth =
        UploadAuth::Kubernetes(Box::new(Reviews::new(server, accepted, Arc::clone(&clock) as _)));
    let app = TestApp::start_on(Arc::new(tempfile::tempdir().unwrap()), clock, options).await;
    app.keep_secret(TOKEN);
    Guarded { app, cluster }
}

async fn guarded() -> Guarded {
    guarded_with(PATIENT).await
}

impl Guarded {
    /// Stages for this namespace with this token.
    async fn upload(&self, namespace: &str, token: Option<&str>) -> reqwest::Response {
        let url = self.app.url(&format!("/api/v1/resources/deps.tgz?namespace={namespace}&label=app%3Dx"));
        let request = self.app.client.put(url).body("jars");
        let request = token.into_iter().fold(request, |request, token| request.bearer_auth(token));
        request.send().await.unwrap()
    }

    async fn status(&self, namespace: &str) -> u16 {
        self.upload(namespace, Some(TOKEN)).await.status().as_u16()
    }

    /// The old protocol, owner last or first.
    async fn upload_v0(&self, namespace: &str, token: Option<&str>, owner_first: bool) -> reqwest::Response {
        let part = |name: &str, content: &str| {
            format!("--xyz\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{content}\r\n")
        };
        let owner = part(
            "resourcesOwner",
            &json!({"ownerNamespace": namespace, "ownerLabels": {"a": "b"}, "ownerType": "Pod"}).to_string(),
        );
        let mut parts = [part("resources", "jars"), owner];
        if owner_first {
            parts.reverse();
        }
        let body = format!("{}--xyz--\r\n", parts.concat());
        let request = self.app.client.post(self.app.url("/api/v0/resources/")).body(body);
        let request = request.header("content-type", "multipart/form-data; boundary=xyz");
        let request = token.into_iter().fold(request, |request, token| request.bearer_auth(token));
        request.send().await.unwrap()
    }
}

#[tokio::test]
async fn who_may_create_pods_in_the_owners_namespace_may_stage_for_it() {
    let Guarded { app, cluster } = &guarded().await;
    let response = app.put("", "jars").bearer_auth(TOKEN).send().await.unwrap();
    let ticket = app.ticket(response).await;
    let asked = cluster.asked.lock().unwrap().clone();
    assert_eq!(asked[0]["spec"], json!({"token": TOKEN}));
    assert_eq!(
        asked[1]["spec"],
        json!({
            "user": USER, "uid": "u-1", "groups": ["g1", "g2"], "extra": {"pod": ["p"]},
            "resourceAttributes": {"namespace": "demo", "verb": "create", "resource": "pods"},
        })
    );
    let arrival = app.ready_row(&ticket.resource_id).await.data.arrival;
    assert_eq!(arrival.uploaded_by.as_deref(), Some(USER));
    assert_eq!(app.download(&ticket).send().await.unwrap().status(), 200, "the ticket opens the bundle");
    assert_eq!(cluster.asked().len(), 2, "a download asks nobody");
}

#[tokio::test]
async fn a_token_unknown_to_the_cluster_is_refused_before_anything_else() {
    let guarded = guarded().await;
    for token in [None, Some("another-token"), Some(&TOKEN[1..])] {
        for response in [
            guarded.upload("demo", token).await,
            guarded.upload("NOT A NAMESPACE", token).await,
            guarded.upload_v0("demo", token, false).await,
        ] {
            let challenge = if token.is_none() { CHALLENGE } else { WRONG_SECRET };
            assert_eq!(response.headers()["www-authenticate"], challenge);
            let refused = problem(response).await;
            assert_eq!((refused.status, refused.code.as_str()), (401, "unauthorized"), "{token:?}");
        }
        guarded.app.assert_nothing_kept().await;
    }
    assert!(!guarded.cluster.asked().contains(&"SubjectAccessReview".to_owned()));
}

#[tokio::test]
async fn a_user_without_the_right_is_refused_by_name_and_namespace() {
    let guarded = guarded().await;
    for response in [
        guarded.upload("other", Some(TOKEN)).await,
        guarded.upload_v0("other", Some(TOKEN), false).await,
        guarded.upload_v0("other", Some(TOKEN), true).await,
    ] {
        let refused = problem(response).await;
        assert_eq!((refused.status, refused.code.as_str()), (403, "forbidden"));
        assert!(refused.detail.contains(USER) && refused.detail.contains("other"), "{}", refused.detail);
        assert!(!refused.detail.contains(TOKEN));
        guarded.app.assert_nothing_kept().await;
    }
    assert_eq!(guarded.status("demo").await, 201);
    assert_eq!(guarded.upload_v0("demo", Some(TOKEN), false).await.status(), 200);
    assert_eq!(guarded.upload_v0("demo", Some(TOKEN), true).await.status(), 200);
}

#[tokio::test]
async fn a_refusal_comes_before_the_body() {
    let guarded = guarded().await;
    let mut wire = Wire::connect(guarded.app.address).await;
    wire.send(format!(
        "PUT /api/v1/resources/a?namespace=other&label=a=b HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\
         Content-Length: 5\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    ))
    .await;
    assert_eq!(wire.answer().await.status, 403);
    // In v0 the owner may come first: then the bundle is not waited for either.
    let mut wire = Wire::connect(guarded.app.address).await;
    let owner = r#"{"ownerNamespace":"other","ownerLabels":{"a":"b"},"ownerType":"Pod"}"#;
    wire.send(format!(
        "POST /api/v0/resources/ HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=xyz\r\n\
         Content-Length: 100000\r\nAuthorization: Bearer {TOKEN}\r\n\r\n\
         --xyz\r\nContent-Disposition: form-data; name=\"resourcesOwner\"\r\n\r\n{owner}\r\n--xyz\r\n"
    ))
    .await;
    assert_eq!(wire.answer().await.status, 403);
    guarded.app.assert_nothing_kept().await;
}

#[tokio::test]
async fn an_api_server_that_gives_no_answer_lets_nobody_in_and_is_asked_again() {
    for mood in
        [Mood::Fails(401), Mood::Fails(403), Mood::Fails(429), Mood::Fails(500), Mood::Babbles, Mood::Hangs]
    {
        let guarded = guarded_with(if mood == Mood::Hangs { CALL_TIMEOUT } else { PATIENT }).await;
        guarded.cluster.set(mood);
        let response = guarded.upload("demo", Some(TOKEN)).await;
        assert_eq!(response.headers()["retry-after"], "2");
        let refused = problem(response).await;
        assert_eq!((refused.status, refused.code.as_str()), (503, "authorization-unavailable"));
        guarded.app.assert_nothing_kept().await;
        // The token is known from before, the right is not.
        guarded.cluster.set(Mood::Good);
        assert_eq!(guarded.status("other").await, 403);
        guarded.cluster.set(mood);
        assert_eq!(guarded.status("demo").await, 503);
        assert_eq!(guarded.upload_v0("demo", Some(TOKEN), false).await.status(), 503);
        guarded.app.assert_nothing_kept().await;
        guarded.cluster.set(Mood::Good);
        assert_eq!(guarded.status("demo").await, 201, "a failure is no answer to be remembered");
    }
    assert!(!logs::lines_with("cannot be asked who may upload").is_empty());
}

#[tokio::test]
async fn answers_are_remembered_for_a_minute_or_ten_seconds() {
    let Guarded { app, cluster } = &guarded().await;
    let upload = async |namespace: &str| {
        let query = format!("/api/v1/resources/?namespace={namespace}&label=a%3Db");
        let request = app.client.put(app.url(&query)).body("jars").bearer_auth(TOKEN);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!((upload("demo").await, upload("demo").await), (201, 201));
    assert_eq!(cluster.asked(), ["TokenReview", "SubjectAccessReview"]);
    assert_eq!((upload("other").await, upload("other").await), (403, 403));
    assert_eq!(cluster.asked().len(), 3, "the right is another one in each namespace");
    cluster.allow("other");
    app.clock.advance(Duration::from_secs(9));
    assert_eq!(upload("other").await, 403);
    app.clock.advance(Duration::from_secs(1));
    assert_eq!(upload("other").await, 201, "a no is good for ten seconds");
    // What is taken away works on for a minute at most.
    cluster.allowed.lock().unwrap().clear();
    app.clock.advance(Duration::from_secs(49));
    assert_eq!(upload("demo").await, 201);
    app.clock.advance(Duration::from_secs(1));
    assert_eq!(upload("demo").await, 403);
    *cluster.is_token_good.lock().unwrap() = false;
    app.clock.advance(Duration::from_secs(60));
    assert_eq!(upload("demo").await, 401);
}

#[tokio::test]
async fn a_token_that_was_refused_is_not_asked_about_again_for_ten_seconds() {
    let guarded = guarded().await;
    let reviews = || guarded.cluster.asked().len();
    for (after, asked) in [(0, 1), (9, 1), (1, 2)] {
        guarded.app.clock.advance(Duration::from_secs(after));
        assert_eq!(guarded.upload("demo", Some("a-made-up-token")).await.status(), 401);
        assert_eq!(reviews(), asked);
    }
}

/// An upload by the old protocol, of which only the first bytes of the bundle have come.
async fn begun_v0(app: &TestApp) -> Wire {
    let before = app.staging.in_flight().0;
    let mut wire = Wire::connect(app.address).await;
    wire.send(format!(
        "POST /api/v0/resources/ HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=xyz\r\n\
         Content-Length: 100000\r\nAuthorization: Bearer {TOKEN}\r\n\r\n\
         --xyz\r\nContent-Disposition: form-data; name=\"resources\"\r\n\r\njars"
    ))
    .await;
    until_true("the upload has begun", || app.staging.in_flight().0 == before + 1).await;
    wire
}

#[tokio::test]
async fn an_upload_counts_for_its_user_until_its_owner_is_known() {
    let mut options = Options::default();
    (options.limits.max_concurrent_uploads, options.limits.share) = (8, Some("25%".parse().unwrap()));
    let guarded = guarded_by(PATIENT, options, true).await;
    let (mut first, _second) = (begun_v0(&guarded.app).await, begun_v0(&guarded.app).await);
    let refused = guarded.upload_v0("demo", Some(TOKEN), false).await;
    crate::limits::assert_refused(refused, 503, "overloaded", "namespace “spark” has 2 uploads").await;
    assert_eq!(guarded.status("demo").await, 201, "the namespace has its own share");
    // The right is missing: what came before goes.
    let owner = r#"{"ownerNamespace":"other","ownerLabels":{"a":"b"},"ownerType":"Pod"}"#;
    first
        .send(format!(
            "\r\n--xyz\r\nContent-Disposition: form-data; name=\"resourcesOwner\"\r\n\r\n{owner}\r\n--xyz--\r\n"
        ))
        .await;
    assert_eq!(first.answer().await.status, 403);
    until_true("nothing of it is left", || guarded.app.staging.in_flight().0 == 1).await;
    assert_eq!(guarded.upload_v0("demo", Some(TOKEN), false).await.status(), 200);
}
