//! Another cluster behind the same address: rebuilt, restored from elsewhere, a wrong kubeconfig.

use std::sync::Arc;

use cloakroom::owners::{ClusterIdentity, Presence};
use cloakroom::protocol::admin::{ClusterStatus, ServerStatus};
use cloakroom::protocol::v1::Ticket;
use reqwest::Method;

use crate::admin::Administered;
use crate::support::api_server::{Fault, Verb};
use crate::support::app::{Options, problem};
use crate::support::cluster::NAMESPACE;
use crate::support::logs;
use crate::support::owners::{ScriptedOwners, owner};
use crate::support::watched::{HOUR, MINUTE, WatchedApp};

fn uid(uid: &str) -> ClusterIdentity {
    ClusterIdentity::Uid(uid.to_owned())
}

/// A server with an admin, a used resource, and a cluster that is known.
async fn settled(identity: ClusterIdentity) -> (Administered, Arc<ScriptedOwners>, Ticket) {
    let owners = ScriptedOwners::all(Presence::Present);
    owners.cluster_is(identity);
    let options = Options { owners: Arc::clone(&owners) as _, ..Options::default() };
    let server = Administered::start_with(options).await;
    let ticket = server.stage("demo", "Pod", "demo").await;
    server.use_once(&ticket).await;
    server.app.sweep().await;
    (server, owners, ticket)
}

/// Sweeps for so long after its owner went that it would be gone; why it is kept, if it is.
async fn kept_after_the_grace(server: &Administered, ticket: &Ticket) -> Option<String> {
    for _ in 0..4 {
        server.app.clock.advance(2 * MINUTE);
        server.app.sweep().await;
    }
    let path = format!("/api/v1/resources/{}/metadata", ticket.resource_id);
    let answer = server.app.get(&path).bearer_auth(&ticket.resource_secret).send().await.unwrap();
    let metadata: serde_json::Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    metadata["keptBecause"].as_str().map(str::to_owned)
}

#[tokio::test]
async fn while_another_cluster_answers_nothing_goes_until_an_admin_accepts_it() {
    let (server, owners, ticket) = settled(uid("first-cluster")).await;
    owners.are(Presence::Absent);
    owners.cluster_is(uid("second-cluster"));
    assert_eq!(kept_after_the_grace(&server, &ticket).await.as_deref(), Some("other-cluster"));
    assert_eq!(owners.take_reads(), [], "the owners of another cluster are nobody's business");
    assert_eq!(server.app.metric("other_cluster").await, "1");
    let lines = logs::lines_with("another cluster answers");
    let is_said = |line: &&String| {
        line.contains("ERROR") && line.contains("first-cluster") && line.contains("second-cluster")
    };
    assert_eq!(lines.iter().filter(is_said).count(), 1, "{lines:?}");
    let status: ServerStatus = server.get("/admin/v1/status").await;
    let expected = ClusterStatus { known: "first-cluster".to_owned(), seen: "second-cluster".to_owned() };
    assert_eq!(status.cluster, Some(expected));
    let refused = problem(server.ask(Method::PUT, "/admin/v1/clusters/third-cluster").await).await;
    assert_eq!((refused.status, refused.code.as_str()), (400, "invalid-parameter"));
    assert!(refused.detail.contains("second-cluster"), "{refused:?}");
    assert_eq!(kept_after_the_grace(&server, &ticket).await.as_deref(), Some("other-cluster"));
    assert_eq!(server.ask(Method::PUT, "/admin/v1/clusters/second-cluster").await.status(), 200);
    assert_eq!(server.app.sweep().await.deleted, [("orphaned", 1)].into());
    assert_eq!(server.app.metric("other_cluster").await, "0");
}

#[tokio::test]
async fn another_cluster_that_was_seen_is_not_forgotten_when_it_forbids_the_question() {
    let (server, owners, ticket) = settled(uid("known-one")).await;
    owners.are(Presence::Absent);
    owners.cluster_is(uid("strange-one"));
    assert_eq!(kept_after_the_grace(&server, &ticket).await.as_deref(), Some("other-cluster"));
    owners.cluster_is(ClusterIdentity::Forbidden);
    assert_eq!(kept_after_the_grace(&server, &ticket).await.as_deref(), Some("other-cluster"));
    assert_eq!(server.app.metric("other_cluster").await, "1");
}

#[tokio::test]
async fn a_cluster_that_comes_back_needs_no_admin() {
    let (server, owners, ticket) = settled(uid("the-cluster")).await;
    owners.are(Presence::Absent);
    owners.cluster_is(uid("a-wrong-kubeconfig"));
    assert_eq!(kept_after_the_grace(&server, &ticket).await.as_deref(), Some("other-cluster"));
    owners.are(Presence::Present);
    owners.cluster_is(uid("the-cluster"));
    assert_eq!(kept_after_the_grace(&server, &ticket).await.as_deref(), Some("owner-present"));
    assert_eq!(server.app.metric("other_cluster").await, "0");
    owners.are(Presence::Absent);
    assert_eq!(kept_after_the_grace(&server, &ticket).await, None, "it went");
}

#[tokio::test]
async fn a_cluster_that_cannot_be_asked_which_one_it_is_loses_nothing() {
    for (known, now, kept) in [
        (uid("known"), ClusterIdentity::Unknown, Some("watch-failing")),
        (uid("known"), ClusterIdentity::Missing, Some("other-cluster")),
        (ClusterIdentity::Unknown, ClusterIdentity::Unknown, Some("watch-failing")),
        // As ever where the role does not allow it.
        (uid("known"), ClusterIdentity::Forbidden, None),
        (ClusterIdentity::Forbidden, ClusterIdentity::Forbidden, None),
        (ClusterIdentity::Unknown, uid("known"), None),
    ] {
        let (server, owners, ticket) = settled(known.clone()).await;
        owners.are(Presence::Absent);
        owners.cluster_is(now.clone());
        assert_eq!(kept_after_the_grace(&server, &ticket).await.as_deref(), kept, "{known:?} {now:?}");
    }
}

#[tokio::test]
async fn the_uid_of_kube_system_tells_clusters_apart() {
    let watched = WatchedApp::start().await;
    watched.api.create(NAMESPACE, "", "kube-system", &[]);
    watched.api.create_pod("demo", "driver", &[("app", "demo")]);
    let ticket = watched.stage_demo().await;
    watched.until(&owner("app=demo"), Presence::Present).await;
    watched.fetch(&ticket).await;
    watched.sweep().await;
    let known = watched.app.staging.cluster().await.unwrap().unwrap();
    assert_eq!(known, watched.api.object(NAMESPACE, "", "kube-system").unwrap()["metadata"]["uid"]);
    // Everything is gone, and the namespace is another one.
    watched.api.delete_pod("demo", "driver");
    watched.api.delete(NAMESPACE, "", "kube-system");
    watched.api.create(NAMESPACE, "", "kube-system", &[]);
    watched.until(&owner("app=demo"), Presence::Absent).await;
    watched.assert_nothing_goes_for(HOUR).await;
    watched.assert_kept(&ticket, "other-cluster").await;
    assert_eq!(watched.app.staging.cluster().await.unwrap(), Some(known));
}

#[tokio::test]
async fn a_role_that_may_not_read_namespaces_is_said_once_and_all_is_as_ever() {
    let watched = WatchedApp::start().await;
    watched.api.fail_for(NAMESPACE, Verb::Get, Fault::Status(403));
    watched.api.create_pod("demo", "driver", &[("app", "demo")]);
    let ticket = watched.stage_demo().await;
    watched.until(&owner("app=demo"), Presence::Present).await;
    watched.fetch(&ticket).await;
    watched.sweep().await;
    watched.api.delete_pod("demo", "driver");
    watched.until(&owner("app=demo"), Presence::Absent).await;
    watched.sweep().await;
    assert_eq!(watched.sweep_after(2 * MINUTE).await.expired, 1);
    watched.assert_gone(&ticket, "orphaned").await;
    assert!(!logs::lines_with("may not read the namespace kube-system").is_empty());
    let asked =
        watched.api.calls_to(Verb::Get).into_iter().filter(|call| call.path.ends_with("/kube-system"));
    assert!(asked.count() <= 3, "once for each change of a watch, and not before each deletion");
}
