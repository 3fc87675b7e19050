//! When a resource goes: its owner, its downloads and the time, with the watches of a cluster and a clock that is moved
//! by hand.

use std::collections::BTreeMap;
use std::time::Duration;

use cloakroom_core::clock::Clock as _;
use cloakroom_core::protocol::v1::Ticket;
use cloakroom_core::resource::DeletionReason;
use cloakroom_server::cleaner::{Policy, Swept};
use cloakroom_server::owners::{Presence, WatchState};
use cloakroom_testing::logs;
use cloakroom_testing::wait::until;
use cloakroom_testing::wire::Wire;

use crate::support::WatchedApp;
use crate::support::faults::{Side, Step};
use crate::support::owners::{owner, owner_of};
use crate::support::watched::{HOUR, MINUTE, SECOND, Watching};

const MOMENT: Duration = Duration::from_millis(1);
const DAY: Duration = Duration::from_hours(24);
const DEMO: [(&str, &str); 1] = [("app", "demo")];

/// Stays until just before `time` has passed from now on, and then goes for `reason`.
async fn assert_goes_after(watched: &WatchedApp, ticket: &Ticket, time: Duration, reason: &str) {
    assert_eq!(watched.sweep_after(time - MOMENT).await.expired, 0, "too early");
    assert_eq!(watched.fate(ticket).await, None);
    assert_eq!(watched.sweep_after(MOMENT).await.expired, 1, "too late");
    watched.assert_gone(ticket, reason).await;
}

/// A bundle that its driver downloaded, seen by a sweep.
async fn used_and_seen(watched: &WatchedApp) -> Ticket {
    let ticket = watched.stage_demo().await;
    watched.api.create_pod("demo", "driver", &DEMO);
    watched.until(&owner("app=demo"), Presence::Present).await;
    watched.fetch(&ticket).await;
    watched.sweep_after(30 * SECOND).await;
    ticket
}

/// The driver goes, the watches know it, and a sweep sees that for the first time.
async fn delete_driver_and_sweep(watched: &WatchedApp) {
    watched.api.delete_pod("demo", "driver");
    watched.until(&owner("app=demo"), Presence::Absent).await;
    assert_eq!(watched.sweep_after(30 * SECOND).await.expired, 0);
}

#[tokio::test]
async fn what_nobody_uses_and_nobody_owns_goes_after_its_unused_timeout() {
    let watched = WatchedApp::start().await;
    let ticket = watched.stage_demo().await;
    watched.until(&owner("app=demo"), Presence::Absent).await;
    assert_eq!(watched.sweep().await.expired, 0);
    assert_goes_after(&watched, &ticket, 30 * MINUTE, "unused").await;
}

#[tokio::test]
async fn a_driver_that_is_replaced_after_the_unused_timeout_keeps_its_jars() {
    let watched = WatchedApp::start().await;
    let ticket = watched.stage_demo().await;
    watched.api.create_pod("demo", "driver", &DEMO);
    watched.until(&owner("app=demo"), Presence::Present).await;
    assert_eq!(watched.sweep_after(HOUR).await.expired, 0);
    watched.api.delete_pod("demo", "driver");
    watched.until(&owner("app=demo"), Presence::Absent).await;
    assert_eq!(watched.sweep_after(30 * SECOND).await.expired, 0);
    watched.api.create_pod("demo", "driver-2", &DEMO);
    watched.until(&owner("app=demo"), Presence::Present).await;
    assert_eq!(watched.sweep_after(HOUR).await.expired, 0);
    watched.api.delete_pod("demo", "driver-2");
    watched.until(&owner("app=demo"), Presence::Absent).await;
    assert_eq!(watched.sweep().await.expired, 0);
    assert_goes_after(&watched, &ticket, MINUTE, "unused").await;
}

#[tokio::test]
async fn a_driver_that_waits_for_a_node_for_days_keeps_its_jars() {
    let watched = WatchedApp::start().await;
    let ticket = watched.stage_demo().await;
    watched.api.create_pod("demo", "driver", &DEMO);
    watched.until(&owner("app=demo"), Presence::Present).await;
    // Longer than --max-unused, too.
    for _ in 0..40 {
        assert_eq!(watched.sweep_after(6 * HOUR).await.expired, 0);
    }
    watched.assert_kept(&ticket, "owner-present").await;
    watched.fetch(&ticket).await;
    delete_driver_and_sweep(&watched).await;
    assert_goes_after(&watched, &ticket, MINUTE, "orphaned").await;
}

#[tokio::test]
async fn an_orphan_goes_after_the_grace_and_not_before() {
    let watched = WatchedApp::start().await;
    let ticket = used_and_seen(&watched).await;
    for _ in 0..3 {
        assert_eq!(watched.sweep_after(30 * DAY).await.expired, 0);
    }
    delete_driver_and_sweep(&watched).await;
    watched.assert_kept(&ticket, "owner-gone").await;
    assert_goes_after(&watched, &ticket, MINUTE, "orphaned").await;
}

#[tokio::test]
async fn the_log_says_how_many_resources_a_sweep_deleted_for_which_reason() {
    let watched = WatchedApp::start().await;
    for _ in 0..2 {
        watched.stage("namespace=demo&label=app%3Dnever").await;
    }
    let mut used = Vec::new();
    for _ in 0..7 {
        used.push(watched.stage_demo().await);
    }
    watched.api.create_pod("demo", "driver", &DEMO);
    watched.until(&owner("app=demo"), Presence::Present).await;
    watched.until(&owner("app=never"), Presence::Absent).await;
    for ticket in &used {
        watched.fetch(ticket).await;
    }
    watched.sweep_after(30 * SECOND).await;
    delete_driver_and_sweep(&watched).await;
    assert_eq!(watched.sweep_after(30 * MINUTE).await.expired, 9);
    // The log is that of all tests here. No other one has these numbers.
    let line = "swept expired=9 unused=2 orphaned=7 interrupted_uploads=0 interrupted_deletions=0 strays=0";
    assert!(!logs::lines_with(line).is_empty(), "{:?}", logs::lines_with("swept expired=9"));
}

#[test]
fn the_log_has_every_reason_for_which_a_sweep_deletes() {
    logs::capture();
    let others = [DeletionReason::Released, DeletionReason::Removed];
    let reasons = DeletionReason::ALL.iter().copied().filter(|reason| !others.contains(reason));
    let counts: BTreeMap<_, u64> = reasons.zip(9001..).collect();
    let mut swept = Swept::default();
    swept.expired += counts.values().sum::<u64>();
    swept.deleted.extend(counts.clone());
    swept.log();
    let lines = logs::lines_with(&format!("swept expired={} ", swept.expired));
    for (reason, count) in counts {
        let field = format!(" {}={count} ", reason.as_str().replace('-', "_"));
        assert!(lines.iter().any(|line| line.contains(&field)), "{field}: {lines:?}");
    }
}

#[tokio::test]
async fn an_owner_first_missed_is_not_gone_yet_even_long_after_the_last_sweep() {
    let watched = WatchedApp::start().await;
    let ticket = used_and_seen(&watched).await;
    watched.api.delete_pod("demo", "driver");
    watched.until(&owner("app=demo"), Presence::Absent).await;
    watched.app.clock.advance(HOUR);
    assert_eq!(watched.sweep().await.expired, 0);
    assert_goes_after(&watched, &ticket, MINUTE, "orphaned").await;
}

#[tokio::test]
async fn a_download_holds_an_orphan_for_another_grace() {
    let watched = WatchedApp::start().await;
    let ticket = used_and_seen(&watched).await;
    delete_driver_and_sweep(&watched).await;
    watched.app.clock.advance(50 * SECOND);
    watched.fetch(&ticket).await;
    assert_goes_after(&watched, &ticket, MINUTE, "orphaned").await;
}

#[tokio::test]
async fn an_owner_that_comes_back_within_the_grace_keeps_its_jars() {
    let watched = WatchedApp::start().await;
    let ticket = used_and_seen(&watched).await;
    delete_driver_and_sweep(&watched).await;
    watched.api.create_pod("demo", "second-driver", &DEMO);
    watched.until(&owner("app=demo"), Presence::Present).await;
    watched.assert_nothing_goes_for(10 * MINUTE).await;
    watched.api.delete_pod("demo", "second-driver");
    watched.until(&owner("app=demo"), Presence::Absent).await;
    assert_eq!(watched.sweep().await.expired, 0);
    assert_goes_after(&watched, &ticket, MINUTE, "orphaned").await;
}

#[tokio::test]
async fn an_owner_that_was_seen_and_went_during_a_downtime_leaves_an_orphan() {
    let watched = WatchedApp::start().await;
    let ticket = used_and_seen(&watched).await;
    watched.api.delete_pod("demo", "driver");
    watched.app.clock.advance(HOUR);
    let watched = watched.restart(&[(&owner("app=demo"), Presence::Absent)]).await;
    watched.assert_kept(&ticket, "owner-gone").await;
    assert_goes_after(&watched, &ticket, MINUTE, "orphaned").await;
}

#[tokio::test]
async fn a_trial_download_three_minutes_before_its_owner_costs_nothing() {
    let watched = WatchedApp::start().await;
    let ticket = watched.stage_demo().await;
    watched.until(&owner("app=demo"), Presence::Absent).await;
    watched.fetch(&ticket).await;
    watched.assert_nothing_goes_for(3 * MINUTE).await;
    watched.assert_kept(&ticket, "owner-not-seen-yet").await;
    watched.api.create_pod("demo", "driver", &DEMO);
    watched.until(&owner("app=demo"), Presence::Present).await;
    watched.fetch(&ticket).await;
    watched.assert_nothing_goes_for(HOUR).await;
    delete_driver_and_sweep(&watched).await;
    assert_goes_after(&watched, &ticket, MINUTE, "orphaned").await;
}

#[tokio::test]
async fn a_resource_used_for_an_owner_that_never_comes_goes_after_the_timeout() {
    let watched = WatchedApp::start().await;
    let ticket = watched.stage_demo().await;
    watched.until(&owner("app=demo"), Presence::Absent).await;
    watched.app.clock.advance(20 * MINUTE);
    watched.fetch(&ticket).await;
    watched.sweep().await;
    assert_goes_after(&watched, &ticket, 30 * MINUTE, "owner-never-seen").await;
}

#[tokio::test]
async fn finished_pods_count_as_there_for_the_retention() {
    for phase in ["Succeeded", "Failed"] {
        let watched = WatchedApp::start().await;
        let ticket = used_and_seen(&watched).await;
        watched.api.set_phase("demo", "driver", phase);
        watched.until(&owner("app=demo"), Presence::Finished).await;
        assert_eq!(watched.sweep().await.expired, 0);
        watched.assert_kept(&ticket, "owner-finished").await;
        assert_goes_after(&watched, &ticket, DAY, "owner-finished").await;
    }
}

#[tokio::test]
async fn a_running_pod_is_present_and_retention_counts_from_the_last_finished() {
    let watched = WatchedApp::start().await;
    let ticket = used_and_seen(&watched).await;
    watched.api.create_pod("demo", "executor", &DEMO);
    watched.api.finish_pod("demo", "driver");
    watched.until(&owner("app=demo"), Presence::Present).await;
    watched.sweep().await;
    assert_eq!(watched.sweep_after(2 * DAY).await.expired, 0);
    watched.assert_kept(&ticket, "owner-present").await;
    watched.api.finish_pod("demo", "executor");
    watched.until(&owner("app=demo"), Presence::Finished).await;
    watched.sweep().await;
    assert_goes_after(&watched, &ticket, DAY, "owner-finished").await;
}

#[tokio::test]
async fn the_retention_goes_on_across_a_restart() {
    let watched = WatchedApp::start().await;
    let ticket = used_and_seen(&watched).await;
    watched.api.finish_pod("demo", "driver");
    watched.until(&owner("app=demo"), Presence::Finished).await;
    watched.sweep().await;
    watched.app.clock.advance(12 * HOUR);
    let watched = watched.restart(&[(&owner("app=demo"), Presence::Finished)]).await;
    assert_goes_after(&watched, &ticket, 12 * HOUR, "owner-finished").await;
}

#[tokio::test]
async fn a_retention_of_forever_ends_with_the_pods() {
    let policy = Policy { finished_owner_retention: None, ..Policy::default() };
    let watched = WatchedApp::start_with(Watching { policy, ..Watching::default() }).await;
    let ticket = used_and_seen(&watched).await;
    watched.api.finish_pod("demo", "driver");
    watched.until(&owner("app=demo"), Presence::Finished).await;
    for _ in 0..12 {
        assert_eq!(watched.sweep_after(30 * DAY).await.expired, 0);
    }
    watched.assert_kept(&ticket, "owner-finished").await;
    delete_driver_and_sweep(&watched).await;
    assert_goes_after(&watched, &ticket, MINUTE, "orphaned").await;
}

#[tokio::test]
async fn a_finished_pod_of_a_former_run_takes_nothing_from_the_unused_timeout() {
    let policy = Policy { finished_owner_retention: Some(Duration::ZERO), ..Policy::default() };
    let watched = WatchedApp::start_with(Watching { policy, ..Watching::default() }).await;
    watched.api.create_pod("demo", "former-driver", &DEMO);
    watched.api.finish_pod("demo", "former-driver");
    let ticket = watched.stage_demo().await;
    watched.until(&owner("app=demo"), Presence::Finished).await;
    watched.sweep().await;
    assert_goes_after(&watched, &ticket, 30 * MINUTE, "owner-finished").await;
}

#[tokio::test]
async fn an_owner_that_a_download_saw_stays_seen_after_a_sweep_that_missed_it() {
    let watched = WatchedApp::start().await;
    let ticket = watched.stage_demo().await;
    watched.until(&owner("app=demo"), Presence::Absent).await;
    let stop = watched.app.faults.stop_at(Step::LedgerObserve, Side::Before);
    let download = async {
        stop.reached().await;
        watched.api.create_pod("demo", "driver", &DEMO);
        watched.until(&owner("app=demo"), Presence::Present).await;
        watched.fetch(&ticket).await;
        stop.go_on();
    };
    tokio::join!(watched.sweep(), download);
    assert!(watched.metadata(&ticket).await.owner_seen_at.is_some());
    delete_driver_and_sweep(&watched).await;
    assert_goes_after(&watched, &ticket, MINUTE, "orphaned").await;
}

#[tokio::test]
async fn limits_on_age_hold_whatever_is_known_of_owners() {
    let policy = Policy { max_age: Some(3 * HOUR), max_unused: 90 * MINUTE, ..Policy::default() };
    let watched = WatchedApp::start_with(Watching { policy, ..Watching::default() }).await;
    let query = "namespace=demo&label=app%3Ddemo";
    let unused = watched.stage(query).await;
    let with_ttl = watched.stage(&format!("{query}&ttl=2h")).await;
    let aged = watched.stage(query).await;
    watched.api.stop();
    watched.until_watches(WatchState::Failing).await;
    watched.fetch(&with_ttl).await;
    watched.fetch(&aged).await;
    watched.sweep().await;
    watched.assert_kept(&unused, "watch-failing").await;
    assert_goes_after(&watched, &unused, 90 * MINUTE, "max-unused-reached").await;
    assert_goes_after(&watched, &with_ttl, 30 * MINUTE, "ttl-reached").await;
    assert_goes_after(&watched, &aged, HOUR, "max-age-reached").await;
}

#[tokio::test]
async fn a_ttl_ends_what_has_an_owner() {
    let watched = WatchedApp::start().await;
    let ticket = watched.stage("namespace=demo&label=app%3Ddemo&ttl=2h").await;
    watched.api.create_pod("demo", "driver", &DEMO);
    watched.until(&owner("app=demo"), Presence::Present).await;
    watched.fetch(&ticket).await;
    assert_goes_after(&watched, &ticket, 2 * HOUR, "ttl-reached").await;
}

#[tokio::test]
async fn a_download_in_flight_holds_an_orphan_and_the_grace_begins_after_it() {
    let watched = WatchedApp::start().await;
    let bundle = vec![7_u8; 30 << 20];
    let app = &watched.app;
    let ticket = app.ticket(app.put("", bundle.clone()).send().await.unwrap()).await;
    watched.api.create_pod("demo", "driver", &DEMO);
    watched.until(&owner("app=demo"), Presence::Present).await;
    watched.sweep().await;
    let mut wire = Wire::connect(app.address).await;
    let (id, secret) = (&ticket.resource_id, &ticket.resource_secret);
    let head = "HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization";
    wire.send(format!("GET /api/v1/resources/{id} {head}: {secret}\r\n\r\n")).await;
    until("the download has begun", async || app.staging.in_flight() == (0, 1)).await;
    watched.api.delete_pod("demo", "driver");
    watched.until(&owner("app=demo"), Presence::Absent).await;
    watched.assert_nothing_goes_for(20 * MINUTE).await;
    watched.assert_kept(&ticket, "downloading").await;
    assert!(wire.answer().await.body == bundle);
    until("the download is over", async || app.staging.in_flight() == (0, 0)).await;
    assert_eq!(watched.sweep().await.expired, 0);
    assert_goes_after(&watched, &ticket, MINUTE, "orphaned").await;
}

#[tokio::test]
async fn owners_are_told_apart_by_name_by_all_their_labels_and_by_namespace() {
    let watched = WatchedApp::start().await;
    let two = [("app", "demo"), ("role", "driver")];
    watched.api.create_pod("demo", "named", &[]);
    watched.api.create_pod("demo", "labelled", &two);
    watched.api.create_pod("other", "elsewhere", &[("app", "elsewhere")]);
    let cases = [
        ("namespace=demo&name=named", owner("named"), true),
        ("namespace=demo&label=app%3Ddemo&label=role%3Ddriver", owner("app=demo,role=driver"), true),
        ("namespace=other&label=app%3Delsewhere", owner_of("Pod", "other", "app=elsewhere"), true),
        ("namespace=demo&name=nam", owner("nam"), false),
        ("namespace=demo&label=app%3Ddemo&label=role%3Dexecutor", owner("app=demo,role=executor"), false),
        ("namespace=demo&label=app%3Delsewhere", owner("app=elsewhere"), false),
        ("namespace=demo&name=labelled&label=app%3Ddemo", named_and_labelled(), true),
    ];
    let mut tickets = Vec::new();
    for (query, owner, is_there) in &cases {
        let ticket = watched.stage(query).await;
        watched.until(owner, if *is_there { Presence::Present } else { Presence::Absent }).await;
        tickets.push(ticket);
    }
    watched.sweep().await;
    watched.sweep_after(30 * MINUTE).await;
    for ((query, _, is_there), ticket) in cases.iter().zip(&tickets) {
        let expected = (!is_there).then(|| "unused".to_owned());
        assert_eq!(watched.fate(ticket).await, expected, "{query}");
    }
}

fn named_and_labelled() -> cloakroom_core::resource::Owner {
    let labels = [("app".to_owned(), "demo".to_owned())];
    cloakroom_core::resource::Owner::new(Default::default(), "demo", labels, Some("labelled")).unwrap()
}

#[tokio::test]
async fn a_pod_whose_label_changes_owns_nothing_any_more() {
    let watched = WatchedApp::start().await;
    let ticket = used_and_seen(&watched).await;
    watched.api.delete_pod("demo", "driver");
    watched.api.create_pod("demo", "driver", &[("app", "another")]);
    watched.until(&owner("app=demo"), Presence::Absent).await;
    watched.sweep().await;
    assert_goes_after(&watched, &ticket, MINUTE, "orphaned").await;
}

#[tokio::test]
async fn metadata_say_why_a_resource_is_kept_and_until_when() {
    let watched = WatchedApp::start().await;
    let clock = &watched.app.clock;
    let ticket = watched.stage_demo().await;
    watched.until(&owner("app=demo"), Presence::Absent).await;
    let limited = watched.app.put("&ttl=10h", "jars").send().await.unwrap();
    let limited = watched.app.ticket(limited).await;
    for ticket in [&ticket, &limited] {
        let unused = watched.metadata(ticket).await;
        assert_eq!(unused.kept_because.as_deref(), Some("not-used-yet"));
        assert_eq!(unused.expires_at, Some(ticket.expires_at));
    }
    watched.api.create_pod("demo", "driver", &DEMO);
    watched.until(&owner("app=demo"), Presence::Present).await;
    watched.fetch(&ticket).await;
    watched.sweep().await;
    let seen_at = clock.now();
    let present = watched.metadata(&ticket).await;
    assert_eq!((present.kept_because.as_deref(), present.expires_at), (Some("owner-present"), None));
    assert_eq!(present.owner_seen_at, Some(seen_at));
    watched.api.finish_pod("demo", "driver");
    watched.until(&owner("app=demo"), Presence::Finished).await;
    watched.sweep_after(MINUTE).await;
    let finished = watched.metadata(&ticket).await;
    assert_eq!(finished.kept_because.as_deref(), Some("owner-finished"));
    assert_eq!(
        (finished.owner_finished_since, finished.expires_at),
        (Some(clock.now()), Some(clock.now() + DAY))
    );
    delete_driver_and_sweep(&watched).await;
    let gone = watched.metadata(&ticket).await;
    assert_eq!(gone.kept_because.as_deref(), Some("owner-gone"));
    assert_eq!((gone.owner_absent_since, gone.expires_at), (Some(clock.now()), Some(clock.now() + MINUTE)));
    assert_eq!((gone.owner_seen_at, gone.owner_finished_since), (Some(seen_at), None));
    watched.api.stop();
    watched.until_watches(WatchState::Failing).await;
    let unknown = watched.metadata(&ticket).await;
    assert_eq!((unknown.kept_because.as_deref(), unknown.expires_at), (Some("watch-failing"), None));
}
