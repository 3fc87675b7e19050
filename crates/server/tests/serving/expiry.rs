//! What time alone deletes, by a clock that is moved by hand.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloakroom_adapters::disk::DataDirectory;
use cloakroom_adapters::sqlite::SqliteLedger;
use cloakroom_core::protocol::v1::Ticket;
use cloakroom_core::resource::{Bundle, Lifetime, Owner, OwnerKind, ResourceId, ResourceSecret};
use cloakroom_server::cleaner::Policy;
use cloakroom_storage::ledger::{Completion, Ledger as _, PendingResource};
use cloakroom_testing::clock::ManualClock;
use cloakroom_testing::logs;
use cloakroom_testing::wait::until;
use cloakroom_testing::wire::{Wire, download_request};

use crate::support::TestApp;
use crate::support::app::{Options, problem};
use crate::support::one_server::open_whole;

const MINUTE: Duration = Duration::from_mins(1);
const ALMOST: Duration = Duration::from_millis(1);

async fn stage_with(app: &TestApp, more_query: &str) -> Ticket {
    app.ticket(app.put(more_query, "jars").send().await.unwrap()).await
}

async fn use_once(app: &TestApp, ticket: &Ticket) {
    let response = app.download(ticket).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.text().await.unwrap(), "jars");
    until("the download is over", async || app.staging.in_flight() == (0, 0)).await;
}

/// It stays until just before `after` has passed from now on, and then goes for `reason`.
async fn assert_goes_after(app: &TestApp, ticket: &Ticket, after: Duration, reason: &str) {
    app.clock.advance(after - ALMOST);
    assert_eq!(app.sweep().await.expired, 0, "too early");
    assert_eq!(app.files().len(), 1);
    app.clock.advance(ALMOST);
    let gone_at = cloakroom_core::clock::Clock::now(&*app.clock);
    assert_eq!(app.sweep().await.expired, 1, "too late");
    assert_eq!(app.files(), Vec::<String>::new());
    assert_eq!(app.rows().await, BTreeMap::from([("deleted", 1)]));
    let gone = problem(app.download(ticket).send().await.unwrap()).await;
    assert_eq!((gone.status, gone.code.as_str()), (410, "gone"));
    assert_eq!((gone.deletion_reason.as_deref(), gone.deleted_at), (Some(reason), Some(gone_at)));
    assert!(gone.detail.contains(reason), "{}", gone.detail);
    let lines = logs::lines_with(&ticket.resource_id);
    let is_said = |line: &String| line.contains("deleted") && line.contains(&format!("reason={reason}"));
    assert!(lines.iter().any(is_said), "{lines:?}");
}

#[tokio::test]
async fn what_nobody_uses_goes_after_the_servers_unused_timeout() {
    let app = TestApp::start().await;
    let ticket = app.stage("jars").await;
    assert_goes_after(&app, &ticket, 30 * MINUTE, "unused").await;
}

#[tokio::test]
async fn an_upload_may_ask_for_an_unused_timeout_of_its_own() {
    let app = TestApp::start().await;
    let ticket = stage_with(&app, "&unusedTimeout=6h").await;
    assert_goes_after(&app, &ticket, 360 * MINUTE, "unused").await;
}

#[tokio::test]
async fn what_was_used_stays_when_it_has_no_ttl() {
    let app = TestApp::start().await;
    let ticket = app.stage("jars").await;
    app.clock.advance(29 * MINUTE);
    use_once(&app, &ticket).await;
    app.clock.advance(Duration::from_hours(24 * 365));
    assert_eq!(app.sweep().await.expired, 0);
    use_once(&app, &ticket).await;
}

// Invariant: a request counts as a use only if it is answered with bytes of the bundle.
#[tokio::test]
async fn neither_a_head_nor_metadata_nor_a_refused_range_is_a_use() {
    let app = TestApp::start().await;
    let ticket = app.stage("jars").await;
    let path = format!("/api/v1/resources/{}", ticket.resource_id);
    let secret = &ticket.resource_secret;
    let head = app.client.head(app.url(&path)).bearer_auth(secret);
    let metadata = app.get(&format!("{path}/metadata")).bearer_auth(secret);
    let beyond = app.download(&ticket).header("range", "bytes=100-");
    for (request, status) in [(head, 200), (metadata, 200), (beyond, 416)] {
        assert_eq!(request.send().await.unwrap().status(), status);
    }
    assert_goes_after(&app, &ticket, 30 * MINUTE, "unused").await;
}

#[tokio::test]
async fn the_ttl_ends_what_is_used_and_what_is_not() {
    for is_used in [true, false] {
        let app = TestApp::start().await;
        let ticket = stage_with(&app, "&ttl=2h&unusedTimeout=5h").await;
        if is_used {
            use_once(&app, &ticket).await;
        }
        assert_goes_after(&app, &ticket, 120 * MINUTE, "ttl-reached").await;
    }
}

#[tokio::test]
async fn the_earlier_of_ttl_and_unused_timeout_holds_and_is_in_the_ticket() {
    for (query, minutes, reason) in [
        ("&ttl=2h&unusedTimeout=10m", 10, "unused"),
        ("&ttl=10m&unusedTimeout=2h", 10, "ttl-reached"),
        ("&ttl=2h", 30, "unused"),
    ] {
        let app = TestApp::start().await;
        let ticket = stage_with(&app, query).await;
        assert_eq!(ticket.expires_at, ticket.created_at + minutes * MINUTE, "{query}");
        assert_goes_after(&app, &ticket, minutes * MINUTE, reason).await;
    }
}

#[tokio::test]
async fn no_resource_grows_older_than_the_max_age_used_or_not() {
    for is_used in [true, false] {
        let policy = Policy { max_age: Some(Duration::from_hours(3)), ..Policy::default() };
        let app = TestApp::start_with(Options { policy, ..Options::default() }).await;
        let ticket = stage_with(&app, "&unusedTimeout=12h&ttl=24h").await;
        if is_used {
            use_once(&app, &ticket).await;
        }
        assert_goes_after(&app, &ticket, 180 * MINUTE, "max-age-reached").await;
    }
}

/// A download of a bundle that is larger than the buffers of two sockets: it is not over before the client reads on.
async fn begun(app: &TestApp, ticket: &Ticket) -> Wire {
    let mut wire = Wire::connect(app.address).await;
    wire.send(download_request(ticket)).await;
    wire.begins().await;
    assert_eq!(app.staging.in_flight(), (0, 1));
    wire
}

async fn status(app: &TestApp, ticket: &Ticket) -> u16 {
    app.download(ticket).send().await.unwrap().status().as_u16()
}

// Invariant: a deletion breaks a running download only after `--deletion-wait`; until the last one ends, bytes and
// room stay.
#[tokio::test]
async fn a_download_outlives_its_resource_and_keeps_room_and_bytes_to_its_end() {
    let bundle = vec![7_u8; 30 << 20];
    for by_ttl in [false, true] {
        let app = TestApp::start().await;
        let ticket = app.ticket(app.put("&ttl=1h", bundle.clone()).send().await.unwrap()).await;
        let mut wire = begun(&app, &ticket).await;
        if by_ttl {
            app.clock.advance(Duration::from_hours(2));
            assert_eq!(app.sweep().await.expired, 1);
        } else {
            assert_eq!(app.delete(&ticket).send().await.unwrap().status(), 204);
        }
        assert_eq!(status(&app, &ticket).await, 410);
        app.sweep().await;
        assert_eq!(app.rows().await, BTreeMap::from([("deleting", 1)]));
        assert_eq!(app.metric("stored_bytes").await, bundle.len().to_string());
        assert_eq!(app.files().len(), 1);
        let answer = wire.answer().await;
        assert!(answer.status == 200 && answer.body == bundle);
        until("the bytes are gone", async || app.rows().await == BTreeMap::from([("deleted", 1)])).await;
        assert_eq!(app.files().len(), 0);
        until("their room is free", async || app.metric("stored_bytes").await == "0").await;
        assert_eq!(app.delete(&ticket).send().await.unwrap().status(), 204);
    }
}

#[tokio::test]
async fn a_download_that_lasts_longer_than_the_deletion_wait_is_cut_off() {
    let mut options = Options::default();
    options.limits.deletion_wait = Duration::from_millis(50);
    let app = TestApp::start_with(options).await;
    let ticket = app.stage(vec![7_u8; 30 << 20]).await;
    // This client takes nothing more, so it is never asked whether it would.
    let mut wire = begun(&app, &ticket).await;
    assert_eq!(app.delete(&ticket).send().await.unwrap().status(), 204);
    until("the bytes are gone", async || app.rows().await == BTreeMap::from([("deleted", 1)])).await;
    assert_eq!(app.files().len(), 0);
    until("the download has ended", async || app.staging.in_flight() == (0, 0)).await;
    assert!(wire.rest().await.len() < 30 << 20, "it was sent to its end");
}

// Invariant: a ticket ends at its `ttl` and the largest age, not at the next sweep.
#[tokio::test]
async fn a_ticket_is_gone_at_its_ttl_and_at_the_largest_age_before_any_sweep() {
    let mut options = Options::default();
    options.policy.max_age = Some(Duration::from_hours(3));
    let app = TestApp::start_with(options).await;
    let short = app.ticket(app.put("&ttl=1h", "jars").send().await.unwrap()).await;
    let long = app.ticket(app.put("&ttl=9h", "jars").send().await.unwrap()).await;
    for (advance, ticket, reason, before) in [
        (Duration::from_hours(1), &short, "ttl-reached", "2026-01-01T13:00:00Z"),
        (Duration::from_hours(2), &long, "max-age-reached", "2026-01-01T15:00:00Z"),
    ] {
        app.clock.advance(advance - Duration::from_millis(1));
        assert_eq!(status(&app, ticket).await, 200);
        app.clock.advance(Duration::from_millis(1));
        let gone = problem(app.download(ticket).send().await.unwrap()).await;
        assert_eq!((gone.status, gone.deletion_reason.as_deref()), (410, Some(reason)));
        assert_eq!(gone.deleted_at.unwrap().to_string(), before);
        let metadata = format!("/api/v1/resources/{}/metadata", ticket.resource_id);
        let metadata = app.get(&metadata).bearer_auth(&ticket.resource_secret).send().await.unwrap();
        assert_eq!(metadata.status(), 410);
        assert_eq!(app.delete(ticket).send().await.unwrap().status(), 204);
    }
}

#[tokio::test]
async fn a_wall_clock_that_is_set_forward_ends_no_ticket_early() {
    let app = TestApp::start().await;
    let ticket = app.ticket(app.put("&ttl=1h", "jars").send().await.unwrap()).await;
    app.clock.set_wall("2030-01-01T00:00:00Z");
    assert_eq!(status(&app, &ticket).await, 200);
    app.clock.advance(Duration::from_hours(1));
    assert_eq!(status(&app, &ticket).await, 410);
}

// Invariant: a change of the wall clock deletes nothing early.
#[tokio::test]
async fn a_wall_clock_that_is_set_forward_deletes_nothing_early() {
    let app = TestApp::start().await;
    let before = app.stage("jars").await;
    app.clock.set_wall("2030-01-01T00:00:00Z");
    assert_eq!(app.sweep().await.expired, 0);
    app.clock.advance(29 * MINUTE);
    assert_eq!(app.sweep().await.expired, 0);
    app.clock.advance(MINUTE);
    assert_eq!(app.sweep().await.expired, 1);
    assert_eq!(app.download(&before).send().await.unwrap().status(), 410);
    // What comes after the jump lives as long as everything else.
    let after = app.stage("jars").await;
    app.clock.advance(30 * MINUTE);
    assert_eq!(app.sweep().await.expired, 1);
    assert_eq!(app.download(&after).send().await.unwrap().status(), 410);
}

#[tokio::test]
async fn a_wall_clock_that_is_set_back_deletes_nothing_early() {
    let app = TestApp::start().await;
    let before = app.stage("jars").await;
    app.clock.set_wall("2026-01-01T09:00:00Z");
    assert_eq!(app.sweep().await.expired, 0);
    // By the clock of before the jump this one would be three hours old at once.
    let after = app.stage("jars").await;
    assert_eq!(app.sweep().await.expired, 0);
    app.clock.advance(29 * MINUTE);
    assert_eq!(app.sweep().await.expired, 0);
    app.clock.advance(MINUTE);
    assert_eq!(app.sweep().await.expired, 2);
    for ticket in [before, after] {
        assert_eq!(app.download(&ticket).send().await.unwrap().status(), 410);
    }
}

#[tokio::test]
async fn time_that_passes_while_the_server_is_down_counts() {
    let app = TestApp::start().await;
    let unused = app.stage("jars").await;
    let used = app.stage("jars").await;
    use_once(&app, &used).await;
    let clock = Arc::clone(&app.clock);
    clock.advance(20 * MINUTE);
    let app = app.crash_and_restart().await;
    assert_eq!(app.files().len(), 2);
    clock.advance(10 * MINUTE);
    let app = app.crash_and_restart().await;
    assert_eq!(app.download(&unused).send().await.unwrap().status(), 410);
    use_once(&app, &used).await;
    assert_eq!(app.rows().await, BTreeMap::from([("ready", 1), ("deleted", 1)]));
}

#[tokio::test]
async fn a_tombstone_answers_for_seven_days() {
    let app = TestApp::start().await;
    let ticket = app.stage("jars").await;
    assert_eq!(app.delete(&ticket).send().await.unwrap().status(), 204);
    app.clock.advance(Duration::from_hours(7 * 24));
    assert_eq!(app.sweep().await.forgotten.expired, 0);
    assert_eq!(app.download(&ticket).send().await.unwrap().status(), 410);
    app.clock.advance(ALMOST);
    assert_eq!(app.sweep().await.forgotten.expired, 1);
    assert_eq!(app.download(&ticket).send().await.unwrap().status(), 404);
    app.assert_nothing_kept().await;
}

/// A data directory with `count` resources, without their bytes, that are due after half an hour.
pub async fn directory_of(count: usize, clock: &ManualClock) -> (Arc<tempfile::TempDir>, Vec<ResourceId>) {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let data = DataDirectory::open(directory.path()).unwrap();
    let ledger = SqliteLedger::open(&data.ledger()).await.unwrap();
    let created_at = cloakroom_core::clock::Clock::now(clock);
    let ids: Vec<_> = (0..count).map(|_| ResourceId::generate(&mut rand::rng())).collect();
    let owner = Owner::new(OwnerKind::default(), "demo", [], Some("driver")).unwrap();
    futures_util::future::join_all(ids.iter().map(async |id| {
        let secret_hash = ResourceSecret::from_text(id.to_string()).hash();
        let pending =
            PendingResource { id: *id, secret_hash, file_name: None, created_at, uploaded_by: None };
        ledger.begin(pending).await.unwrap();
        let lifetime = Lifetime { unused_timeout: 30 * MINUTE, ttl: None };
        let bundle = Bundle { size_bytes: 0, sha256: [0; 32] };
        let completion = Completion { id: *id, owner: owner.clone(), bundle, lifetime, created_at };
        ledger.complete(completion).await.unwrap();
    }))
    .await;
    ledger.close().await;
    (directory, ids)
}

#[tokio::test]
async fn one_sweep_expires_all_that_is_due_however_many() {
    let clock = Arc::new(ManualClock::new());
    let (directory, mut ids) = directory_of(1101, &clock).await;
    // The one with the lowest id is being downloaded: it must not hold up those behind its page.
    ids.sort_unstable();
    let busy = directory.path().join("bundles").join(ids[0].shard());
    std::fs::create_dir_all(&busy).unwrap();
    std::fs::write(busy.join(ids[0].to_string()), "").unwrap();
    let app = TestApp::start_on(directory, Arc::clone(&clock), Options::default()).await;
    let secret = ResourceSecret::from_text(ids[0].to_string());
    let download = open_whole(&app.staging, ids[0], &secret).await.unwrap();
    clock.advance(30 * MINUTE);
    assert_eq!(app.sweep().await.expired, 1100);
    assert_eq!(app.rows().await, BTreeMap::from([("ready", 1), ("deleted", 1100)]));
    drop(download);
    assert_eq!(app.sweep().await.expired, 1);
}
