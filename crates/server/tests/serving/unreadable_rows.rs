//! Rows of the ledger that this version cannot read.

use cloakroom_core::protocol::admin::{Removal, ServerStatus};
use cloakroom_core::resource::DeletionReason;
use cloakroom_testing::logs;
use reqwest::Method;

use crate::admin::{Administered, read};
use crate::support::TestApp;
use crate::support::app::{Options, problem};

fn damage(id: &str, what: &str) -> String {
    format!("UPDATE resources SET {what} WHERE id = '{id}'")
}

// Invariant: an unreadable row affects only its own ticket, and is kept.
#[tokio::test]
async fn a_row_that_cannot_be_read_is_set_aside_and_the_others_are_served() {
    let app = TestApp::start().await;
    let (good, broken) = (app.stage("jars").await, app.stage("others").await);
    app.change_ledger(&damage(&broken.resource_id, "owner_labels = '{broken'")).await;
    let app = app.crash_and_restart().await;
    app.keep_secret(&broken.resource_secret);
    assert_eq!(app.metric("unreadable_resources").await, "1");
    assert_eq!(app.download(&good).send().await.unwrap().status(), 200);
    for request in [app.download(&broken), app.delete(&broken)] {
        let answer = problem(request.send().await.unwrap()).await;
        assert_eq!((answer.status, answer.code.as_str()), (500, "internal"));
        assert!(
            answer.detail.contains("cannot read") && answer.detail.contains("(owner_labels)"),
            "{answer:?}"
        );
    }
    let path = format!("/api/v1/resources/{}", broken.resource_id);
    assert_eq!(app.get(&path).bearer_auth("another").send().await.unwrap().status(), 404);
    // Long past all times, and past a sweep that reads everything again.
    app.clock.advance(std::time::Duration::from_hours(24 * 30));
    for _ in 0..101 {
        app.sweep().await;
    }
    assert_eq!(app.download(&broken).send().await.unwrap().status(), 500);
    assert_eq!(app.stored().await.bytes, 6 + 4, "its room counts");
    let lines = logs::lines_with(&broken.resource_id);
    let said =
        lines.iter().filter(|line| line.contains("set aside") && line.contains("owner_labels")).count();
    assert_eq!(said, 1, "{lines:?}");
    // Whoever starts the version that can read it has it again.
    let whole = damage(&broken.resource_id, "owner_labels = '{\"app\":\"demo\"}'");
    app.change_ledger(&whole).await;
    assert_eq!(app.download(&broken).send().await.unwrap().text().await.unwrap(), "others");
}

#[tokio::test]
async fn a_row_that_becomes_unreadable_while_the_server_runs_holds_up_no_sweep() {
    let server = Administered::start().await;
    let (good, broken) = (server.app.stage("jars").await, server.app.stage("others").await);
    server.app.change_ledger(&damage(&broken.resource_id, "owner_kind = 'not a kind'")).await;
    server.app.clock.advance(std::time::Duration::from_hours(1));
    let swept = server.app.sweep().await;
    assert_eq!(swept.deleted, [(DeletionReason::Unused, 1)].into());
    assert_eq!(server.app.download(&good).send().await.unwrap().status(), 410);
    assert_eq!(server.app.download(&broken).send().await.unwrap().status(), 500);
    server.app.sweep().await;
    assert_eq!(server.app.metric("unreadable_resources").await, "1");
    let status: ServerStatus = server.get("/admin/v1/status").await;
    assert_eq!(status.unreadable_resources, 1);
    let path = format!("/admin/v1/resources/{}", broken.resource_id);
    let shown = problem(server.ask(Method::GET, &path).await).await;
    assert!(shown.status == 500 && shown.detail.contains("(owner_kind)"), "{shown:?}");
    assert_eq!(server.ask(Method::DELETE, &format!("{path}?unused=true")).await.status(), 409);
    let removal: Removal = read(server.ask(Method::DELETE, &path).await).await;
    assert!(removal.removed);
    assert_eq!(server.app.metric("unreadable_resources").await, "0");
    assert_eq!(server.app.files(), Vec::<String>::new());
    assert_eq!(server.app.download(&broken).send().await.unwrap().status(), 410);
    assert_eq!(server.app.stored().await.bytes, 0);
}

#[tokio::test]
async fn what_was_interrupted_is_finished_even_if_it_cannot_be_read() {
    let app = TestApp::start().await;
    let mut tickets = Vec::new();
    for _ in 0..2 {
        tickets.push(app.stage("jars").await);
    }
    let of_another_version =
        "owner_labels = '[]', owner_kind = 'no kind', first_used_at = 9223372036854775807";
    for (ticket, state) in tickets.iter().zip(["pending", "deleting"]) {
        let what = format!("state = '{state}', {of_another_version}");
        app.change_ledger(&damage(&ticket.resource_id, &what)).await;
    }
    let app = app.crash_and_restart_with(Options::default()).await;
    assert_eq!(app.rows().await, [("deleted", 1)].into());
    assert_eq!((app.files().len(), app.clean_strays().await), (1, 1), "the one of the upload is a stray");
    assert_eq!(app.files(), Vec::<String>::new());
}
