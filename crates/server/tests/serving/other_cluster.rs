//! Another cluster behind the same address: rebuilt, restored from elsewhere, a wrong kubeconfig.

use std::sync::Arc;
use std::time::Duration;

use cloakroom_cluster::ApiFailure;
use cloakroom_core::protocol::admin::{AcceptedCluster, ClusterStatus, ServerStatus};
use cloakroom_core::protocol::status::ClusterMatch;
use cloakroom_core::protocol::v1::Ticket;
use cloakroom_core::resource::{DeletionReason, KeepReason};
use cloakroom_server::owners::{ClusterIdentity, NoAnswer, NoUid, Presence, Unknown};
use cloakroom_testing::api_server::{Fault, Verb};
use cloakroom_testing::cluster::NAMESPACE;
use cloakroom_testing::logs;
use reqwest::Method;

use crate::admin::{Administered, read};
use crate::support::app::{Options, problem};
use crate::support::owners::{ClusterAnswer, ScriptedOwners, owner};
use crate::support::watched::{HOUR, MINUTE, SECOND, WatchedApp};

const FORBIDDEN: ClusterAnswer = Ok(ClusterIdentity::WithoutUid(NoUid::Forbidden));
const MISSING: ClusterAnswer = Ok(ClusterIdentity::WithoutUid(NoUid::Missing));

fn uid(uid: &str) -> ClusterAnswer {
    Ok(ClusterIdentity::Uid(uid.to_owned()))
}

fn no_answer() -> ClusterAnswer {
    Err(NoAnswer::Failed(ApiFailure::Refused { code: 500, message: "etcd is away".to_owned() }))
}

fn options(owners: &Arc<ScriptedOwners>) -> Options {
    Options { owners: Arc::clone(owners) as _, ..Options::default() }
}

/// A server with an admin, a used resource, and a cluster that is known.
async fn settled(cluster: ClusterAnswer) -> (Administered, Arc<ScriptedOwners>, Ticket) {
    let owners = ScriptedOwners::all(Presence::Present);
    owners.cluster_is(cluster);
    let server = Administered::start_with(options(&owners)).await;
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

async fn status(server: &Administered) -> ClusterStatus {
    server.get::<ServerStatus>("/admin/v1/status").await.cluster.unwrap()
}

/// What an admin is told who accepts a cluster: the uids that are known now and were before.
async fn accept(server: &Administered, named: &str) -> (Option<String>, Option<String>) {
    let answer = server.ask(Method::PUT, &format!("/admin/v1/clusters/{named}")).await;
    let AcceptedCluster { known, known_before } = read(answer).await;
    (known, known_before)
}

/// Status, code and text of the refusal.
async fn refused(server: &Administered, named: &str) -> (u16, String, String) {
    let refused = problem(server.ask(Method::PUT, &format!("/admin/v1/clusters/{named}")).await).await;
    (refused.status, refused.code.to_string(), refused.detail)
}

/// How many lines of that level have all of these words, of which the first is this test's own.
fn said(level: &str, words: &[&str]) -> usize {
    let lines = logs::lines_with(words[0]);
    let is_said = |line: &&String| line.contains(level) && words.iter().all(|word| line.contains(word));
    lines.iter().filter(is_said).count()
}

#[tokio::test]
async fn while_another_cluster_answers_nothing_goes_until_an_admin_accepts_it() {
    let (server, owners, ticket) = settled(uid("first-cluster")).await;
    owners.are(Presence::Absent);
    owners.cluster_is(uid("second-cluster"));
    assert_eq!(kept_after_the_grace(&server, &ticket).await.as_deref(), Some("other-cluster"));
    assert_eq!(owners.take_reads(), [], "the owners of another cluster are nobody's business");
    assert_eq!(server.app.metric("other_cluster").await, "1");
    assert_eq!(said("ERROR", &["first-cluster", "second-cluster", "another cluster answers"]), 1);
    let expected = ClusterStatus {
        state: ClusterMatch::Other.into(),
        known: Some("first-cluster".to_owned()),
        seen: Some("second-cluster".to_owned()),
        failure: None,
        unanswered: false,
    };
    assert_eq!(status(&server).await, expected);
    let (code, name, detail) = refused(&server, "third-cluster").await;
    assert_eq!((code, name.as_str()), (400, "invalid-parameter"));
    assert!(detail.contains("second-cluster"), "{detail}");
    assert_eq!(kept_after_the_grace(&server, &ticket).await.as_deref(), Some("other-cluster"));
    let (first, second) = (Some("first-cluster".to_owned()), Some("second-cluster".to_owned()));
    assert_eq!(accept(&server, "second-cluster").await, (second.clone(), first));
    assert_eq!(server.app.metric("other_cluster").await, "0");
    assert_eq!(accept(&server, "second-cluster").await, (second.clone(), second), "nothing is changed");
    assert_eq!(said("WARN", &["second-cluster", "the admin accepted the cluster"]), 1);
    assert_eq!(said("INFO", &["second-cluster", "nothing was changed"]), 1);
    assert_eq!(server.app.sweep().await.deleted, [].into(), "the grace begins now");
    assert_eq!(kept_after_the_grace(&server, &ticket).await, None, "it went");
}

#[tokio::test]
async fn a_cluster_that_hides_its_uid_loses_nothing_until_an_admin_gives_up() {
    let (server, owners, ticket) = settled(uid("open-one")).await;
    owners.are(Presence::Absent);
    owners.cluster_is(FORBIDDEN);
    let server = server.restart_with(options(&owners)).await;
    assert_eq!(kept_after_the_grace(&server, &ticket).await.as_deref(), Some("other-cluster"));
    assert_eq!(server.app.metric("other_cluster").await, "1");
    assert_eq!(said("ERROR", &["open-one", "does not show any more", "(403)"]), 1);
    let ClusterStatus { state, known, seen, failure, .. } = status(&server).await;
    assert_eq!((state.as_str(), known.as_deref(), seen), ("other", Some("open-one"), None));
    assert!(failure.unwrap().contains("403"));
    // A uid that cannot be seen is not believed to anybody.
    let (code, _, detail) = refused(&server, "open-one").await;
    assert!(code == 400 && detail.contains("403") && detail.contains("without-uid"), "{detail}");
    assert_eq!(accept(&server, "without-uid").await, (None, Some("open-one".to_owned())));
    assert_eq!(server.app.staging.cluster().await.unwrap(), None);
    assert_eq!(kept_after_the_grace(&server, &ticket).await, None, "it went");
    assert_eq!(server.app.metric("other_cluster").await, "0");
    // Where it can be read again, the check is there again.
    owners.are(Presence::Present);
    owners.cluster_is(uid("open-again"));
    let ticket = server.stage("demo", "Pod", "demo").await;
    server.use_once(&ticket).await;
    owners.are(Presence::Absent);
    server.app.sweep().await;
    assert_eq!(server.app.staging.cluster().await.unwrap().as_deref(), Some("open-again"));
}

// Invariant: observations of another cluster do not count.
#[tokio::test]
async fn absences_that_are_seen_in_another_cluster_do_not_count() {
    let (server, owners, ticket) = settled(uid("where-owners-are")).await;
    owners.are(Presence::Absent);
    server.app.sweep().await;
    let history = async |ticket: &Ticket| server.app.ready_row(&ticket.resource_id).await.data.history;
    let absent_since = async || history(&ticket).await.owner_history.absent_since;
    assert!(absent_since().await.is_some());
    // One sweep less than the grace later, another cluster is there.
    server.app.clock.advance(50 * SECOND);
    owners.cluster_is(uid("where-they-are-not"));
    owners.are(Presence::Present);
    server.app.sweep().await;
    owners.are(Presence::Absent);
    assert_eq!(kept_after_the_grace(&server, &ticket).await.as_deref(), Some("other-cluster"));
    assert_eq!(absent_since().await, None);
    owners.cluster_is(uid("where-owners-are"));
    // This sweep finds out that it is the same again, and the next one begins to look.
    for pause in [30, 30, 59] {
        server.app.clock.advance(pause * SECOND);
        assert_eq!(server.app.sweep().await.deleted, [].into(), "the grace begins anew");
    }
    server.app.clock.advance(SECOND);
    assert_eq!(server.app.sweep().await.deleted, [(DeletionReason::Orphaned, 1)].into());
}

#[tokio::test]
async fn an_owner_that_is_seen_in_another_cluster_was_not_seen() {
    let owners = ScriptedOwners::all(Presence::Absent);
    owners.cluster_is(uid("one-without-it"));
    let server = Administered::start_with(options(&owners)).await;
    let [used, unused] = [server.stage("demo", "Pod", "a").await, server.stage("demo", "Pod", "b").await];
    server.app.sweep().await;
    owners.cluster_is(uid("one-with-it"));
    owners.are(Presence::Present);
    server.app.sweep().await;
    server.use_once(&used).await;
    server.app.sweep().await;
    for ticket in [&used, &unused] {
        let history = server.app.ready_row(&ticket.resource_id).await.data.history;
        assert_eq!(history.owner_history.seen_at, None);
    }
    // What nobody downloads goes after its time in any cluster.
    server.app.clock.advance(Duration::from_hours(8 * 24));
    assert_eq!(server.app.sweep().await.deleted, [(DeletionReason::MaxUnusedReached, 1)].into());
}

#[tokio::test]
async fn a_cluster_that_changes_while_a_sweep_reads_deletes_nothing() {
    let (server, owners, ticket) = settled(uid("before-the-read")).await;
    owners.are(Presence::Absent);
    server.app.sweep().await;
    owners.cluster_changes_with_the_next_read(uid("after-the-read"));
    server.app.clock.advance(2 * MINUTE);
    let swept = server.app.sweep().await;
    assert_eq!(
        (swept.deleted, swept.kept),
        ([].into(), [(KeepReason::OwnerUnknown(Unknown::OtherCluster), 1)].into())
    );
    assert_eq!(owners.take_reads().len(), 1);
    assert_eq!(kept_after_the_grace(&server, &ticket).await.as_deref(), Some("other-cluster"));
}

#[tokio::test]
async fn another_cluster_that_was_seen_is_remembered_after_any_later_answer() {
    let (server, owners, ticket) = settled(uid("known-one")).await;
    owners.are(Presence::Absent);
    for answer in [uid("strange-one"), FORBIDDEN, no_answer(), MISSING, no_answer()] {
        owners.cluster_is(answer.clone());
        let kept = kept_after_the_grace(&server, &ticket).await;
        assert_eq!(kept.as_deref(), Some("other-cluster"), "{answer:?}");
        assert_eq!(server.app.metric("other_cluster").await, "1", "{answer:?}");
        assert_eq!(status(&server).await.unanswered, answer.is_err(), "{answer:?}");
    }
    assert_eq!(said("ERROR", &["known-one", "does not show any more", "(404)"]), 1);
    // It is the last uid that was seen, and not the one of the cluster that answers.
    let (code, name, detail) = refused(&server, "strange-one").await;
    assert_eq!((code, name.as_str()), (503, "cluster-unavailable"));
    assert!(detail.contains("etcd is away"), "{detail}");
    owners.cluster_is(MISSING);
    assert!(refused(&server, "strange-one").await.2.contains("404"));
    assert_eq!(server.app.staging.cluster().await.unwrap().as_deref(), Some("known-one"));
    // What the watches do not know themselves has a reason of its own.
    owners.are(Presence::Unknown(Unknown::Forbidden));
    assert_eq!(kept_after_the_grace(&server, &ticket).await.as_deref(), Some("forbidden"));
}

#[tokio::test]
async fn an_admin_accepts_what_answers_now_and_not_what_a_sweep_saw() {
    let (server, owners, _) = settled(uid("oldest")).await;
    owners.are(Presence::Absent);
    owners.cluster_is(uid("older"));
    server.app.sweep().await;
    owners.cluster_is(uid("newest"));
    let (code, _, detail) = refused(&server, "older").await;
    assert!(code == 400 && detail.contains("newest"), "{detail}");
    assert!(refused(&server, "without-uid").await.2.contains("newest"));
    assert_eq!(accept(&server, "newest").await, (Some("newest".to_owned()), Some("oldest".to_owned())));
    assert_eq!(server.app.staging.cluster().await.unwrap().as_deref(), Some("newest"));
}

#[tokio::test]
async fn a_server_that_asks_no_cluster_has_none_to_accept() {
    let server = Administered::start().await;
    for named in ["a-cluster", "without-uid"] {
        let (code, name, detail) = refused(&server, named).await;
        assert_eq!((code, name.as_str()), (400, "invalid-parameter"));
        assert!(detail.contains("--no-kubernetes"), "{detail}");
    }
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
async fn the_gauge_of_another_cluster_ends_with_it_even_if_nothing_is_staged() {
    let (server, owners, ticket) = settled(uid("gauged")).await;
    owners.are(Presence::Absent);
    owners.cluster_is(uid("gauged-wrongly"));
    server.app.sweep().await;
    assert_eq!(server.app.metric("other_cluster").await, "1");
    assert_eq!(server.app.delete(&ticket).send().await.unwrap().status(), 204);
    server.app.sweep().await;
    assert_eq!(server.app.metric("other_cluster").await, "1");
    owners.cluster_is(uid("gauged"));
    server.app.sweep().await;
    assert_eq!(server.app.metric("other_cluster").await, "0");
}

#[tokio::test]
async fn a_cluster_that_cannot_be_asked_which_one_it_is_loses_nothing() {
    for (known, now, kept) in [
        (uid("known"), no_answer(), Some("watch-failing")),
        (uid("known"), MISSING, Some("other-cluster")),
        (uid("known"), FORBIDDEN, Some("other-cluster")),
        (no_answer(), no_answer(), Some("watch-failing")),
        // As ever where it never could be read.
        (FORBIDDEN, FORBIDDEN, None),
        (MISSING, MISSING, None),
        (FORBIDDEN, uid("known"), None),
        (no_answer(), uid("known"), None),
    ] {
        let (server, owners, ticket) = settled(known.clone()).await;
        owners.are(Presence::Absent);
        owners.cluster_is(now.clone());
        assert_eq!(kept_after_the_grace(&server, &ticket).await.as_deref(), kept, "{known:?} {now:?}");
        let gauge = if kept == Some("other-cluster") { "1" } else { "0" };
        assert_eq!(server.app.metric("other_cluster").await, gauge, "{known:?} {now:?}");
    }
    assert!(!logs::lines_with("cannot be asked which cluster it is").is_empty());
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
    assert!(!logs::lines_with("the uid of the cluster cannot be read").is_empty());
    let asked =
        watched.api.calls_to(Verb::Get).into_iter().filter(|call| call.path.ends_with("/kube-system"));
    assert!(asked.count() <= 3, "once for each sweep that learns something");
}
