//! The calls that `cloakroom` makes, one by one: the fake and the real API server must answer alike.

use std::time::Duration;

use serde_json::{Value, json};

use crate::cluster::{
    Account, Cluster, DEPLOYMENT, JOB, NAMESPACE, Next, Object, POD, SPARK_APPLICATION, text,
};

const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const LIST: &str = "PartialObjectMetadataList";
const BOUND: Duration = Duration::from_secs(20);

fn names(list: &Value) -> Vec<String> {
    list["items"].as_array().into_iter().flatten().map(|item| text(&item["metadata"]["name"])).collect()
}

fn version(list: &Value) -> String {
    text(&list["metadata"]["resourceVersion"])
}

/// Lists: empty, by selectors, in pages, metadata alone.
pub async fn lists_are_of_what_the_selectors_ask_for(cluster: &dyn Cluster) {
    let (admin, api) = (cluster.api(Account::Admin), cluster.api(Account::Cloakroom));
    admin.create_namespace("probe-lists").await;
    let path = POD.path(Some("probe-lists"));
    let (status, empty) = api.get(&path).await;
    assert_eq!((status, &empty["kind"], &empty["items"]), (200, &json!("PodList"), &json!([])));
    for (name, role) in [("a", "driver"), ("b", "executor"), ("c", "other")] {
        admin.create(&Object::pod("probe-lists", name, &[("app", "demo"), ("role", role)])).await;
    }
    let done = Object::pod("probe-lists", "done", &[("app", "demo"), ("role", "driver")]);
    admin.create(&done).await;
    admin.finish_pod(&done, "Succeeded").await;
    for (query, expected) in [
        ("", &["a", "b", "c", "done"][..]),
        ("?labelSelector=app%3Ddemo%2Crole%3Ddriver", &["a", "done"]),
        ("?labelSelector=role%20in%20%28driver%2Cother%29", &["a", "c", "done"]),
        ("?labelSelector=role%20notin%20(driver)", &["b", "c"]),
        ("?labelSelector=role", &["a", "b", "c", "done"]),
        ("?labelSelector=!role", &[]),
        ("?labelSelector=role!=other&resourceVersion=0", &["a", "b", "done"]),
        ("?fieldSelector=metadata.name%3Db", &["b"]),
        ("?fieldSelector=status.phase!=Succeeded,status.phase!=Failed", &["a", "b", "c"]),
        ("?labelSelector=app%3Ddemo&limit=1", &["a"]),
    ] {
        let (status, list) = api.get_metadata(&format!("{path}{query}"), LIST).await;
        assert_eq!(status, 200, "{query}: {list}");
        assert_eq!(names(&list), *expected, "{query}");
        assert_eq!((&list["kind"], &list["apiVersion"]), (&json!(LIST), &json!("meta.k8s.io/v1")));
        assert_eq!(list["items"].is_null(), expected.is_empty(), "{list}");
        for item in list["items"].as_array().into_iter().flatten() {
            assert_eq!(item["kind"], "PartialObjectMetadata");
            assert!(item.get("spec").is_none() && item.get("status").is_none());
        }
    }
    let (_, page) = api.get(&format!("{path}?limit=3")).await;
    assert!(page["items"][0].get("kind").is_none(), "items of built-in kinds do not name it");
    let next = format!("{path}?limit=3&continue={}", text(&page["metadata"]["continue"]));
    let (status, rest) = api.get(&next).await;
    assert_eq!(status, 200, "{rest}");
    assert_eq!((names(&rest), version(&rest)), (vec!["done".to_owned()], version(&page)));
    assert_eq!(page["metadata"]["remainingItemCount"], 1);
    let (status, refused) = api.get(&format!("{path}?fieldSelector=foo%3Dbar")).await;
    assert_eq!((status, text(&refused["reason"])), (400, "BadRequest".to_owned()));
    assert_eq!(api.get(&format!("{path}?labelSelector=!!")).await.0, 400);
}

/// Watches: from a version on, resumed, with an object that leaves the field selector.
pub async fn watches_tell_every_change_since_a_version(cluster: &dyn Cluster) {
    let (admin, api) = (cluster.api(Account::Admin), cluster.api(Account::Cloakroom));
    admin.create_namespace("probe-watches").await;
    let path = POD.path(Some("probe-watches"));
    let (_, list) = api.get_metadata(&path, LIST).await;
    let since = format!("resourceVersion={}&labelSelector=app%3Ddemo", version(&list));
    let unfinished = format!("{since}&fieldSelector=status.phase!%3DSucceeded%2Cstatus.phase!%3DFailed");
    let mut all = api.watch(&path, &since, METADATA).await;
    let mut running = api.watch(&path, &unfinished, METADATA).await;
    let pod = Object::pod("probe-watches", "a", &[("app", "demo")]);
    admin.create(&Object::pod("probe-watches", "other", &[("app", "other")])).await;
    admin.create(&pod).await;
    admin.finish_pod(&pod, "Failed").await;
    admin.remove(&pod).await;
    let mut seen = Vec::new();
    // A pod is seen to be ending before it is gone.
    for expected in ["ADDED", "MODIFIED", "MODIFIED", "DELETED"] {
        let change = all.change().await;
        assert_eq!((change.0.as_str(), change.1.as_str()), (expected, "a"), "{seen:?}");
        seen.push(change.2);
    }
    for (expected, version) in [("ADDED", &seen[0]), ("DELETED", &seen[1])] {
        assert_eq!(&running.change().await, &(expected.to_owned(), "a".to_owned(), version.clone()));
    }
    assert_eq!(running.next(Duration::from_millis(100)).await, Next::Silence);
    let resumed = format!("resourceVersion={}&labelSelector=app%3Ddemo", seen[2]);
    let mut resumed = api.watch(&path, &resumed, METADATA).await;
    assert_eq!(resumed.change().await, ("DELETED".to_owned(), "a".to_owned(), seen[3].clone()));
    let mut from_nothing = api.watch(&path, "", METADATA).await;
    let added = from_nothing.change().await;
    assert_eq!((added.0.as_str(), added.1.as_str()), ("ADDED", "other"));
    let mut streamed = api.watch(&path, STREAMED_LIST, METADATA).await;
    assert_eq!(streamed.change().await, added);
    let Next::Event(end) = streamed.next(BOUND).await else { panic!("no bookmark") };
    assert_eq!(end["type"], "BOOKMARK");
    assert_eq!(end["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(end["object"]["kind"], "PartialObjectMetadata");
    let mut short = api.watch(&path, &format!("{since}&timeoutSeconds=1"), METADATA).await;
    while let Next::Event(_) = short.next(BOUND).await {}
    assert_eq!(short.next(BOUND).await, Next::End);
}

const STREAMED_LIST: &str = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=app%3Dother";

/// A watch that is resumed at a version that the API server has forgotten.
pub async fn a_forgotten_version_is_a_410(cluster: &dyn Cluster) {
    let (admin, api) = (cluster.api(Account::Admin), cluster.api(Account::Cloakroom));
    admin.create_namespace("probe-410").await;
    let path = POD.path(Some("probe-410"));
    let (_, list) = api.get(&path).await;
    let mut watch = api.watch(&path, &format!("resourceVersion={}", version(&list)), METADATA).await;
    admin.create(&Object::pod("probe-410", "a", &[])).await;
    let (_, _, last) = watch.change().await;
    cluster.forget_the_past().await;
    while let Next::Event(_) = watch.next(BOUND).await {}
    assert!(matches!(watch.next(BOUND).await, Next::End | Next::Broken(_)));
    for since in [version(&list), last] {
        let mut resumed = api.watch(&path, &format!("resourceVersion={since}"), METADATA).await;
        assert_eq!(resumed.status, 200, "the error is in the stream");
        let Next::Event(event) = resumed.next(BOUND).await else { panic!("no event") };
        let object = &event["object"];
        assert_eq!((&event["type"], &object["code"]), (&json!("ERROR"), &json!(410)), "{event}");
        assert_eq!((&object["kind"], &object["reason"]), (&json!("Status"), &json!("Expired")));
    }
    let (_, list) = api.get(&path).await;
    assert_eq!(names(&list), ["a"]);
}

/// An account without the right gets a 403, and an unknown token a 401.
pub async fn rights_are_asked_for(cluster: &dyn Cluster) {
    let (admin, api) = (cluster.api(Account::Admin), cluster.api(Account::Cloakroom));
    admin.create_namespace("probe-rights").await;
    let nobody = cluster.api(Account::Nobody);
    let (status, refused) = nobody.get(&DEPLOYMENT.path(Some("probe-rights"))).await;
    let user = crate::cluster::NOBODY_USER;
    let message = format!(
        "deployments.apps is forbidden: User \"{user}\" cannot list resource \"deployments\" in API group \"apps\" \
         in the namespace \"probe-rights\""
    );
    assert_eq!((status, text(&refused["message"])), (403, message));
    assert_eq!(text(&refused["reason"]), "Forbidden");
    assert_eq!(nobody.watch(&POD.path(None), "", METADATA).await.status, 403);
    let name = format!("{}/probe-rights", NAMESPACE.path(None));
    assert_eq!((api.get(&name).await.0, nobody.get(&name).await.0), (200, 403));
    let pod = Object::pod("probe-rights", "a", &[]);
    assert_eq!(api.post(&pod.collection(), &pod.manifest()).await.0, 403);
    let unknown = cluster.api_with_token("not-a-token");
    assert_eq!(unknown.get("/api/v1/pods").await.0, 401);
    for kind in [POD, DEPLOYMENT, JOB, SPARK_APPLICATION] {
        assert_eq!(api.get(&kind.path(None)).await.0, 200, "{}", kind.plural);
    }
    cluster.revoke().await;
    assert_eq!(api.get(&POD.path(None)).await.0, 403);
    cluster.grant().await;
    assert_eq!(api.get(&POD.path(None)).await.0, 200);
}

/// Reviews of tokens and of access.
pub async fn reviews_say_who_it_is_and_what_they_may(cluster: &dyn Cluster) {
    let admin = cluster.api(Account::Admin);
    let review = |token: &str| json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    let (status, known) = admin.post(path, &review(&cluster.token(Account::Cloakroom))).await;
    assert_eq!((status, &known["status"]["authenticated"]), (201, &json!(true)), "{known}");
    let user = crate::cluster::CLOAKROOM_USER;
    assert_eq!(known["status"]["user"]["username"], user);
    let (status, unknown) = admin.post(path, &review("not-a-token")).await;
    assert_eq!((status, unknown["status"].get("authenticated")), (201, None));
    let asked = |verb: &str| json!({"verb": verb, "resource": "pods", "namespace": "default"});
    for (verb, is_allowed) in [("list", true), ("create", false)] {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": user, "resourceAttributes": asked(verb)},
        });
        let (status, answer) =
            admin.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).await;
        assert_eq!((status, &answer["status"]["allowed"]), (201, &json!(is_allowed)));
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": asked(verb)},
        });
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let (status, answer) = cluster.api(Account::Cloakroom).post(path, &review).await;
        assert_eq!((status, &answer["status"]["allowed"]), (201, &json!(is_allowed)));
    }
    let (status, _) = cluster.api(Account::Nobody).post(path, &review("any")).await;
    assert_eq!(status, 403);
}

/// Objects come and go, and a namespace is deleted with its content.
pub async fn objects_come_and_go(cluster: &dyn Cluster) {
    let (admin, api) = (cluster.api(Account::Admin), cluster.api(Account::Cloakroom));
    let orphan = Object::pod("probe-nowhere", "a", &[]);
    let (status, refused) = admin.post(&orphan.collection(), &orphan.manifest()).await;
    assert_eq!((status, text(&refused["reason"])), (404, "NotFound".to_owned()), "{refused}");
    admin.create_namespace("probe-objects").await;
    for kind in [POD, DEPLOYMENT, JOB, SPARK_APPLICATION] {
        let object = Object::new(kind, "probe-objects", "a", &[("app", "demo")]);
        assert_eq!(api.get(&object.path()).await.0, 404, "{}", kind.plural);
        admin.create(&object).await;
        assert_eq!(admin.post(&object.collection(), &object.manifest()).await.0, 409);
        let (status, metadata) = api.get_metadata(&object.path(), "PartialObjectMetadata").await;
        assert_eq!((status, &metadata["kind"]), (200, &json!("PartialObjectMetadata")));
        assert_eq!(metadata["metadata"]["labels"]["app"], "demo");
    }
    let application = Object::new(SPARK_APPLICATION, "probe-objects", "a", &[]);
    let (_, list) = api.get(&application.collection()).await;
    assert_eq!(
        (&list["kind"], &list["items"][0]["kind"]),
        (&json!("SparkApplicationList"), &json!("SparkApplication"))
    );
    let deployment = Object::new(DEPLOYMENT, "probe-objects", "a", &[]);
    admin.remove(&deployment).await;
    let (status, gone) = api.get(&deployment.path()).await;
    assert_eq!((status, text(&gone["message"])), (404, "deployments.apps \"a\" not found".to_owned()));
    let (_, list) = api.get(&POD.path(Some("probe-objects"))).await;
    let since = format!("resourceVersion={}", version(&list));
    let mut watch = api.watch(&POD.path(None), &since, METADATA).await;
    admin.remove_namespace("probe-objects").await;
    loop {
        let (event, name, _) = watch.change().await;
        if event == "DELETED" && name == "a" {
            break;
        }
    }
    assert_eq!(api.get("/api/v1/namespaces/probe-objects").await.0, 404);
}

/// Discovery names all kinds: a kind that it does not name does not exist.
pub async fn discovery_names_the_kinds(cluster: &dyn Cluster) {
    let api = cluster.api(Account::Cloakroom);
    for kind in [POD, DEPLOYMENT, JOB, SPARK_APPLICATION] {
        let root = if kind.group.is_empty() { "/api" } else { "/apis" };
        let (status, list) = api.get(&format!("{root}/{}", kind.group_version())).await;
        assert_eq!((status, &list["kind"]), (200, &json!("APIResourceList")));
        assert_eq!(list["groupVersion"], kind.group_version());
        let resources = list["resources"].as_array().unwrap();
        let found = resources.iter().find(|resource| resource["name"] == kind.plural).unwrap();
        assert_eq!((&found["kind"], &found["namespaced"]), (&json!(kind.kind), &json!(true)));
        assert!(found["verbs"].as_array().unwrap().contains(&json!("watch")));
    }
    let (_, versions) = api.get("/api").await;
    assert_eq!((&versions["kind"], &versions["versions"]), (&json!("APIVersions"), &json!(["v1"])));
    let (_, groups) = api.get("/apis").await;
    let groups = groups["groups"].as_array().unwrap();
    let group = groups.iter().find(|group| group["name"] == SPARK_APPLICATION.group).unwrap();
    assert_eq!(group["preferredVersion"]["groupVersion"], SPARK_APPLICATION.group_version());
    let (status, group) = api.get("/apis/apps").await;
    assert_eq!((status, &group["kind"], &group["name"]), (200, &json!("APIGroup"), &json!("apps")));
    for path in ["/apis/nope.example.com", "/apis/nope.example.com/v1"] {
        assert_eq!(api.get(path).await, (404, json!("404 page not found\n")), "{path}");
    }
    // An account without the right to list an unknown kind gets the 403, and does not learn that the kind is unknown.
    let admin = cluster.api(Account::Admin);
    for path in ["/api/v1/bananas", "/apis/apps/v1/bananas", "/apis/nope.example.com/v1/bananas"] {
        assert_eq!(api.get(path).await.0, 403, "{path}");
        assert_eq!(admin.get(path).await.0, 404, "{path}");
    }
}
