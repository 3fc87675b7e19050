//! Whatever fails or stops at whatever step: row and bytes are both there, or both gone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloakroom_core::protocol::v1::Ticket;
use cloakroom_storage::ledger::Stored;
use cloakroom_testing::clock::ManualClock;
use cloakroom_testing::wait::until;
use cloakroom_testing::wire::Wire;
use futures_util::stream;
use sha2::{Digest as _, Sha256};

use crate::support::TestApp;
use crate::support::app::{Options, problem};
use crate::support::faults::{Fault, Step};

const UPLOAD: [Step; 5] =
    [Step::LedgerBegin, Step::StoreBegin, Step::StoreWrite, Step::StoreCommit, Step::LedgerComplete];
const DOWNLOAD: [Step; 2] = [Step::LedgerFind, Step::StoreOpen];
const DELETION: [Step; 3] = [Step::LedgerMarkDeleting, Step::StoreDelete, Step::LedgerFinishDeletion];
const FAULTS: [Fault; 3] = [Fault::FailBefore, Fault::FailAfter, Fault::Full];

/// How the server gets over it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Then {
    Sweep,
    Restart,
}

impl Then {
    async fn recover(self, app: TestApp) -> TestApp {
        match self {
            Self::Sweep => {
                app.faults.clear();
                app.sweep().await;
                app
            }
            Self::Restart => app.crash_and_restart().await,
        }
    }
}

fn cases(steps: &[Step]) -> Vec<(Step, Fault, Then)> {
    let faults = |step: &Step| FAULTS.map(|fault| (*step, fault));
    let cases = steps.iter().flat_map(faults);
    cases.flat_map(|(step, fault)| [Then::Sweep, Then::Restart].map(|then| (step, fault, then))).collect()
}

/// Every row is ready or a tombstone, every file is the whole bundle of a ready row, and the totals are those of
/// the files.
async fn assert_whole(app: &TestApp, what: &str) {
    let files = app.files();
    let mut bytes = 0;
    for file in &files {
        let (folder, id) = file.rsplit_once('/').unwrap();
        assert_eq!(folder, format!("bundles/{}", &id[..2]), "{what}");
        let bundle = app.ready_row(id).await.data.bundle;
        let content = std::fs::read(app.data_dir().join(file)).unwrap();
        let truth = (content.len() as u64, Sha256::digest(&content).into());
        assert_eq!((bundle.size_bytes, bundle.sha256), truth, "{what}: {file}");
        bytes += truth.0;
    }
    let mut rows = app.rows().await;
    rows.remove("deleted");
    let ready = files.len() as u64;
    let expected = if ready == 0 { BTreeMap::new() } else { BTreeMap::from([("ready", ready)]) };
    assert_eq!(rows, expected, "{what}: rows without files");
    assert_eq!(app.stored().await, Stored { resources: ready, bytes }, "{what}");
    assert_eq!(app.staging.in_flight(), (0, 0), "{what}");
}

/// A body whose length is not announced, so its room is charged as it comes.
fn unannounced(text: &'static str) -> reqwest::Body {
    reqwest::Body::wrap_stream(stream::iter([Ok::<_, std::io::Error>(text)]))
}

async fn assert_downloads(app: &TestApp, ticket: &Ticket, bundle: &str) {
    let response = app.download(ticket).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.text().await.unwrap(), bundle);
}

async fn assert_goes_on(app: &TestApp, acknowledged: &Ticket) {
    assert_downloads(app, acknowledged, "acknowledged before").await;
    let next = app.stage("the next one").await;
    assert_downloads(app, &next, "the next one").await;
}

// Invariant: an upload that fails, at any step, leaves neither row nor bytes.
#[tokio::test]
async fn an_upload_that_fails_at_any_step_is_gone_after_a_sweep_or_a_restart() {
    // With `dies`, nothing cleans up after the failure, as if the process had ended there.
    for ((step, fault, then), dies) in
        cases(&UPLOAD).into_iter().flat_map(|case| [(case, false), (case, true)])
    {
        let what = format!("{step:?} {fault:?} {then:?} dies: {dies}");
        let app = TestApp::start().await;
        let acknowledged = app.stage("acknowledged before").await;
        app.faults.set(step, fault);
        if dies {
            app.faults.set(Step::LedgerAbandon, Fault::FailBefore);
            app.faults.set(Step::StoreAbort, Fault::FailBefore);
        }
        let refused = problem(app.put("", unannounced("not acknowledged")).send().await.unwrap()).await;
        let expected = if fault == Fault::Full { (507, "insufficient-storage") } else { (500, "internal") };
        assert_eq!((refused.status, refused.code.as_str()), expected, "{what}");
        assert!(!refused.detail.contains("injected"), "{what}: {}", refused.detail);

        let app = then.recover(app).await;
        // A whole bundle of an earlier process may have been acknowledged, as far as a later one knows.
        app.clean_strays().await;
        assert_whole(&app, &what).await;
        // Only a commit whose answer was lost may have made it ready after all.
        let answer_was_lost = (step, fault) == (Step::LedgerComplete, Fault::FailAfter);
        assert_eq!(app.files().len(), if answer_was_lost { 2 } else { 1 }, "{what}");
        assert_goes_on(&app, &acknowledged).await;
    }
}

#[tokio::test]
async fn what_a_failed_clean_up_leaves_the_next_sweep_removes() {
    for step in [Step::LedgerAbandon, Step::StoreAbort, Step::LedgerFinishAbandoned] {
        for fault in FAULTS {
            let app = TestApp::start().await;
            app.faults.set(Step::StoreCommit, Fault::FailAfter);
            app.faults.set(step, fault);
            assert_eq!(app.put("", "not acknowledged").send().await.unwrap().status(), 500);
            app.faults.clear();
            app.sweep().await;
            app.assert_nothing_kept().await;
        }
    }
}

#[tokio::test]
async fn a_download_that_fails_at_any_step_is_no_use_and_the_next_one_succeeds() {
    for (step, fault, then) in cases(&DOWNLOAD) {
        let what = format!("{step:?} {fault:?} {then:?}");
        let app = TestApp::start().await;
        let acknowledged = app.stage("acknowledged before").await;
        app.faults.set(step, fault);
        let status = app.download(&acknowledged).send().await.unwrap().status();
        assert!(status.is_server_error(), "{what}: {status}");
        let app = then.recover(app).await;
        assert!(!app.ready_row(&acknowledged.resource_id).await.is_used(), "{what}");
        assert_whole(&app, &what).await;
        assert_goes_on(&app, &acknowledged).await;
    }
}

#[tokio::test]
async fn a_delete_that_fails_at_any_step_is_finished_or_never_happened() {
    for (step, fault, then) in cases(&DELETION) {
        let what = format!("{step:?} {fault:?} {then:?}");
        let app = TestApp::start().await;
        let acknowledged = app.stage("acknowledged before").await;
        let deleted = app.stage("to be deleted").await;
        app.faults.set(step, fault);
        let refused = problem(app.delete(&deleted).send().await.unwrap()).await;
        let is_full = fault == Fault::Full && step != Step::StoreDelete;
        let expected = if is_full { (507, "insufficient-storage") } else { (500, "internal") };
        assert_eq!((refused.status, refused.code.as_str()), expected, "{what}");

        let app = then.recover(app).await;
        assert_whole(&app, &what).await;
        if step == Step::LedgerMarkDeleting && fault != Fault::FailAfter {
            assert_downloads(&app, &deleted, "to be deleted").await;
        } else {
            let gone = problem(app.download(&deleted).send().await.unwrap()).await;
            assert_eq!((gone.status, gone.deletion_reason.as_deref()), (410, Some("released")), "{what}");
        }
        assert_eq!(app.delete(&deleted).send().await.unwrap().status(), 204, "{what}");
        assert_goes_on(&app, &acknowledged).await;
        assert_whole(&app, &what).await;
    }
}

#[tokio::test]
async fn an_expiry_that_fails_at_any_step_ends_with_the_next_sweep_or_start() {
    for (step, fault, then) in cases(&DELETION) {
        let what = format!("{step:?} {fault:?} {then:?}");
        let app = TestApp::start().await;
        let acknowledged = app.stage("acknowledged before").await;
        assert_downloads(&app, &acknowledged, "acknowledged before").await;
        let expired = app.stage("to expire").await;
        app.clock.advance(Duration::from_mins(31));
        app.faults.set(step, fault);
        // It may say that it failed, or leave the rest to the next one.
        let _ = app.try_sweep().await;

        let app = then.recover(app).await;
        assert_whole(&app, &what).await;
        let gone = problem(app.download(&expired).send().await.unwrap()).await;
        assert_eq!((gone.status, gone.deletion_reason.as_deref()), (410, Some("unused")), "{what}");
        assert_goes_on(&app, &acknowledged).await;
    }
}

#[tokio::test]
async fn one_bundle_that_cannot_be_removed_keeps_no_other_from_expiring() {
    let app = TestApp::start().await;
    let stuck = app.stage("stuck").await;
    let file = app.data_dir().join(&app.files()[0]);
    app.stage("another").await;
    app.stage("yet another").await;
    // A folder in its place: unlink fails on it, for root too.
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    app.clock.advance(Duration::from_mins(31));
    let _ = app.try_sweep().await;
    let _ = app.try_sweep().await;
    assert_eq!(app.rows().await, BTreeMap::from([("deleting", 1), ("deleted", 2)]));

    let app = app.crash_and_restart().await;
    std::fs::remove_dir(&file).unwrap();
    app.sweep().await;
    assert_eq!(app.rows().await, BTreeMap::from([("deleted", 3)]));
    assert_eq!(app.download(&stuck).send().await.unwrap().status(), 410);
}

#[tokio::test]
async fn a_full_disks_reserve_is_for_deletions_alone_and_the_sweep_renews_it() {
    for step in [Step::LedgerMarkDeleting, Step::LedgerMarkUsed] {
        let app = TestApp::start().await;
        let ticket = app.stage("jars").await;
        let reserve = app.data_dir().join("reserve");
        assert!(reserve.exists());
        app.faults.set(step, Fault::Full);
        let request = if step == Step::LedgerMarkUsed { app.download(&ticket) } else { app.delete(&ticket) };
        // The fault stays, so the second try does not help; on a disk it would. A download goes on all the same.
        let expected = if step == Step::LedgerMarkUsed { 200 } else { 507 };
        assert_eq!(request.send().await.unwrap().status(), expected);
        assert_eq!(reserve.exists(), step == Step::LedgerMarkUsed, "{step:?}");
        app.faults.clear();
        assert_downloads(&app, &ticket, "jars").await;
        assert_eq!(app.delete(&ticket).send().await.unwrap().status(), 204);
        app.sweep().await;
        assert!(reserve.exists(), "{step:?}");
    }
}

/// A server that takes 2,000 bytes in all.
async fn small() -> TestApp {
    let mut options = Options::default();
    options.limits.capacity.max_total_size = Some(2000);
    let directory = Arc::new(tempfile::tempdir().unwrap());
    TestApp::start_on(directory, Arc::new(ManualClock::new()), options).await
}

// Invariant: room is counted correctly after lost answers.
#[tokio::test]
async fn the_room_is_counted_right_after_lost_answers() {
    for (step, taken) in [
        (Step::LedgerComplete, 1000),
        (Step::StoreCommit, 0),
        (Step::LedgerMarkDeleting, 0),
        (Step::StoreDelete, 0),
        (Step::LedgerFinishDeletion, 0),
    ] {
        let app = small().await;
        if UPLOAD.contains(&step) {
            app.faults.set(step, Fault::FailAfter);
            assert_eq!(app.put("", vec![0; 1000]).send().await.unwrap().status(), 500);
        } else {
            let ticket = app.stage(vec![0; 1000]).await;
            app.faults.set(step, Fault::FailAfter);
            assert_eq!(app.delete(&ticket).send().await.unwrap().status(), 500);
        }
        app.faults.clear();
        app.sweep().await;
        assert_eq!(app.stored().await.bytes, taken, "{step:?}");
        let room = 2000 - usize::try_from(taken).unwrap();
        assert_eq!(app.put("", vec![0; room + 1]).send().await.unwrap().status(), 507, "{step:?}");
        assert_eq!(app.put("", vec![0; room]).send().await.unwrap().status(), 201, "{step:?}");
    }
}

#[tokio::test]
async fn a_resource_that_is_deleted_by_many_at_once_gives_its_room_back_once() {
    let app = small().await;
    app.stage(vec![0; 1000]).await;
    for _ in 0..20 {
        let deleted = app.stage(vec![0; 1000]).await;
        app.faults.set(Step::StoreDelete, Fault::FailBefore);
        assert_eq!(app.delete(&deleted).send().await.unwrap().status(), 500);
        app.faults.clear();
        let again = || app.delete(&deleted).send();
        let (first, second, third, _) = tokio::join!(again(), again(), again(), app.sweep());
        for answer in [first, second, third] {
            assert_eq!(answer.unwrap().status(), 204);
        }
        assert_eq!(app.put("", vec![0; 1001]).send().await.unwrap().status(), 507);
    }
    assert_whole(&app, "after all").await;
}

#[tokio::test]
async fn a_client_that_goes_away_in_the_middle_leaves_nothing() {
    let app = TestApp::start().await;
    let query = "namespace=demo&label=app%3Ddemo";
    for framing in ["Content-Length: 500000", "Transfer-Encoding: chunked"] {
        let mut wire = Wire::connect(app.address).await;
        let head = format!("PUT /api/v1/resources/a?{query} HTTP/1.1\r\nHost: x\r\n{framing}\r\n\r\n");
        wire.send(head).await;
        if framing.contains("chunked") {
            wire.send(format!("{:x}\r\n", 500_000)).await;
        }
        wire.send(vec![0; 300_000]).await;
        until("bytes are arriving", async || !app.files().is_empty()).await;
        drop(wire);
        until("nothing is left", async || app.rows().await.is_empty() && app.files().is_empty()).await;
        app.assert_nothing_kept().await;
    }
}

#[tokio::test]
async fn a_client_that_leaves_before_the_answer_leaves_all_or_nothing() {
    let app = TestApp::start().await;
    for _ in 0..30 {
        let mut wire = Wire::connect(app.address).await;
        let head = "PUT /api/v1/resources/a?namespace=demo&name=driver HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n";
        assert!(wire.send(format!("{head}last byte")).await);
        drop(wire);
    }
    // A stop lets everything that has begun come to its end.
    let app = app.crash_and_restart().await;
    assert_whole(&app, "gone before the answer").await;
    // Nobody has their tickets: they go like everything that nobody uses.
    app.clock.advance(Duration::from_mins(31));
    app.sweep().await;
    assert_eq!(app.files(), Vec::<String>::new());
}
