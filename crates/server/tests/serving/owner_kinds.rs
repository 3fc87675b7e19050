//! For whom a bundle may be staged: kinds that the cluster has, in namespaces that the server may look at.

use cloakroom_core::resource::Namespaces;
use cloakroom_server::owners::{Owners as _, Presence, WatchState};
use cloakroom_testing::api_server::{FakeApiServer, Fault, Verb};
use cloakroom_testing::cluster::{
    CLOAKROOM_USER, DEPLOYMENT, JOB, Kind, NAMESPACE, POD, SPARK_APPLICATION, STATEFUL_SET, rights,
};
use serde_json::json;

use crate::support::WatchedApp;
use crate::support::app::problem;
use crate::support::owners::owner_of;
use crate::support::watched::{MINUTE, SECOND, Watching};

const CONFIG_MAP: Kind = Kind { plural: "configmaps", kind: "ConfigMap", ..POD };

/// The query of an upload for an object of that kind with the label app=demo.
fn query(namespace: &str, kind: &str) -> String {
    format!("namespace={namespace}&kind={kind}&label=app%3Ddemo")
}

async fn assert_refused(watched: &WatchedApp, query: &str, because: &str) {
    let refused = problem(watched.try_stage(query).await).await;
    assert_eq!((refused.status, refused.code.as_str()), (400, "invalid-owner"), "{}", refused.detail);
    assert!(refused.detail.contains(because), "{}", refused.detail);
    watched.app.assert_nothing_kept().await;
}

#[tokio::test]
async fn every_kind_that_discovery_names_can_own() {
    for kind in [DEPLOYMENT, STATEFUL_SET, JOB, SPARK_APPLICATION] {
        let watched = WatchedApp::start().await;
        let name = kind.as_owner();
        let owner = owner_of(&name, "demo", "app=demo");
        watched.api.create(kind, "demo", "etl", &[("app", "demo")]);
        // A pod with the same label is another owner.
        watched.api.create_pod("demo", "driver", &[("app", "demo")]);
        let ticket = watched.stage(&query("demo", &name)).await;
        watched.until(&owner, Presence::Present).await;
        watched.fetch(&ticket).await;
        watched.assert_nothing_goes_for(5 * MINUTE).await;
        watched.api.delete(kind, "demo", "etl");
        watched.until(&owner, Presence::Absent).await;
        assert_eq!(watched.sweep().await.expired, 0);
        assert_eq!(watched.sweep_after(59 * SECOND).await.expired, 0);
        assert_eq!(watched.sweep_after(SECOND).await.expired, 1, "{name}");
        watched.assert_gone(&ticket, "orphaned").await;
    }
}

#[tokio::test]
async fn a_kind_that_the_cluster_does_not_have_is_refused_until_it_is_defined() {
    let watched = WatchedApp::start().await;
    watched.api.undefine(SPARK_APPLICATION);
    let query = query("demo", &SPARK_APPLICATION.as_owner());
    assert_refused(&watched, &query, "is not one of this cluster's").await;
    assert_refused(&watched, "namespace=demo&kind=Nothing.example.com&name=a", "Nothing.example.com").await;
    watched.api.define(SPARK_APPLICATION);
    watched.stage(&query).await;
}

#[tokio::test]
async fn a_kind_that_is_not_in_namespaces_is_refused() {
    let watched = WatchedApp::start().await;
    assert_refused(&watched, &query("demo", NAMESPACE.kind), "must be in namespaces").await;
}

#[tokio::test]
async fn a_kind_that_the_server_may_not_watch_is_refused_until_it_may() {
    let api = FakeApiServer::start();
    api.define(CONFIG_MAP);
    let watched = WatchedApp::start_on(api, Watching::default()).await;
    let query = query("demo", "ConfigMap");
    assert_refused(&watched, &query, "extend its role").await;
    let rule = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]);
    watched.api.grant_rules(CLOAKROOM_USER, None, rule);
    // The watches of the refused upload have ended, so nothing is known before the next one.
    assert!(watched.owners.watches().iter().all(|watch| watch.kind.as_str() != "ConfigMap"));
    watched.stage(&query).await;
    watched.until(&owner_of("ConfigMap", "demo", "app=demo"), Presence::Absent).await;
}

#[tokio::test]
async fn rights_that_are_lost_later_are_no_reason_to_refuse() {
    let watched = WatchedApp::start().await;
    watched.stage_demo().await;
    watched.api.revoke_all(CLOAKROOM_USER);
    watched.api.end_watches();
    watched.until_watches(WatchState::Forbidden).await;
    watched.stage_demo().await;
}

#[tokio::test]
async fn an_api_server_that_cannot_be_asked_is_no_reason_to_refuse() {
    let mut watching = Watching::default();
    watching.settings.admission_timeout = std::time::Duration::from_millis(200);
    for fault in [Fault::Hang, Fault::Status(500), Fault::Status(429)] {
        let watched = WatchedApp::start_with(watching.clone()).await;
        watched.api.fail(Verb::Any, fault);
        watched.stage_demo().await;
        watched.stage(&query("demo", "Deployment")).await;
    }
    let watched = WatchedApp::start_with(watching).await;
    watched.api.stop();
    watched.stage_demo().await;
    watched.stage(&query("demo", "Deployment")).await;
}

#[tokio::test]
async fn namespaces_that_are_not_the_servers_are_refused_and_never_watched() {
    let api = FakeApiServer::start();
    api.revoke_all(CLOAKROOM_USER);
    for namespace in ["demo", "etl"] {
        api.grant_rules(CLOAKROOM_USER, Some(namespace), rights());
        api.create_pod(namespace, "driver", &[("app", "demo")]);
    }
    let mut watching = Watching::default();
    watching.settings.namespaces = Some(Namespaces::parse("demo,etl").unwrap());
    let watched = WatchedApp::start_on(api, watching).await;
    assert_refused(&watched, &query("other", "Pod"), "demo,etl").await;
    for namespace in ["demo", "etl"] {
        let ticket = watched.stage(&query(namespace, "Pod")).await;
        let owner = owner_of("Pod", namespace, "app=demo");
        watched.until(&owner, Presence::Present).await;
        watched.fetch(&ticket).await;
        watched.sweep().await;
        watched.api.delete_pod(namespace, "driver");
        watched.until(&owner, Presence::Absent).await;
        watched.sweep().await;
        assert_eq!(watched.sweep_after(MINUTE).await.expired, 1);
        watched.assert_gone(&ticket, "orphaned").await;
    }
    for call in watched.api.calls_to(Verb::List) {
        assert!(
            ["/api/v1/namespaces/demo/pods", "/api/v1/namespaces/etl/pods"].contains(&call.path.as_str()),
            "{call:?}"
        );
    }
}

#[tokio::test]
async fn a_kind_without_its_definition_keeps_what_is_staged_and_takes_no_more() {
    let watched = WatchedApp::start().await;
    let name = SPARK_APPLICATION.as_owner();
    let query = query("demo", &name);
    watched.api.create(SPARK_APPLICATION, "demo", "etl", &[("app", "demo")]);
    let ticket = watched.stage(&query).await;
    let owner = owner_of(&name, "demo", "app=demo");
    watched.until(&owner, Presence::Present).await;
    watched.fetch(&ticket).await;
    watched.sweep().await;
    watched.api.undefine(SPARK_APPLICATION);
    watched.api.end_watches();
    watched.until_watches(WatchState::NoSuchKind).await;
    for _ in 0..30 {
        assert_eq!(watched.sweep_after(24 * 60 * MINUTE).await.expired, 0);
    }
    watched.assert_kept(&ticket, "no-such-kind").await;
    let refused = problem(watched.try_stage(&query).await).await;
    assert_eq!((refused.status, refused.code.as_str()), (400, "invalid-owner"));
    // Defined again, it is known again, and what is gone is gone.
    watched.api.delete(SPARK_APPLICATION, "demo", "etl");
    watched.api.define(SPARK_APPLICATION);
    watched.until(&owner, Presence::Absent).await;
    watched.sweep().await;
    assert_eq!(watched.sweep_after(MINUTE).await.expired, 1);
    watched.assert_gone(&ticket, "orphaned").await;
}
