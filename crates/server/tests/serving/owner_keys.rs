//! What was asked for once is not asked for ever: label keys and kinds go with the resources that need them.

use cloakroom_core::protocol::v1::Ticket;
use cloakroom_core::resource::Owner;
use cloakroom_server::owners::{Owners as _, Presence, Unknown, WatchState};
use cloakroom_testing::api_server::Verb;
use cloakroom_testing::wait::until_true;
use cloakroom_testing::wire::Wire;

use crate::support::WatchedApp;
use crate::support::app::problem;
use crate::support::owners::owner;

const TEAM: &str = "namespace=demo&label=team%3Detl";

/// Owners whose label keys are all that a namespace has room for.
fn all_keys() -> Vec<Owner> {
    let keys = |from: usize| (from..from + 50).map(|key| format!("k{key}=x")).collect::<Vec<_>>().join(",");
    (0..1000).step_by(50).map(|from| owner(&keys(from))).collect()
}

async fn release(watched: &WatchedApp, ticket: &Ticket) {
    let url = watched.app.url(&format!("/api/v1/resources/{}", ticket.resource_id));
    let answer = watched.app.client.delete(url).bearer_auth(&ticket.resource_secret).send().await.unwrap();
    assert_eq!(answer.status(), 204);
}

/// The sweep in whose time something ended may have passed its place already.
async fn sweep_twice(watched: &WatchedApp) {
    watched.sweep().await;
    watched.sweep().await;
}

fn lists(watched: &WatchedApp) -> usize {
    watched.api.calls_to(Verb::List).len()
}

// Invariant: label keys and kinds are forgotten when no resource needs them, and are bounded while one does.
#[tokio::test]
async fn a_label_key_that_no_resource_needs_any_more_is_forgotten() {
    let watched = WatchedApp::start().await;
    watched.api.create_pod("demo", "driver", &[("app", "demo"), ("team", "etl")]);
    let demo = watched.stage_demo().await;
    let tickets = [watched.stage(TEAM).await, watched.stage(TEAM).await];
    watched.until(&owner("team=etl"), Presence::Present).await;
    watched.api.forget_calls();
    for (ticket, is_known) in tickets.iter().zip([true, false]) {
        release(&watched, ticket).await;
        sweep_twice(&watched).await;
        let presence = watched.owners.presence(&owner("team=etl"));
        let expected = if is_known { Presence::Present } else { Presence::Unknown(Unknown::Starting) };
        assert_eq!(presence, expected);
    }
    watched.assert_kept(&demo, "owner-present").await;
    assert_eq!(lists(&watched), 0, "forgetting costs no call");
    watched.stage(TEAM).await;
    watched.until(&owner("team=etl"), Presence::Present).await;
    assert!(lists(&watched) > 0, "a key that comes back needs a list");
}

#[tokio::test]
async fn a_kinds_watches_end_after_its_last_resource_and_begin_with_the_next() {
    let watched = WatchedApp::start().await;
    let query = "namespace=demo&kind=Deployment&name=server";
    let pods = watched.stage_demo().await;
    let deployment = watched.stage(query).await;
    watched.until_watches(WatchState::Ready).await;
    let is_counted = async || {
        let metrics = watched.app.get("/metrics").send().await.unwrap().text().await.unwrap();
        metrics.contains("cloakroom_owner_watches{kind=\"Deployment\"")
    };
    assert!(is_counted().await);
    sweep_twice(&watched).await;
    assert_eq!(watched.owners.watches().len(), 3, "two of pods, one of deployments");
    release(&watched, &deployment).await;
    sweep_twice(&watched).await;
    assert!(watched.owners.watches().iter().all(|watch| watch.kind.as_str() == "Pod"));
    assert!(!is_counted().await);
    watched.stage(query).await;
    assert_eq!(watched.owners.watches().len(), 3);
    watched.until_watches(WatchState::Ready).await;
    release(&watched, &pods).await;
    sweep_twice(&watched).await;
    assert!(watched.owners.watches().iter().all(|watch| watch.kind.as_str() == "Deployment"));
}

#[tokio::test]
async fn an_upload_in_flight_keeps_what_it_was_admitted_for() {
    let watched = WatchedApp::start().await;
    watched.api.create_pod("demo", "driver", &[("team", "etl")]);
    let mut wire = Wire::connect(watched.app.address).await;
    let head = format!("PUT /api/v1/resources?{TEAM} HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n");
    wire.send(head).await;
    until_true("the upload is in flight", || watched.app.staging.in_flight() == (1, 0)).await;
    watched.until(&owner("team=etl"), Presence::Present).await;
    sweep_twice(&watched).await;
    sweep_twice(&watched).await;
    watched.api.forget_calls();
    wire.send("jars").await;
    assert_eq!(wire.answer().await.status, 201);
    sweep_twice(&watched).await;
    assert_eq!(watched.owners.presence(&owner("team=etl")), Presence::Present);
    assert_eq!(lists(&watched), 0, "nothing was forgotten in between");
}

#[tokio::test]
async fn an_upload_that_breaks_off_leaves_nothing_to_be_watched() {
    let watched = WatchedApp::start().await;
    let mut wire = Wire::connect(watched.app.address).await;
    let head = format!("PUT /api/v1/resources?{TEAM} HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n");
    wire.send(head).await;
    until_true("the upload is in flight", || watched.app.staging.in_flight() == (1, 0)).await;
    drop(wire);
    until_true("the upload is over", || watched.app.staging.in_flight() == (0, 0)).await;
    sweep_twice(&watched).await;
    assert_eq!(watched.owners.watches(), []);
}

#[tokio::test]
async fn a_namespace_has_room_for_so_many_label_keys_and_no_more() {
    let watched = WatchedApp::start().await;
    for owner in all_keys() {
        watched.owners.follow(&owner);
    }
    let refused = problem(watched.try_stage(TEAM).await).await;
    assert_eq!((refused.status, refused.code.as_str()), (400, "invalid-owner"));
    assert!(
        refused.detail.contains("in namespace “demo” ask for 1000 different label keys"),
        "{}",
        refused.detail
    );
    watched.stage("namespace=other&label=team%3Detl").await;
    watched.stage("namespace=demo&label=k7%3Dx").await;
    watched.stage("namespace=demo&name=driver").await;
}

#[tokio::test]
async fn a_resource_with_too_many_label_keys_stays_until_they_have_room() {
    let watched = WatchedApp::start().await;
    let ticket = watched.stage(TEAM).await;
    watched.fetch(&ticket).await;
    let all = all_keys();
    let known: Vec<_> = all.iter().map(|owner| (owner, Presence::Absent)).collect();
    let watched = watched.restart(&known).await;
    watched.assert_kept(&ticket, "too-many-label-keys").await;
    // Nothing needs the others.
    sweep_twice(&watched).await;
    watched.until(&owner("team=etl"), Presence::Absent).await;
}
