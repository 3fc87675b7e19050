//! Sweeps beside an API server that does not answer: nothing else waits for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloakroom_core::protocol::v1::Ticket;
use cloakroom_core::resource::KeepReason;
use cloakroom_server::owners::{Presence, Unknown};
use cloakroom_testing::wait::until;

use crate::support::TestApp;
use crate::support::app::Options;
use crate::support::owners::{ScriptedOwners, owner};
use crate::support::watched::{HOUR, MINUTE};

const WEEK: Duration = Duration::from_hours(7 * 24);

/// A server whose owners are as the test says.
async fn scripted(presence: Presence, cleanup_interval: Duration) -> (TestApp, Arc<ScriptedOwners>) {
    let owners = ScriptedOwners::all(presence);
    let options = Options { owners: Arc::clone(&owners) as _, cleanup_interval, ..Options::default() };
    (TestApp::start_with(options).await, owners)
}

async fn stage_for(app: &TestApp, namespace: &str, pod: &str, more: &str) -> Ticket {
    let path = format!("/api/v1/resources/deps.tgz?namespace={namespace}&name={pod}{more}");
    app.ticket(app.client.put(app.url(&path)).body("jars").send().await.unwrap()).await
}

#[tokio::test]
async fn a_ttl_ends_while_a_sweep_waits_for_the_api_server() {
    let (app, owners) = scripted(Presence::Absent, Duration::from_hours(24)).await;
    stage_for(&app, "demo", "never", "").await;
    let with_ttl = stage_for(&app, "other", "driver", "&ttl=1h").await;
    app.sweep().await;
    owners.answer_only(0);
    app.clock.advance(HOUR);
    let sweep = tokio::spawn(app.sweeping());
    let is_gone = BTreeMap::from([("ready", 1), ("deleted", 1)]);
    until("the one with the ttl is gone", async || app.rows().await == is_gone).await;
    assert!(!sweep.is_finished());
    assert_eq!(app.download(&with_ttl).send().await.unwrap().status(), 410);
    owners.answer_only(1);
    assert_eq!(sweep.await.unwrap().expired, 2);
}

#[tokio::test]
async fn a_sweep_of_silent_owners_ends_in_time_and_takes_turns_by_namespace() {
    let (app, owners) = scripted(Presence::Absent, Duration::from_millis(500)).await;
    for number in 0..40 {
        stage_for(&app, "many", &format!("driver-{number}"), "").await;
    }
    stage_for(&app, "one", "driver", "").await;
    app.sweep().await;
    // The time is over for one sweep, and for each one after it: only the first answers come.
    owners.answer_only(2);
    app.clock.advance(HOUR);
    let kept = until_kept(&app).await;
    assert_eq!(kept.get(&KeepReason::OwnerGone), Some(&39));
    let left = app.staging.ready(None, 1000);
    assert!(left.iter().all(|listed| listed.owner.namespace() == "many"), "the other namespace had no turn");
}

/// What the first sweep kept that found something due.
async fn until_kept(app: &TestApp) -> BTreeMap<KeepReason, u64> {
    let last = Mutex::new(BTreeMap::new());
    let two_are_gone = async || {
        let kept = app.sweep().await.kept;
        *last.lock().unwrap() = kept;
        app.rows().await.get("ready") == Some(&39)
    };
    until("a sweep has run out of time", two_are_gone).await;
    last.into_inner().unwrap()
}

#[tokio::test]
async fn a_fresh_read_keeps_what_is_older_than_max_unused_unless_it_fails_too() {
    let (app, owners) = scripted(Presence::Unknown(Unknown::Forbidden), Duration::from_hours(24)).await;
    stage_for(&app, "demo", "driver", "").await;
    owners.fresh_is(&owner("driver"), Presence::Present);
    app.clock.advance(WEEK + MINUTE);
    let swept = app.sweep().await;
    assert_eq!((swept.expired, swept.kept.get(&KeepReason::OwnerPresent)), (0, Some(&1)));
    owners.fresh_is(&owner("driver"), Presence::Unknown(Unknown::Failing));
    assert_eq!(app.sweep().await.expired, 1);
}
