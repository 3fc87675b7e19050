//! A ledger and its store belong together, and an earlier copy of the ledger deletes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cloakroom_core::protocol::v1::Ticket;
use cloakroom_testing::clock::ManualClock;
use cloakroom_testing::logs;
use tempfile::TempDir;

use crate::support::TestApp;
use crate::support::app::{Directory, Options, change_ledger, installation};
use crate::support::faults::{Fault, Step};

const TTL: &str = "&ttl=1h";

/// A data directory whose ledger is an earlier copy.
struct Restored {
    directory: Directory,
    clock: Arc<ManualClock>,
    /// Staged before the copy was made, and due an hour later.
    known: Ticket,
    /// Staged after it.
    unknown: Ticket,
}

impl Restored {
    async fn new() -> Self {
        let app = TestApp::start().await;
        let known = app.ticket(app.put(TTL, "known").send().await.unwrap()).await;
        let (directory, clock) = app.end().await;
        let copy = directory.path().join("copy.db");
        fs::copy(directory.path().join("ledger.db"), &copy).unwrap();
        let app = TestApp::start_on(directory, clock, Options::default()).await;
        let gone = app.ticket(app.put("&ttl=1s", "gone").send().await.unwrap()).await;
        let unknown = app.ticket(app.put("", "unknown").send().await.unwrap()).await;
        app.clock.advance(Duration::from_secs(2));
        // The sweep writes a stamp before it deletes.
        assert_eq!(app.sweep().await.expired, 1);
        assert_eq!(app.download(&gone).send().await.unwrap().status(), 410);
        let (directory, clock) = app.end().await;
        fs::rename(copy, directory.path().join("ledger.db")).unwrap();
        Self { directory, clock, known, unknown }
    }

    async fn start(&self) -> TestApp {
        TestApp::start_on(Arc::clone(&self.directory), Arc::clone(&self.clock), Options::default()).await
    }
}

async fn readiness(app: &TestApp) -> (u16, String) {
    let answer = app.get("/readyz").send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

#[tokio::test]
async fn an_earlier_ledger_serves_and_takes_uploads_and_sweeps_delete_nothing() {
    let restored = Restored::new().await;
    let app = restored.start().await;
    let (known, unknown) = (&restored.known, &restored.unknown);
    let (status, said) = readiness(&app).await;
    assert_eq!(status, 200);
    assert!(
        said.starts_with("ready\nledger-behind: ") && said.contains("cloakroom resume-deletions"),
        "{said}"
    );
    assert_eq!(app.metric("ledger_behind").await, "1");
    assert_eq!(app.download(known).send().await.unwrap().text().await.unwrap(), "known");
    let (short, released) =
        (app.ticket(app.put("&ttl=1s", "new").send().await.unwrap()).await, app.stage("x").await);
    app.clock.advance(Duration::from_hours(24 * 30));
    for _ in 0..101 {
        let swept = app.sweep().await;
        assert_eq!((swept.expired, swept.recovered.strays, swept.recovered.uploads), (0, 0, 0));
    }
    assert_eq!(app.clean_strays().await, 0);
    assert_eq!(app.files().len(), 4);
    // A deletion by the ticket's holder is done, and an own upload is cleaned up.
    assert_eq!(app.delete(&released).send().await.unwrap().status(), 204);
    app.faults.set(Step::StoreCommit, Fault::FailAfter);
    app.faults.set(Step::StoreAbort, Fault::FailBefore);
    assert_eq!(app.put("", "broken").send().await.unwrap().status(), 500);
    app.faults.clear();
    assert_eq!(app.sweep().await.recovered.uploads, 1);
    assert_eq!(app.files().len(), 3);
    // A restart does not forget it.
    let app = app.crash_and_restart().await;
    assert_eq!((app.sweep().await.expired, app.files().len()), (0, 3));
    assert!(logs::lines_with("the ledger is an earlier copy").len() >= 2);
    assert!(app.staging.resume_deletions().await.unwrap());
    assert!(!app.staging.resume_deletions().await.unwrap(), "it is none any more");
    assert_eq!(
        (app.metric("ledger_behind").await, readiness(&app).await.1),
        ("0".to_owned(), "ready\n".to_owned())
    );
    assert_eq!(app.sweep().await.expired, 2);
    for ticket in [known, &short] {
        assert_eq!(app.download(ticket).send().await.unwrap().status(), 410);
    }
    // A bundle that this ledger never knew is a stray, and waits for --stray-age.
    for _ in 0..101 {
        app.sweep().await;
    }
    assert_eq!((app.files().len(), app.metric("strays").await), (1, "1".to_owned()));
    assert!(app.files()[0].ends_with(&unknown.resource_id));
    let app = app.crash_and_restart().await;
    assert_eq!(app.metric("ledger_behind").await, "0");
}

#[tokio::test]
async fn a_copy_of_the_ledger_deletes_nothing_once_the_other_one_goes_on() {
    let app = TestApp::start().await;
    let first = app.ticket(app.put(TTL, "first").send().await.unwrap()).await;
    let stamp = app.data_dir().join("bundles/stamp");
    let before = fs::read(&stamp).unwrap();
    // Another server, with a copy of this ledger, has written a stamp.
    let text = String::from_utf8(before).unwrap();
    let parts: Vec<&str> = text.split_whitespace().collect();
    fs::write(&stamp, format!("{} 99 0123456789abcdef\n", parts[0])).unwrap();
    app.clock.advance(Duration::from_hours(2));
    assert_eq!(app.sweep().await.expired, 0);
    assert_eq!(app.metric("ledger_behind").await, "1");
    assert!(app.files()[0].ends_with(&first.resource_id));
    assert!(app.staging.resume_deletions().await.unwrap());
    assert_eq!(app.sweep().await.expired, 1);
    assert!(fs::read_to_string(&stamp).unwrap().starts_with(&format!("{} 10", parts[0])), "it is above both");
}

#[tokio::test]
async fn a_stamp_whose_answer_was_lost_is_no_other_ledgers() {
    for step in [Step::LedgerWriteClaim, Step::StoreReplaceStamp] {
        for fault in [Fault::FailBefore, Fault::FailAfter] {
            for tries in [1, 3] {
                let what = format!("{step:?} {fault:?} {tries}");
                let app = TestApp::start().await;
                app.ticket(app.put(TTL, "due").send().await.unwrap()).await;
                app.clock.advance(Duration::from_hours(2));
                app.faults.set(step, fault);
                for number in 0..tries {
                    let swept = app.try_sweep().await;
                    // The second one finds in the ledger what the first one wrote.
                    if (step, fault) != (Step::LedgerWriteClaim, Fault::FailAfter) || number == 0 {
                        assert!(swept.is_err(), "{what}: nothing is deleted without a stamp");
                        assert_eq!(app.files().len(), 1, "{what}");
                    }
                }
                app.faults.clear();
                let app = if tries == 1 { app } else { app.crash_and_restart().await };
                app.sweep().await;
                assert_eq!(
                    (app.files().len(), app.metric("ledger_behind").await),
                    (0, "0".to_owned()),
                    "{what}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_full_disk_has_room_for_the_stamp_of_a_deletion() {
    for step in [Step::LedgerWriteClaim, Step::StoreReplaceStamp] {
        let app = TestApp::start().await;
        app.ticket(app.put(TTL, "due").send().await.unwrap()).await;
        app.clock.advance(Duration::from_hours(2));
        app.faults.set(step, Fault::FullButForTheReserve);
        assert_eq!(app.sweep().await.expired, 1, "{step:?}");
    }
}

#[tokio::test]
async fn data_of_a_version_without_stamps_is_claimed_at_the_first_start() {
    let app = TestApp::start().await;
    let ticket = app.stage("jars").await;
    let (directory, clock) = app.end().await;
    change_ledger(directory.path(), "DELETE FROM facts WHERE name = 'claim'").await;
    fs::remove_file(directory.path().join("bundles/stamp")).unwrap();
    let app = TestApp::start_on(Arc::clone(&directory), clock, Options::default()).await;
    assert_eq!(app.metric("ledger_behind").await, "0");
    let claimed = installation(directory.path());
    let app = app.crash_and_restart().await;
    assert_eq!(installation(directory.path()), claimed);
    assert_eq!(app.download(&ticket).send().await.unwrap().text().await.unwrap(), "jars");
}

#[tokio::test]
async fn a_copy_from_before_the_last_start_is_recognised_after_a_short_run() {
    let app = TestApp::start().await;
    let used = app.stage("used").await;
    let (directory, clock) = app.end().await;
    let copy = directory.path().join("copy.db");
    fs::copy(directory.path().join("ledger.db"), &copy).unwrap();
    let app = TestApp::start_on(Arc::clone(&directory), Arc::clone(&clock), Options::default()).await;
    assert_eq!(app.download(&used).send().await.unwrap().status(), 200);
    app.end().await;
    fs::rename(copy, directory.path().join("ledger.db")).unwrap();
    let app = TestApp::start_on(directory, clock, Options::default()).await;
    assert_eq!(app.metric("ledger_behind").await, "1");
    app.clock.advance(Duration::from_hours(1));
    assert_eq!((app.sweep().await.expired, app.files().len()), (0, 1), "it was used since that copy");
}

#[tokio::test]
async fn the_end_of_a_server_stamps_what_it_changed() {
    let app = TestApp::start().await;
    let stamp = app.data_dir().join("bundles/stamp");
    let before = fs::read(&stamp).unwrap();
    app.stage("jars").await;
    let _kept = app.end().await;
    assert_ne!(fs::read(&stamp).unwrap(), before);
}

#[tokio::test]
async fn a_ledger_that_went_on_elsewhere_is_no_newer_one_whatever_its_number() {
    let app = TestApp::start().await;
    let ticket = app.ticket(app.put(TTL, "here").send().await.unwrap()).await;
    let (directory, clock) = app.end().await;
    let elsewhere = Arc::new(joined(Some(directory.path()), Some(directory.path())));
    for _ in 0..5 {
        TestApp::start_on(Arc::clone(&elsewhere), Arc::clone(&clock), Options::default()).await.end().await;
    }
    TestApp::start_on(Arc::clone(&directory), Arc::clone(&clock), Options::default()).await.end().await;
    fs::copy(elsewhere.path().join("ledger.db"), directory.path().join("ledger.db")).unwrap();
    let app = TestApp::start_on(directory, clock, Options::default()).await;
    app.clock.advance(Duration::from_hours(2));
    assert_eq!((app.metric("ledger_behind").await.as_str(), app.sweep().await.expired), ("1", 0));
    assert_eq!(
        app.download(&ticket).send().await.unwrap().status(),
        410,
        "its ttl is over, and its bytes stay"
    );
    assert_eq!(app.files().len(), 1);
}

/// The files of a data directory, by their paths, without what SQLite keeps beside the ledger.
fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = Vec::new();
    crate::support::app::walk(folder, &mut found);
    let shown = |path: &Path| path.strip_prefix(folder).unwrap().display().to_string();
    let files = found.iter().map(|path| (shown(path), fs::read(path).unwrap()));
    files.filter(|(name, _)| !name.starts_with("ledger.db-")).collect()
}

/// Starts on a copy of the bundles of `store` with a copy of the ledger of `ledger`; either may be missing.
fn joined(store: Option<&Path>, ledger: Option<&Path>) -> TempDir {
    let joined = tempfile::tempdir().unwrap();
    for (from, name) in [(store, "bundles"), (ledger, "ledger.db")] {
        let Some(from) = from else { continue };
        let copied =
            std::process::Command::new("cp").arg("-R").arg(from.join(name)).arg(joined.path()).status();
        assert!(copied.unwrap().success());
    }
    joined
}

// Invariant: bundles and a ledger that do not belong together are not used together.
#[tokio::test]
async fn a_ledger_and_a_store_of_two_installations_are_refused_with_both_ids() {
    let [one, other] = [TestApp::start().await, TestApp::start().await];
    one.stage("one").await;
    other.stage("other").await;
    let (one, _) = one.end().await;
    let (other, _) = other.end().await;
    let ids = [installation(one.path()), installation(other.path())].map(|id| id.to_string());
    for (data, expected) in [
        (joined(Some(one.path()), Some(other.path())), vec![ids[0].as_str(), &ids[1], "knows 1 resource"]),
        (joined(Some(one.path()), None), vec![&ids[0], "has none and knows 0 resources"]),
        (joined(None, Some(other.path())), vec!["is empty", &ids[1], "knows 1 resource"]),
    ] {
        // The first start on a folder may make what is missing in it.
        let _ = TestApp::refused(data.path()).await;
        let before = content(data.path());
        let said = TestApp::refused(data.path()).await;
        assert!(expected.iter().all(|part| said.contains(part)), "{said}");
        assert!(said.contains("start once with --adopt-store"), "{said}");
        assert_eq!(content(data.path()), before, "nothing was changed: {said}");
    }
}

#[tokio::test]
async fn an_adopted_store_is_used_and_deletes_nothing_without_its_own_ledger() {
    let [one, other] = [TestApp::start().await, TestApp::start().await];
    let (unknown, known) = (one.stage("one").await, one_that_ends(&other).await);
    let (one, clock) = one.end().await;
    let (other, _) = other.end().await;
    let ids = [installation(one.path()), installation(other.path())];
    for (store, ledger, id, is_behind, files) in [
        (Some(one.path()), Some(other.path()), ids[0], "1", 1),
        (Some(one.path()), None, ids[0], "0", 1),
        (None, Some(other.path()), ids[1], "0", 0),
    ] {
        let what = format!("{store:?} {ledger:?}");
        let data = Arc::new(joined(store, ledger));
        let options = Options { adopt: Some(id), ..Options::default() };
        let app = TestApp::start_on(data, Arc::clone(&clock), options).await;
        assert_eq!(app.metric("ledger_behind").await, is_behind, "{what}");
        assert_eq!(installation(app.data_dir()), id, "{what}");
        assert_eq!(app.download(&unknown).send().await.unwrap().status(), 404, "{what}");
        if ledger.is_some() {
            assert_eq!(
                app.download(&known).send().await.unwrap().status(),
                500,
                "{what}: its bytes are lost"
            );
        }
        // The flag is needed for one start.
        let app = app.crash_and_restart().await;
        assert_eq!(
            (app.metric("ledger_behind").await.as_str(), app.files().len()),
            (is_behind, files),
            "{what}"
        );
    }
}

async fn one_that_ends(app: &TestApp) -> Ticket {
    app.ticket(app.put(TTL, "other").send().await.unwrap()).await
}

#[tokio::test]
async fn stamps_that_the_store_did_not_take_put_no_ledger_ahead_of_another() {
    let app = TestApp::start().await;
    app.ticket(app.put(TTL, "due").send().await.unwrap()).await;
    app.clock.advance(Duration::from_hours(2));
    app.faults.set(Step::StoreReplaceStamp, Fault::FailBefore);
    for _ in 0..5 {
        assert!(app.try_sweep().await.is_err());
    }
    let (directory, clock) = app.end().await;
    // Meanwhile a server with a copy of this ledger has written the next stamp.
    let stamp = directory.path().join("bundles/stamp");
    let text = fs::read_to_string(&stamp).unwrap();
    let parts: Vec<&str> = text.split_whitespace().collect();
    let next = parts[1].parse::<u64>().unwrap() + 1;
    fs::write(&stamp, format!("{} {next} 0123456789abcdef\n", parts[0])).unwrap();
    let app = TestApp::start_on(directory, clock, Options::default()).await;
    assert_eq!(app.metric("ledger_behind").await, "1");
    assert_eq!((app.sweep().await.expired, app.files().len()), (0, 1));
}
