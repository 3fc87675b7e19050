//! How long what was never downloaded stays while nothing is known of its owner.

use std::time::Duration;

use cloakroom_core::protocol::v1::Ticket;
use cloakroom_server::owners::{Presence, WatchState};
use cloakroom_testing::api_server::{Fault, Verb};

use crate::support::WatchedApp;
use crate::support::faults::{Fault as LedgerFault, Step};
use crate::support::owners::owner;
use crate::support::watched::{HOUR, SECOND};

const DAY: Duration = Duration::from_hours(24);
const MAX_UNUSED: Duration = Duration::from_hours(7 * 24);
const REASON: &str = "max-unused-reached";

/// A bundle for a driver that waits for a node, longer than `--max-unused`; a sweep saw the driver.
async fn waiting_driver() -> (WatchedApp, Ticket) {
    let watched = WatchedApp::start().await;
    let ticket = watched.stage_demo().await;
    watched.api.create_pod("demo", "driver", &[("app", "demo")]);
    watched.until(&owner("app=demo"), Presence::Present).await;
    watched.sweep().await;
    assert_eq!(watched.sweep_after(MAX_UNUSED + DAY).await.expired, 0);
    (watched, ticket)
}

/// The API server answers nothing but errors, and the watches know it.
async fn fail(watched: &WatchedApp) {
    watched.api.fail(Verb::Any, Fault::Status(500));
    watched.api.end_watches();
    watched.until_watches(WatchState::Failing).await;
}

/// A server whose first sweep can read nothing.
async fn restart_blind(watched: WatchedApp) -> WatchedApp {
    watched.api.fail(Verb::Any, Fault::Status(500));
    watched.restart(&[]).await
}

/// Stays until just before `time` has passed from now on, and then goes.
async fn assert_goes_after(watched: &WatchedApp, ticket: &Ticket, time: Duration) {
    assert_eq!(watched.sweep_after(time - SECOND).await.expired, 0, "too early");
    assert_eq!(watched.sweep_after(SECOND).await.expired, 1, "too late");
    watched.assert_gone(ticket, REASON).await;
}

#[tokio::test]
async fn a_restart_deletes_nothing_of_a_driver_that_still_waits() {
    let (watched, ticket) = waiting_driver().await;
    let watched = restart_blind(watched).await;
    assert_eq!(watched.fate(&ticket).await, None);
    assert_eq!(watched.sweep_after(HOUR).await.expired, 0);
    watched.api.heal();
    watched.until(&owner("app=demo"), Presence::Present).await;
    assert_eq!(watched.sweep().await.expired, 0);
    watched.assert_kept(&ticket, "owner-present").await;
}

#[tokio::test]
async fn an_outage_deletes_nothing_of_a_driver_that_still_waits_for_max_unused() {
    let (watched, ticket) = waiting_driver().await;
    watched.app.clock.advance(DAY);
    fail(&watched).await;
    watched.sweep_after(HOUR).await;
    watched.assert_kept(&ticket, "watch-failing").await;
    let until = watched.metadata(&ticket).await.expires_at.unwrap();
    assert_eq!(until.to_string(), "2026-01-17T12:00:00Z");
    assert_goes_after(&watched, &ticket, MAX_UNUSED - HOUR).await;
}

#[tokio::test]
async fn the_time_counts_from_when_owners_were_last_known_without_any_sweep() {
    let (watched, ticket) = waiting_driver().await;
    fail(&watched).await;
    watched.sweep_after(3 * DAY).await;
    watched.api.heal();
    watched.until(&owner("app=demo"), Presence::Present).await;
    fail(&watched).await;
    watched.sweep().await;
    assert_goes_after(&watched, &ticket, MAX_UNUSED).await;
}

#[tokio::test]
async fn each_start_counts_if_the_ledger_once_knew_owners_of_the_kind() {
    let (mut watched, ticket) = waiting_driver().await;
    for _ in 0..3 {
        watched = restart_blind(watched).await;
        assert_eq!(watched.sweep_after(3 * DAY).await.expired, 0);
    }
    watched = restart_blind(watched).await;
    assert_goes_after(&watched, &ticket, MAX_UNUSED).await;
}

#[tokio::test]
async fn no_start_counts_if_owners_of_the_kind_could_never_be_known() {
    let mut watched = WatchedApp::start().await;
    watched.api.fail(Verb::Any, Fault::Status(500));
    let ticket = watched.stage_demo().await;
    for _ in 0..2 {
        assert_eq!(watched.sweep_after(3 * DAY).await.expired, 0);
        watched = restart_blind(watched).await;
    }
    assert_goes_after(&watched, &ticket, DAY).await;
}

#[tokio::test]
async fn the_next_sweep_writes_down_a_kind_that_could_not_be_written_before() {
    let watched = WatchedApp::start().await;
    let ticket = watched.stage_demo().await;
    watched.api.create_pod("demo", "driver", &[("app", "demo")]);
    watched.until(&owner("app=demo"), Presence::Present).await;
    watched.app.faults.set(Step::LedgerRememberWatched, LedgerFault::Full);
    watched.sweep().await;
    assert_eq!(watched.app.staging.watched().await.unwrap(), []);
    watched.app.faults.clear();
    watched.sweep().await;
    assert_eq!(watched.app.staging.watched().await.unwrap().len(), 1);
    watched.app.clock.advance(MAX_UNUSED);
    let watched = restart_blind(watched).await;
    assert_eq!(watched.fate(&ticket).await, None);
}
