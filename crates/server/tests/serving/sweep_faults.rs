//! What goes wrong while sweeps delete orphans: the clock, the disk, the ledger, the end of the process.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cloakroom_core::protocol::v1::Ticket;
use cloakroom_server::cleaner::{KeepReason, Policy};
use cloakroom_server::owners::{Presence, Unknown};
use cloakroom_testing::logs;
use cloakroom_testing::wait::until;

use crate::support::TestApp;
use crate::support::app::{Options, problem};
use crate::support::faults::{Fault, Step};
use crate::support::owners::{ScriptedOwners, owner};
use crate::support::watched::{HOUR, MINUTE, SECOND};

const READS: [Step; 3] = [Step::LedgerTotals, Step::LedgerIdsIn, Step::LedgerReady];
const WRITES: [Step; 3] = [Step::LedgerObserve, Step::LedgerMarkDeleting, Step::LedgerFinishDeletion];

/// A server whose owners are as the test says.
struct Scripted {
    app: TestApp,
    owners: Arc<ScriptedOwners>,
}

fn options(owners: &Arc<ScriptedOwners>) -> Options {
    Options { owners: Arc::clone(owners) as _, ..Options::default() }
}

impl Scripted {
    async fn start() -> Self {
        Self::start_with(Policy::default()).await
    }

    async fn start_with(policy: Policy) -> Self {
        let owners = ScriptedOwners::all(Presence::Present);
        let app = TestApp::start_with(Options { policy, ..options(&owners) }).await;
        Self { app, owners }
    }

    async fn restart(self) -> Self {
        let Self { app, owners } = self;
        let app = app.crash_and_restart_with(options(&owners)).await;
        Self { app, owners }
    }

    /// Stages for the pod of that name, which downloads it.
    async fn used_by(&self, name: &str) -> Ticket {
        let url = self.app.url(&format!("/api/v1/resources/deps.tgz?namespace=demo&name={name}"));
        let ticket = self.app.ticket(self.app.client.put(url).body("jars").send().await.unwrap()).await;
        self.assert_downloads(&ticket).await;
        ticket
    }

    async fn assert_downloads(&self, ticket: &Ticket) {
        let response = self.app.download(ticket).send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.text().await.unwrap(), "jars");
        until("the download is over", async || self.app.staging.in_flight() == (0, 0)).await;
    }

    async fn expired_after(&self, time: Duration) -> u64 {
        self.app.clock.advance(time);
        self.app.sweep().await.expired
    }

    /// Sweeps until it is gone, for at most an hour; it went for that reason.
    async fn assert_goes(&self, ticket: &Ticket, reason: &str, what: &str) {
        for _ in 0..60 {
            let answer = self.app.download(ticket).send().await.unwrap();
            if answer.status() == 410 {
                assert_eq!(problem(answer).await.deletion_reason.as_deref(), Some(reason), "{what}");
                return;
            }
            self.app.clock.advance(2 * MINUTE);
            self.app.sweep().await;
        }
        panic!("{what}: it did not go");
    }

    /// The memory has exactly what the ledger has, and each file has a row that is ready.
    async fn assert_agrees(&self, what: &str) {
        let listed = self.app.staging.ready(None, 10_000);
        let ready = self.app.rows().await.get("ready").copied().unwrap_or_default();
        assert_eq!(listed.len() as u64, ready, "{what}");
        for listed in listed {
            let row = self.app.ready_row(&listed.id.to_string()).await;
            assert_eq!((row.life(), &row.data.owner), (listed.life, &*listed.owner), "{what}");
        }
    }
}

// Invariant: a fault that ends all deletions ends the server, after what is in flight.
#[tokio::test]
async fn whatever_ends_all_deletions_ends_the_server() {
    for (fault, task) in [(Fault::Panic, "the cleaner"), (Fault::Ended, "the writer of the ledger")] {
        let mut server = Scripted::start().await;
        server.app.faults.set(Step::LedgerIdsIn, fault);
        server.app.broken_sweep().await;
        assert_eq!(server.app.failed().await.task, task);
        // It ends as at a signal.
        assert!(server.app.stop().await);
    }
    let mut server = Scripted::start().await;
    server.owners.has_failed_watch.store(true, Ordering::Relaxed);
    server.app.sweep().await;
    assert_eq!(server.app.failed().await.task, "a watch of owners");
}

#[tokio::test]
async fn a_clock_that_steps_by_a_day_ends_no_grace_early_and_holds_none_up() {
    for wall in ["2026-01-02T12:00:00Z", "2025-12-31T12:00:00Z"] {
        let it = Scripted::start().await;
        let ticket = it.used_by("driver").await;
        it.expired_after(10 * MINUTE).await;
        it.owners.are(Presence::Absent);
        assert_eq!(it.expired_after(SECOND).await, 0);
        it.app.clock.set_wall(wall);
        assert_eq!(it.expired_after(Duration::ZERO).await, 0);
        assert_eq!(it.expired_after(59 * SECOND).await, 0);
        assert_eq!(it.expired_after(SECOND).await, 1, "{wall}");
        it.assert_goes(&ticket, "orphaned", wall).await;
    }
}

#[tokio::test]
async fn a_clock_that_jumps_to_and_fro_with_every_sweep_ends_no_grace_early() {
    let it = Scripted::start().await;
    it.used_by("driver").await;
    let mut minutes = 0;
    let mut sweep_at = async |day: &str, presence| {
        it.owners.are(presence);
        it.app.clock.advance(20 * SECOND);
        it.app.clock.set_wall(&format!("2026-01-{day}T12:{:02}:{:02}Z", minutes / 3, minutes % 3 * 20));
        minutes += 1;
        it.app.sweep().await.expired
    };
    for day in ["05", "04", "05", "06", "05", "04"] {
        assert_eq!(sweep_at(day, Presence::Present).await, 0);
    }
    // The grace is a minute: three sweeps after the first that misses it.
    for day in ["05", "04", "06"] {
        assert_eq!(sweep_at(day, Presence::Absent).await, 0);
    }
    assert_eq!(sweep_at("05", Presence::Absent).await, 1);
}

#[tokio::test]
async fn a_clock_that_steps_by_a_day_ends_no_retention_early() {
    for wall in ["2026-01-03T00:00:00Z", "2025-12-31T20:00:00Z"] {
        let it = Scripted::start().await;
        let ticket = it.used_by("driver").await;
        it.owners.are(Presence::Finished);
        it.expired_after(SECOND).await;
        it.expired_after(12 * HOUR).await;
        it.app.clock.set_wall(wall);
        assert_eq!(it.expired_after(12 * HOUR - SECOND).await, 0);
        assert_eq!(it.expired_after(SECOND).await, 1, "{wall}");
        it.assert_goes(&ticket, "owner-finished", wall).await;
    }
}

#[tokio::test]
async fn a_clock_that_was_set_while_the_server_was_down_never_deletes_early() {
    let it = Scripted::start().await;
    it.used_by("driver").await;
    it.expired_after(SECOND).await;
    it.app.clock.set_wall("2026-03-01T12:00:00Z");
    let it = it.restart().await;
    it.owners.are(Presence::Absent);
    assert_eq!(it.expired_after(SECOND).await, 0);
    assert_eq!(it.expired_after(59 * SECOND).await, 0);
    assert_eq!(it.expired_after(SECOND).await, 1);
}

// Invariant: a sweep that is cut off between two steps loses nothing and leaves nothing.
#[tokio::test]
async fn a_sweep_cut_off_between_any_two_steps_loses_and_leaves_nothing() {
    for step in READS.into_iter().chain(WRITES).chain([Step::StoreDelete]) {
        for fault in [Fault::FailBefore, Fault::FailAfter, Fault::Full, Fault::FullButForTheReserve] {
            for restarts in [false, true] {
                end_at(step, fault, restarts).await;
            }
        }
    }
}

/// A sweep that notes an absence, or that deletes an orphan, ends at that step.
async fn end_at(step: Step, fault: Fault, restarts: bool) {
    let what = format!("{step:?} {fault:?} restarts: {restarts}");
    let it = Scripted::start().await;
    let owned = it.used_by("owned").await;
    let orphan = it.used_by("orphan").await;
    assert_eq!(it.expired_after(SECOND).await, 0);
    it.owners.is(&owner("orphan"), Presence::Absent);
    if step != Step::LedgerObserve {
        assert_eq!(it.expired_after(SECOND).await, 0);
        it.app.clock.advance(MINUTE);
    }
    it.app.faults.set(step, fault);
    // It may say that it failed, or leave the rest to the next one.
    let _ = it.app.try_sweep().await;
    let it = if restarts { it.restart().await } else { it };
    it.app.faults.clear();
    it.app.sweep().await;
    it.assert_agrees(&what).await;
    it.assert_goes(&orphan, "orphaned", &what).await;
    it.assert_agrees(&what).await;
    it.assert_downloads(&owned).await;
    let shard = &owned.resource_id[..2];
    assert_eq!(it.app.files(), [format!("bundles/{shard}/{}", owned.resource_id)], "{what}");
}

#[tokio::test]
async fn an_absence_from_before_a_restart_does_not_count() {
    let it = Scripted::start().await;
    let ticket = it.used_by("driver").await;
    it.expired_after(SECOND).await;
    it.owners.are(Presence::Absent);
    it.expired_after(SECOND).await;
    // While nobody watched, the owner may have been there, and gone again just now.
    it.app.clock.advance(HOUR);
    let it = it.restart().await;
    assert_eq!(it.app.files().len(), 1, "deleted at the start");
    assert_eq!(it.expired_after(59 * SECOND).await, 0);
    assert_eq!(it.expired_after(SECOND).await, 1);
    it.assert_goes(&ticket, "orphaned", "after a restart").await;
}

#[tokio::test]
async fn an_observation_whose_answer_was_lost_counts_as_unknown_later() {
    let it = Scripted::start().await;
    it.used_by("driver").await;
    it.expired_after(SECOND).await;
    it.owners.are(Presence::Absent);
    it.app.faults.set(Step::LedgerObserve, Fault::FailAfter);
    assert!(it.app.try_sweep().await.is_err());
    it.app.faults.clear();
    it.owners.are(Presence::Unknown(Unknown::Failing));
    assert_eq!(it.expired_after(HOUR).await, 0);
    it.assert_agrees("after a lost answer").await;
    // Neither the memory nor what a restart reads may count the hour that nobody watched.
    let it = it.restart().await;
    it.owners.are(Presence::Absent);
    assert_eq!(it.expired_after(SECOND).await, 0);
    assert_eq!(it.expired_after(MINUTE).await, 1);
}

#[tokio::test]
async fn on_a_full_disk_what_is_due_goes_even_if_nothing_new_can_be_noted() {
    let it = Scripted::start().await;
    let orphan = it.used_by("orphan").await;
    let other = it.used_by("other").await;
    it.expired_after(SECOND).await;
    it.owners.is(&owner("orphan"), Presence::Absent);
    it.expired_after(SECOND).await;
    it.owners.is(&owner("other"), Presence::Absent);
    it.app.faults.set(Step::LedgerObserve, Fault::Full);
    assert_eq!(it.expired_after(MINUTE).await, 1, "the deletion that makes room");
    it.assert_goes(&orphan, "orphaned", "due").await;
    it.assert_agrees("nothing could be noted").await;
    // There is room again: from now on the other one's absence counts.
    it.app.faults.clear();
    assert_eq!(it.expired_after(HOUR).await, 0);
    assert_eq!(it.expired_after(MINUTE).await, 1);
    it.assert_goes(&other, "orphaned", "due later").await;
}

#[tokio::test]
async fn a_full_disk_gives_up_its_reserve_for_what_sweeps_write_down() {
    for step in [Step::LedgerObserve, Step::LedgerMarkDeleting] {
        let it = Scripted::start().await;
        it.used_by("driver").await;
        it.expired_after(SECOND).await;
        it.owners.are(Presence::Absent);
        it.app.faults.set(step, Fault::FullButForTheReserve);
        assert_eq!(it.expired_after(SECOND).await, 0);
        assert_eq!(it.expired_after(MINUTE).await, 1, "{step:?}");
    }
}

#[tokio::test]
async fn an_unwritable_ledger_deletes_nothing_and_serves_what_was_used_before() {
    let it = Scripted::start().await;
    let orphan = it.used_by("driver").await;
    it.expired_after(SECOND).await;
    it.owners.are(Presence::Absent);
    let steps = [Step::LedgerBegin, Step::LedgerComplete, Step::LedgerMarkUsed];
    for step in steps.into_iter().chain(WRITES) {
        it.app.faults.set(step, Fault::FailBefore);
    }
    for _ in 0..20 {
        it.app.clock.advance(MINUTE);
        assert!(it.app.try_sweep().await.is_err());
    }
    assert_eq!(it.app.files().len(), 1);
    assert_eq!(it.app.put("", "more").send().await.unwrap().status(), 500);
    it.app.faults.clear();
    it.assert_downloads(&orphan).await;
    it.assert_goes(&orphan, "orphaned", "written again").await;
}

#[tokio::test]
async fn a_bundle_whose_file_is_missing_says_so_and_goes_like_any_other() {
    let it = Scripted::start().await;
    let ticket = it.used_by("driver").await;
    it.expired_after(SECOND).await;
    std::fs::remove_file(it.app.data_dir().join(&it.app.files()[0])).unwrap();
    let lost = problem(it.app.download(&ticket).send().await.unwrap()).await;
    assert_eq!(lost.status, 500);
    let lines = logs::lines_with(&ticket.resource_id);
    assert!(lines.iter().any(|line| line.contains("ERROR")), "{lines:?}");
    assert_eq!(it.expired_after(HOUR).await, 0);
    it.owners.are(Presence::Absent);
    it.expired_after(SECOND).await;
    assert_eq!(it.expired_after(MINUTE).await, 1);
    it.assert_goes(&ticket, "orphaned", "without its file").await;
}

#[tokio::test]
async fn a_bundle_that_is_due_by_time_and_by_its_owner_is_deleted_once() {
    let it = Scripted::start().await;
    let url = it.app.url("/api/v1/resources/deps.tgz?namespace=demo&name=driver&ttl=1h");
    let ticket = it.app.ticket(it.app.client.put(url).body("jars").send().await.unwrap()).await;
    it.assert_downloads(&ticket).await;
    it.expired_after(SECOND).await;
    it.owners.are(Presence::Absent);
    it.expired_after(SECOND).await;
    it.owners.take_reads();
    assert_eq!(it.expired_after(HOUR).await, 1);
    it.assert_goes(&ticket, "ttl-reached", "both").await;
    assert_eq!(it.owners.take_reads(), [], "its time is up, whatever its owner does");
}

#[tokio::test]
async fn a_fresh_read_that_fails_keeps_what_it_was_for() {
    let it = Scripted::start().await;
    it.used_by("driver").await;
    it.expired_after(SECOND).await;
    let unknown =
        |why: &KeepReason| if let KeepReason::OwnerUnknown(unknown) = *why { Some(unknown) } else { None };
    for (round, unknown) in KeepReason::ALL.iter().filter_map(unknown).enumerate() {
        it.owners.watches_say(Presence::Absent);
        it.owners.fresh_reads_say(Presence::Unknown(unknown));
        for _ in 0..5 {
            assert_eq!(it.expired_after(MINUTE).await, 0, "{unknown:?}");
        }
        assert_eq!(it.owners.take_reads().len(), if round == 0 { 4 } else { 5 });
    }
    it.owners.are(Presence::Absent);
    assert_eq!(it.expired_after(MINUTE).await, 1);
}

#[tokio::test]
async fn a_silent_api_server_holds_a_sweep_up_for_a_few_reads_only() {
    let it = Scripted::start().await;
    for number in 0..40 {
        it.used_by(&format!("driver-{number}")).await;
    }
    it.expired_after(SECOND).await;
    // Not most of them: those would wait in any case.
    let lost: Vec<_> = (0..20).map(|number| owner(&format!("driver-{number}"))).collect();
    for lost in &lost {
        it.owners.is(lost, Presence::Absent);
        it.owners.fresh_is(lost, Presence::Unknown(Unknown::Failing));
    }
    it.expired_after(SECOND).await;
    assert_eq!(it.expired_after(MINUTE).await, 0);
    let reads = it.owners.take_reads().len();
    assert!((8..=16).contains(&reads), "{reads} reads");
    for lost in &lost {
        it.owners.is(lost, Presence::Absent);
    }
    assert_eq!(it.expired_after(MINUTE).await, 20);
}

#[tokio::test]
async fn a_sweep_goes_on_after_single_failures_and_stops_after_ten_in_a_row() {
    for (due, is_ok, left) in [(9, 1.0, 0), (40, 0.0, 1)] {
        let app = TestApp::start().await;
        for _ in 0..due {
            app.stage("to expire").await;
        }
        app.clock.advance(31 * MINUTE);
        app.faults.set(Step::StoreDelete, Fault::FailBefore);
        let swept: f64 = app.metric("sweeps_total{outcome=\"ok\"}").await.parse().unwrap();
        app.sweep().await;
        let now: f64 = app.metric("sweeps_total{outcome=\"ok\"}").await.parse().unwrap();
        assert_eq!(now - swept, is_ok, "{due}");
        assert!(app.rows().await.get("ready").copied().unwrap_or(0) >= left, "{due}");
        // Those that could not be removed hold up neither a start nor later sweeps, however many they are.
        let options = Options::default();
        let app = app.crash_and_restart_with(options).await;
        for _ in 0..4 {
            app.faults.set(Step::StoreDelete, Fault::FailBefore);
            app.sweep().await;
        }
        assert_eq!(app.rows().await.get("ready"), None, "{due}");
        app.faults.clear();
        app.sweep().await;
        assert_eq!((app.files().len(), app.rows().await.get("deleted").copied()), (0, Some(due)));
    }
}

#[tokio::test]
async fn a_sweep_ends_at_the_first_bundle_if_the_store_does_not_answer() {
    let app = TestApp::start().await;
    for _ in 0..40 {
        app.stage("to expire").await;
    }
    app.clock.advance(31 * MINUTE);
    app.faults.set(Step::StoreDelete, Fault::Away);
    // What is left of the deletions that had begun ends the second sweep before it decides anything.
    for _ in 0..2 {
        assert!(app.try_sweep().await.is_err());
        assert!(app.rows().await["ready"] > 20, "{:?}", app.rows().await);
    }
    app.faults.clear();
    // Deletions that were being written when a sweep ended are finished by a later one.
    until("all of them are gone", async || {
        app.sweep().await;
        app.files().is_empty()
    })
    .await;
}
