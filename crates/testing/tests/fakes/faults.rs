//! Each fault is what it says, where it was asked for, until it is healed.

use std::time::Duration;

use cloakroom_testing::api_server::{FakeApiServer, Fault, Verb};
use cloakroom_testing::cluster::{Account, Api, Cluster, DEPLOYMENT, Kind, Next, Object, POD, text};
use reqwest::Method;
use serde_json::json;

const SOON: Duration = Duration::from_millis(200);
const BOUND: Duration = Duration::from_secs(20);
const JSON: &str = "application/json";
const BANANA: Kind = Kind {
    group: "fruit.example.com",
    version: "v1",
    plural: "bananas",
    kind: "Banana",
    is_namespaced: true,
};

fn start() -> (FakeApiServer, Api) {
    let server = FakeApiServer::start();
    server.create_pod("demo", "driver", &[("app", "demo")]);
    let api = server.api(Account::Cloakroom);
    (server, api)
}

fn pods() -> String {
    POD.path(Some("demo"))
}

#[tokio::test]
async fn a_status_is_for_its_verb_and_its_kind() {
    let (server, api) = start();
    let pod = format!("{}/driver", pods());
    for code in [401, 403, 410, 429, 500, 503] {
        server.fail(Verb::List, Fault::Status(code));
        let (status, answer) = api.get(&pods()).await;
        assert_eq!((status, &answer["code"], &answer["kind"]), (code, &json!(code), &json!("Status")));
        assert_eq!((api.get(&pod).await.0, api.watch(&pods(), "", JSON).await.status), (200, 200));
        server.heal();
        assert_eq!(api.get(&pods()).await.0, 200);
    }
    server.fail_for(DEPLOYMENT, Verb::List, Fault::Status(403));
    assert_eq!((api.get(&DEPLOYMENT.path(None)).await.0, api.get(&pods()).await.0), (403, 200));
    server.fail(Verb::Any, Fault::Status(500));
    assert_eq!((api.get(&pod).await.0, api.get("/apis").await.0), (500, 500));
    assert_eq!(api.watch(&pods(), "", JSON).await.status, 500);
    assert_eq!(server.api(Account::Admin).post(&pods(), &json!({})).await.0, 500);
}

#[tokio::test]
async fn throttling_says_when_to_come_again() {
    let (server, _) = start();
    server.fail(Verb::List, Fault::TooManyRequests(Duration::from_secs(7)));
    let url = format!("http://{}{}", server.address(), pods());
    let client =
        reqwest::Client::builder().no_proxy().tls_backend_preconfigured(cloakroom_testing::tls::no_roots());
    let request = client.build().unwrap().get(url).bearer_auth(server.token(Account::Cloakroom));
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()["retry-after"], "7");
}

#[tokio::test]
async fn calls_may_hang_or_break() {
    let (server, api) = start();
    server.fail(Verb::List, Fault::Hang);
    let path = pods();
    assert!(tokio::time::timeout(SOON, api.get(&path)).await.is_err());
    server.heal();
    server.fail(Verb::List, Fault::Cut);
    assert!(api.call(Method::GET, &path, &[], None).await.is_err());
    server.heal();
    server.stop();
    let refused = api.call(Method::GET, &path, &[], None).await.unwrap_err();
    assert!(refused.is_connect(), "{refused}");
    server.start_again();
    assert_eq!(api.get(&path).await.0, 200);
}

#[tokio::test]
async fn stopping_ends_open_watches() {
    let (server, api) = start();
    let mut watch = api.watch(&pods(), "", JSON).await;
    assert_eq!(watch.change().await.1, "driver");
    server.stop();
    assert!(matches!(watch.next(BOUND).await, Next::Broken(0) | Next::End));
}

#[tokio::test]
async fn a_list_may_be_empty_or_too_old() {
    let (server, api) = start();
    server.fail(Verb::List, Fault::Empty);
    let (status, list) = api.get(&pods()).await;
    assert_eq!((status, &list["items"]), (200, &json!([])));
    assert_ne!(text(&list["metadata"]["resourceVersion"]), "");
    server.heal();
    server.create_pod("demo", "other", &[]);
    let (_, page) = api.get(&format!("{}?limit=1", pods())).await;
    server.compact();
    let next = format!("{}?limit=1&continue={}", pods(), text(&page["metadata"]["continue"]));
    assert_eq!(api.get(&next).await.0, 410);
    server.fail(Verb::Any, Fault::Expired);
    assert_eq!(api.get(&pods()).await.0, 410);
    let mut watch = api.watch(&pods(), "", JSON).await;
    let Next::Event(event) = watch.next(BOUND).await else { panic!("no event") };
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
}

#[tokio::test]
async fn open_watches_end_break_or_fall_silent() {
    let (server, api) = start();
    server.set_bookmark_interval(Duration::from_millis(20));
    let open = async || {
        let mut watch = api.watch(&pods(), "allowWatchBookmarks=true", JSON).await;
        assert_eq!(watch.change().await.1, "driver");
        let Next::Event(bookmark) = watch.next(BOUND).await else { panic!("no bookmark") };
        assert_eq!((&bookmark["type"], &bookmark["object"]["kind"]), (&json!("BOOKMARK"), &json!("Pod")));
        watch
    };
    let mut ended = open().await;
    server.end_watches();
    assert_eq!(ended.after_bookmarks(BOUND).await, Next::End);
    let mut broken = open().await;
    server.cut_watches();
    assert!(matches!(broken.after_bookmarks(BOUND).await, Next::Broken(1..)));
    let mut silent = open().await;
    server.silence_watches();
    server.set_phase("demo", "driver", "Running");
    server.heal();
    assert_eq!(silent.after_bookmarks(SOON).await, Next::Silence);
    assert_eq!(silent.after_bookmarks(SOON).await, Next::Silence);
    open().await;
}

#[tokio::test]
async fn watches_to_come_may_be_silent_or_break() {
    let (server, api) = start();
    server.set_bookmark_interval(Duration::from_millis(20));
    server.fail(Verb::Watch, Fault::Silent);
    let mut silent = api.watch(&pods(), "allowWatchBookmarks=true&timeoutSeconds=1", JSON).await;
    assert_eq!((silent.status, silent.next(Duration::from_millis(1200)).await), (200, Next::Silence));
    server.heal();
    server.fail(Verb::Watch, Fault::Cut);
    let mut broken = api.watch(&pods(), "", JSON).await;
    assert!(matches!(broken.next(BOUND).await, Next::Broken(1..)));
}

#[tokio::test]
async fn calls_are_written_down() {
    let (server, api) = start();
    api.get(&format!("{}?labelSelector=app%3Ddemo&limit=1", pods())).await;
    let calls = server.calls_to(Verb::List);
    assert_eq!((calls.len(), calls[0].path.as_str()), (1, pods().as_str()));
    assert_eq!(calls[0].user, cloakroom_testing::cluster::CLOAKROOM_USER);
    assert_eq!(
        (calls[0].parameter("labelSelector"), calls[0].parameter("limit")),
        (Some("app=demo"), Some("1"))
    );
    server.forget_calls();
    assert!(server.calls().is_empty());
}

#[tokio::test]
async fn users_and_their_rules_can_be_made_up() {
    let (server, _) = start();
    server.know_token("of-a-user", "ann", &[]);
    let ann = server.api_with_token("of-a-user");
    assert_eq!(ann.get(&pods()).await.0, 403);
    server.grant_rules(
        "ann",
        Some("demo"),
        json!([{"apiGroups": [""], "resources": ["*"], "verbs": ["list"]}]),
    );
    assert_eq!((ann.get(&pods()).await.0, ann.get(&POD.path(None)).await.0), (200, 403));
    server.revoke_all("ann");
    assert_eq!(ann.get(&pods()).await.0, 403);
    server.forget_token("of-a-user");
    assert_eq!(ann.get(&pods()).await.0, 401);
}

#[tokio::test]
async fn kinds_and_objects_can_be_made_up() {
    let (server, _) = start();
    let api = server.api(Account::Admin);
    assert_eq!(api.get(&BANANA.path(None)).await.0, 404);
    server.define(BANANA);
    server.create(BANANA, "elsewhere", "yellow", &[]);
    let banana = Object::new(BANANA, "elsewhere", "yellow", &[]);
    assert_eq!(api.get(&banana.path()).await.0, 200);
    server.undefine(BANANA);
    assert_eq!(api.get(&banana.path()).await.0, 404);
    server.finish_pod("demo", "driver");
    let pod = format!("{}/driver", pods());
    assert_eq!(api.get(&pod).await.1["status"]["phase"], "Succeeded");
    server.delete_pod("demo", "driver");
    assert_eq!(api.get(&pod).await.0, 404);
}
