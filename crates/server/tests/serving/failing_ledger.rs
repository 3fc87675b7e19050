//! A ledger that cannot be written, or not be read.

use std::time::Duration;

use cloakroom_core::protocol::v1::Ticket;
use cloakroom_testing::logs;
use cloakroom_testing::wait::until;
use cloakroom_testing::wire::{Wire, upload_head};
use reqwest::Method;
use sqlx::{Connection as _, SqliteConnection};

use crate::admin::Administered;
use crate::support::TestApp;
use crate::support::app::problem;
use crate::support::faults::{Fault, Side, Step};

async fn readiness(app: &TestApp) -> u16 {
    app.get("/readyz").send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_a_503_with_retry_before_the_body() {
    let app = TestApp::start().await;
    let ticket = app.stage("jars").await;
    let again = |response: &reqwest::Response| response.headers().get("retry-after").is_some();
    for step in [Step::StoreBegin, Step::LedgerBegin] {
        app.faults.set(step, Fault::Away);
        let mut wire = Wire::connect(app.address).await;
        wire.send(upload_head("Content-Length: 100000\r\nExpect: 100-continue\r\n")).await;
        assert_eq!(wire.answer().await.status, 503, "{step:?}: it comes in place of 100");
        app.faults.clear();
    }
    for step in [Step::StoreBegin, Step::StoreWrite, Step::StoreCommit, Step::LedgerBegin] {
        app.faults.set(step, Fault::Away);
        let refused = app.put("", vec![7; 100_000]).send().await.unwrap();
        assert_eq!((refused.status().as_u16(), again(&refused)), (503, true), "{step:?}");
        app.faults.clear();
        app.sweep().await;
    }
    for request in [app.download(&ticket), app.delete(&ticket)] {
        app.faults.set(Step::StoreOpen, Fault::Away);
        app.faults.set(Step::LedgerMarkDeleting, Fault::Away);
        let refused = request.send().await.unwrap();
        assert_eq!((refused.status().as_u16(), again(&refused)), (503, true));
        app.faults.clear();
    }
    assert_eq!(app.download(&ticket).send().await.unwrap().text().await.unwrap(), "jars");
}

// Invariant: downloads and `/readyz` agree, in every state of the ledger.
#[tokio::test]
async fn what_cannot_be_written_down_is_served_and_noted_later() {
    let app = TestApp::start().await;
    let (used, unused) = (app.stage("jars").await, app.stage("others").await);
    assert_eq!(app.download(&used).send().await.unwrap().text().await.unwrap(), "jars");
    for step in [Step::LedgerMarkUsed, Step::LedgerMarkDeleting, Step::LedgerBegin] {
        app.faults.set(step, Fault::FailBefore);
    }
    let unnoted = || logs::lines_with("a download could not be noted");
    let of = |ticket: &Ticket| unnoted().iter().filter(|line| line.contains(&ticket.resource_id)).count();
    assert_eq!(app.download(&used).send().await.unwrap().status(), 200);
    assert_eq!(of(&used), 0, "within a second it is the same use");
    app.clock.advance(Duration::from_secs(1));
    for (ticket, bytes) in [(&used, "jars"), (&unused, "others")] {
        for _ in 0..2 {
            let answer = app.download(ticket).send().await.unwrap();
            assert_eq!(answer.status(), 200);
            assert_eq!(answer.text().await.unwrap(), bytes);
        }
    }
    assert_eq!(readiness(&app).await, 200, "downloads are served");
    assert_eq!((of(&used), of(&unused)), (1, 0), "it is said once: {:?}", unnoted());
    assert_eq!(app.put("", "more").send().await.unwrap().status(), 500);
    assert!(app.try_sweep().await.is_err(), "the metric of failed sweeps tells of it");
    assert!(!app.ready_row(&unused.resource_id).await.is_used());
    app.faults.clear();
    app.sweep().await;
    assert!(app.ready_row(&unused.resource_id).await.is_used());
}

#[tokio::test]
async fn an_unreadable_ledger_makes_the_server_unready_while_downloads_fail() {
    let app = TestApp::start().await;
    let ticket = app.stage("jars").await;
    app.faults.set(Step::LedgerFind, Fault::FailBefore);
    assert_eq!(app.download(&ticket).send().await.unwrap().status(), 500);
    let answer = problem(app.get("/readyz").send().await.unwrap()).await;
    assert_eq!((answer.status, answer.code.as_str()), (503, "not-ready"));
    assert!(
        answer.detail.starts_with("downloads cannot be served: the ledger could not be read"),
        "{answer:?}"
    );
    app.faults.clear();
    assert_eq!(readiness(&app).await, 200);
    assert_eq!(app.download(&ticket).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_lock_of_another_process_on_the_ledger_is_told_and_passes() {
    let app = TestApp::start().await;
    let url = format!("sqlite://{}", app.data_dir().join("ledger.db").display());
    let mut other = SqliteConnection::connect(&url).await.unwrap();
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let answer = problem(app.put("", "jars").send().await.unwrap()).await;
    assert_eq!((answer.status, answer.code.as_str()), (503, "not-writable"), "{answer:?}");
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    other.close().await.unwrap();
    app.stage("jars").await;
    until("nothing else is left", async || app.files().len() == 1).await;
}

// Invariant: on a disk that cannot be written, changes fail with a clear error, and downloads go on.
#[tokio::test]
async fn a_read_only_disk_is_told_in_the_same_words_to_every_change() {
    let server = Administered::start().await;
    let (kept, due) = (server.app.stage("jars").await, server.app.stage("others").await);
    server.use_once(&kept).await;
    server.app.clock.advance(std::time::Duration::from_hours(1));
    for step in [Step::LedgerBegin, Step::LedgerMarkDeleting, Step::LedgerMarkUsed, Step::StoreDelete] {
        server.app.faults.set(step, Fault::ReadOnly);
    }
    let mut answers = Vec::new();
    for request in [server.app.put("", "more"), server.app.delete(&kept)] {
        answers.push(problem(request.send().await.unwrap()).await);
    }
    answers.push(problem(server.ask(Method::POST, "/admin/v1/sweeps").await).await);
    // The other half of the data directory.
    server.app.faults.clear();
    for step in [Step::StoreBegin, Step::StoreDelete] {
        server.app.faults.set(step, Fault::ReadOnly);
    }
    answers.push(problem(server.app.put("", "more").send().await.unwrap()).await);
    answers.push(problem(server.ask(Method::POST, "/admin/v1/sweeps").await).await);
    for answer in &answers {
        assert_eq!((answer.status, answer.code.as_str()), (503, "not-writable"), "{answer:?}");
        assert!(answer.detail.contains("cannot write to its storage"), "{answer:?}");
        assert_eq!(answer.detail, answers[0].detail);
    }
    assert_eq!(server.app.download(&kept).send().await.unwrap().status(), 200);
    assert_eq!(readiness(&server.app).await, 200);
    server.app.faults.clear();
    assert_eq!(server.ask(Method::POST, "/admin/v1/sweeps").await.status(), 200);
    assert_eq!(server.app.download(&due).send().await.unwrap().status(), 410);
    assert_eq!(server.app.delete(&kept).send().await.unwrap().status(), 204);
}

#[tokio::test]
async fn a_deletion_without_room_for_its_record_is_a_507_and_deletes_nothing() {
    let app = TestApp::start().await;
    let ticket = app.stage("jars").await;
    app.faults.set(Step::LedgerMarkDeleting, Fault::Full);
    let answer = problem(app.delete(&ticket).send().await.unwrap()).await;
    assert_eq!((answer.status, answer.code.as_str()), (507, "insufficient-storage"));
    assert!(answer.detail.contains("the server's disk is full"), "{answer:?}");
    assert_eq!(app.download(&ticket).send().await.unwrap().status(), 200);
    app.faults.clear();
    assert_eq!(app.delete(&ticket).send().await.unwrap().status(), 204);
}

#[tokio::test]
async fn on_a_full_ledger_downloads_go_on_and_their_use_is_written_down_later() {
    let app = TestApp::start().await;
    let ticket = app.stage("a bundle").await;
    app.faults.set(Step::LedgerMarkUsed, Fault::Full);
    for _ in 0..3 {
        let answer = app.download(&ticket).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.text().await.unwrap(), "a bundle");
    }
    assert!(!app.ready_row(&ticket.resource_id).await.is_used());
    // Past its unused timeout: it was used, and that is not forgotten while there is no room to write it down.
    app.clock.advance(Duration::from_mins(31));
    app.sweep().await;
    assert_eq!(app.download(&ticket).send().await.unwrap().status(), 200);
    app.faults.clear();
    app.sweep().await;
    assert!(app.ready_row(&ticket.resource_id).await.is_used());
    assert_eq!(app.download(&ticket).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_use_that_a_full_ledger_cannot_take_holds_off_a_deletion_under_way() {
    let app = TestApp::start().await;
    let ticket = app.stage("a bundle").await;
    app.clock.advance(Duration::from_mins(31));
    app.faults.set(Step::LedgerMarkUsed, Fault::Full);
    let stop = app.faults.stop_at(Step::StoreReplaceStamp, Side::Before);
    let sweep = tokio::spawn(app.sweeping());
    stop.reached().await;
    assert_eq!(app.download(&ticket).send().await.unwrap().text().await.unwrap(), "a bundle");
    stop.go_on();
    sweep.await.unwrap();
    assert_eq!(app.download(&ticket).send().await.unwrap().text().await.unwrap(), "a bundle");
}

#[tokio::test]
async fn an_upload_that_fills_the_disk_leaves_no_bytes_even_if_its_row_stays() {
    let app = TestApp::start().await;
    app.faults.set(Step::StoreCommit, Fault::Full);
    app.faults.set(Step::LedgerFinishDeletion, Fault::Full);
    let answer = app.put("", vec![7; 2_000_000]).send().await.unwrap();
    assert_eq!(answer.status(), 507);
    assert_eq!(app.files(), Vec::<String>::new());
    app.faults.clear();
    app.sweep().await;
    app.assert_nothing_kept().await;
}
