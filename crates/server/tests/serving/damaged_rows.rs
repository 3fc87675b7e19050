//! Rows of the ledger with any value in any column: each costs itself and nothing else.

use std::time::Duration;

use cloakroom_core::protocol::admin::{Removal, ResourcePage, ServerStatus, SweepReport};
use cloakroom_core::protocol::v1::Ticket;
use cloakroom_testing::logs;
use reqwest::Method;

use crate::admin::{Administered, read};
use crate::support::TestApp;
use crate::support::app::{Options, problem};
use crate::support::faults::{Fault, Step};

/// What the table's own rules allow, or would if SQLite held to them: `CHECK` does not see what is text.
const DAMAGE: [(&str, &str); 17] = [
    ("size_bytes", "9223372036854775807"),
    ("size_bytes", "9223372036854775806"),
    ("size_bytes", "-1"),
    ("size_bytes", "NULL"),
    ("sha256", "NULL"),
    ("sha256", "x'00'"),
    ("owner_namespace", "CAST(x'ff' AS TEXT)"),
    ("owner_namespace", "NULL"),
    ("owner_namespace", "'Bad NS/../'"),
    ("owner_name", "'A name/../'"),
    ("owner_labels", "NULL"),
    ("owner_kind", "NULL"),
    ("created_at", "9223372036854775807"),
    ("unused_timeout_millis", "-1"),
    ("ttl_millis", "-1"),
    ("last_used_at", "9223372036854775807"),
    ("state", "'unheard-of'"),
];

/// What a strict table does not take.
const OTHER_TYPES: [(&str, &str); 6] = [
    ("size_bytes", "'many'"),
    ("size_bytes", "1e300"),
    ("owner_namespace", "x'ff00'"),
    ("created_at", "'today'"),
    ("owner_kind", "x'50'"),
    ("file_name", "x'ff'"),
];

fn damage(id: &str, column: &str, value: &str) -> String {
    format!("PRAGMA ignore_check_constraints = ON; UPDATE resources SET {column} = {value} WHERE id = '{id}'")
}

/// Runs statements while the table is not strict.
async fn loosely(app: &TestApp, sql: &str) {
    let strict = "STRICT, WITHOUT ROWID";
    let table = async |from: &str, to: &str| {
        let change = format!(
            "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, '{from}', '{to}') \
             WHERE name = 'resources'"
        );
        app.change_ledger(&change).await;
    };
    table(strict, "WITHOUT  ROWID").await;
    app.change_ledger(sql).await;
    table("WITHOUT  ROWID", strict).await;
}

fn path(id: &str) -> String {
    format!("/admin/v1/resources/{id}")
}

/// One resource for each damage.
async fn every_damage(app: &TestApp) -> Vec<(Ticket, &'static str)> {
    let mut broken = Vec::new();
    for (column, value) in DAMAGE {
        let ticket = app.stage("others").await;
        app.change_ledger(&damage(&ticket.resource_id, column, value)).await;
        broken.push((ticket, column));
    }
    for (column, value) in OTHER_TYPES {
        let ticket = app.stage("others").await;
        loosely(app, &damage(&ticket.resource_id, column, value)).await;
        broken.push((ticket, column));
    }
    broken
}

/// A server with one good resource and one for each damage, started anew on them.
async fn with_every_damage() -> (Administered, Ticket, Vec<(Ticket, &'static str)>) {
    let app = TestApp::start().await;
    let good = app.stage("jars").await;
    let broken = every_damage(&app).await;
    (Administered::restart(app).await, good, broken)
}

#[tokio::test]
async fn a_row_with_any_damage_stops_no_start_no_sweep_and_no_other_resource() {
    let (server, good, broken) = with_every_damage().await;
    let app = &server.app;
    assert_eq!(app.metric("unreadable_resources").await, broken.len().to_string());
    assert_eq!(app.download(&good).send().await.unwrap().status(), 200);
    for (ticket, column) in &broken {
        let answer = problem(app.download(ticket).send().await.unwrap()).await;
        assert_eq!((answer.status, answer.code.as_str()), (500, "internal"), "{column}");
        assert!(answer.detail.contains(&format!("({column})")), "{answer:?}");
    }
    let stored = app.stored().await;
    let known = broken.iter().filter(|(_, column)| *column != "size_bytes").count() as u64;
    assert_eq!((stored.resources, stored.bytes), (broken.len() as u64 + 1, 4 + known * 6));
    // Long past all times, and past a sweep that reads everything again.
    app.clock.advance(Duration::from_hours(24 * 30));
    for _ in 0..101 {
        app.sweep().await;
    }
    assert_eq!(app.files().len(), broken.len() + 1, "none of their bytes is gone");
    assert_eq!(app.download(&good).send().await.unwrap().status(), 200);
    let ticket = app.stage("more").await;
    assert_eq!(app.download(&ticket).send().await.unwrap().status(), 200);
}

// Invariant: an admin can remove an unreadable row, and an unreadable tombstone is still a tombstone.
#[tokio::test]
async fn an_admin_can_remove_a_damaged_row_unless_the_table_refuses_the_change() {
    let (server, good, broken) = with_every_damage().await;
    let (mut removed, mut refused) = (0, 0);
    for (ticket, column) in &broken {
        let answer = server.ask(Method::DELETE, &path(&ticket.resource_id)).await;
        if answer.status() == 500 {
            let told = problem(answer).await;
            assert!(
                told.detail.contains("is too damaged to be changed") && told.detail.contains(column),
                "{told:?}"
            );
            assert_eq!(server.app.download(ticket).send().await.unwrap().status(), 500, "{column}");
            refused += 1;
        } else {
            let removal: Removal = read(answer).await;
            let known = (*column != "size_bytes").then_some(6);
            assert_eq!((removal.removed, removal.size_bytes), (true, known), "{column}");
            assert_eq!(server.app.download(ticket).send().await.unwrap().status(), 410, "{column}");
            removed += 1;
        }
    }
    assert!(removed >= 6 && refused >= 6, "{removed} removed, {refused} refused");
    assert_eq!(server.app.metric("unreadable_resources").await, refused.to_string());
    server.app.sweep().await;
    assert_eq!(server.app.files().len(), 1 + refused);
    assert_eq!(server.app.download(&good).send().await.unwrap().status(), 200);
}

/// With room for `total` bytes in all, of which each resource takes 4 KiB at least.
fn with_room(total: u64) -> Options {
    let mut options = Options::default();
    options.limits.capacity.least_charge = 4 << 10;
    options.limits.capacity.max_total_size = Some(total);
    options
}

#[tokio::test]
async fn the_room_of_an_unreadable_row_is_free_as_soon_as_it_is_removed() {
    const GOOD: u64 = 7919;
    let total = GOOD + 12_007 * 2 + 4096;
    let server = Administered::start_with(with_room(total)).await;
    server.app.stage(vec![b'g'; GOOD as usize]).await;
    let mut named = Vec::new();
    for (size, column, value, charge) in [
        (12_007, "owner_name", "'A name/../'", 12_007),
        (12_007, "ttl_millis", "-1", 12_007),
        (6, "created_at", "9223372036854775807", 4096),
    ] {
        let id = server.app.stage(vec![b'b'; size]).await.resource_id;
        server.app.change_ledger(&damage(&id, column, value)).await;
        named.push((id, column, charge));
    }
    let server = server.restart_with(with_room(total)).await;
    let stored = async || server.app.metric("stored_bytes").await.parse::<u64>().unwrap();
    assert_eq!(stored().await, total);
    assert_eq!(server.app.put("", "more").send().await.unwrap().status(), 507);
    let mut left = total;
    for (name, column, charge) in named {
        let removal: Removal = read(server.ask(Method::DELETE, &path(&name)).await).await;
        left -= charge;
        assert_eq!((removal.removed, stored().await), (true, left), "{column} of {name}");
        let lines = logs::lines_with(&name);
        let is_told = |line: &String| line.contains(" deleted ") && line.contains("reason=removed");
        assert_eq!(lines.iter().filter(|line| is_told(line)).count(), 1, "{lines:?}");
    }
    assert_eq!(left, GOOD);
    server.app.sweep().await;
    let corrections = logs::lines_with("the account of the room was wrong");
    assert!(!corrections.iter().any(|line| line.contains(&format!("stored={GOOD}"))), "{corrections:?}");
    server.app.stage(vec![b'm'; 12_007 * 2]).await;
}

#[tokio::test]
async fn interrupted_deletions_of_damaged_rows_end_with_bounded_tombstones() {
    let app = TestApp::start().await;
    let good = app.stage("jars").await;
    for (column, value) in [
        ("size_bytes", "9223372036854775807"),
        ("size_bytes", "9223372036854775807"),
        ("size_bytes", "-1"),
        ("owner_namespace", "CAST(x'ff' AS TEXT)"),
        ("owner_namespace", "CAST(x'ff' AS TEXT)"),
        ("owner_namespace", "NULL"),
        ("deletion_reason", "CAST(x'ff' AS TEXT)"),
    ] {
        let id = app.stage("others").await.resource_id;
        app.change_ledger(&damage(&id, "deleted_at", "created_at, state = 'deleting'")).await;
        app.change_ledger(&damage(&id, column, value)).await;
    }
    let app = app.crash_and_restart().await;
    assert_eq!(app.rows().await, [("ready", 1), ("deleted", 7)].into());
    assert_eq!(app.files().len(), 1);
    // With room for none of them.
    let mut options = Options::default();
    options.limits.max_resources = 0;
    let app = app.crash_and_restart_with(options).await;
    assert_eq!(app.rows().await, [("ready", 1)].into());
    assert_eq!(app.stored().await.bytes, 4);
    app.keep_secret(&good.resource_secret);
    assert_eq!(app.download(&good).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_damaged_tombstone_still_answers_gone_and_is_forgotten_like_others() {
    let server = Administered::start().await;
    let app = &server.app;
    let mut tickets = Vec::new();
    for (column, value) in [
        ("deletion_reason", "'of a later version'"),
        ("deletion_reason", "NULL"),
        ("deleted_at", "NULL"),
        ("deleted_at", "9223372036854775807"),
        ("size_bytes", "9223372036854775807"),
        ("owner_namespace", "CAST(x'ff' AS TEXT)"),
        ("created_at", "-9223372036854775808"),
    ] {
        let ticket = app.stage("jars").await;
        assert_eq!(app.delete(&ticket).send().await.unwrap().status(), 204);
        app.change_ledger(&damage(&ticket.resource_id, column, value)).await;
        tickets.push((ticket, column));
    }
    app.sweep().await;
    assert_eq!(app.metric("unreadable_resources").await, "0", "nothing of them is to be kept");
    assert_eq!(app.rows().await, [("deleted", tickets.len() as u64)].into());
    for (ticket, column) in &tickets {
        for request in [app.download(ticket), app.delete(ticket)] {
            let response = request.send().await.unwrap();
            if response.status() == 204 {
                continue;
            }
            let gone = problem(response).await;
            assert_eq!((gone.status, gone.code.as_str()), (410, "gone"), "{column}");
            assert!(gone.detail.contains("was deleted; when and why is not known"), "{gone:?}");
            assert!(gone.deletion_reason.is_none() && gone.deleted_at.is_none());
        }
        let path = path(&ticket.resource_id);
        assert_eq!(server.ask(Method::GET, &path).await.status(), 410, "{column}");
        let removal: Removal = read(server.ask(Method::DELETE, &path).await).await;
        assert!(!removal.removed, "{column}");
    }
    app.clock.advance(Duration::from_hours(7 * 24 - 1));
    assert_eq!(app.sweep().await.forgotten.expired, 0);
    app.clock.advance(Duration::from_hours(2));
    assert_eq!(app.sweep().await.forgotten.expired, tickets.len() as u64);
    assert_eq!(app.rows().await, [].into());
}

// Invariant: whole bundles are kept as long as they may belong to a row whose id is damaged, unless an admin removes
// them.
#[tokio::test]
async fn as_long_as_an_id_is_damaged_no_stray_goes_until_an_admin_says_so() {
    let app = TestApp::start().await;
    let good = app.stage("jars").await;
    let mut lost = Vec::new();
    for id in ["'no id'", "''", "CAST(x'ff' AS TEXT)", "upper(id)"] {
        let ticket = app.stage("others").await;
        app.change_ledger(&damage(&ticket.resource_id, "id", id)).await;
        lost.push(ticket);
    }
    let server = Administered::restart(app).await;
    let app = &server.app;
    assert!(!logs::lines_with("resources whose ids are damaged").is_empty());
    let status: ServerStatus = server.get("/admin/v1/status").await;
    assert_eq!((status.unreadable_resources, status.damaged_ids, status.strays), (4, 4, 4));
    assert!(status.unreadable.is_empty());
    assert_eq!(app.download(&good).send().await.unwrap().status(), 200);
    // Far past --stray-age, and past a sweep that lists all bytes.
    app.clock.advance(Duration::from_hours(24 * 30));
    for _ in 0..101 {
        app.sweep().await;
    }
    assert_eq!((app.files().len(), app.metric("unreadable_resources").await), (5, "4".to_owned()));
    // Who mends an id has its resource again.
    let mended = format!("UPDATE resources SET id = '{}' WHERE id = 'no id'", lost[0].resource_id);
    app.change_ledger(&mended).await;
    assert_eq!(app.download(&lost[0]).send().await.unwrap().text().await.unwrap(), "others");
    let report: SweepReport = read(server.ask(Method::POST, "/admin/v1/sweeps?strays=true").await).await;
    assert_eq!((report.stray_files, app.files().len()), (3, 2));
    assert_eq!(app.download(&good).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_removal_that_the_ledger_fails_is_an_error_and_can_be_tried_again() {
    let app = TestApp::start().await;
    let tickets = [app.stage("jars").await, app.stage("others").await];
    let server = Administered::restart(app).await;
    for (step, ticket) in [Step::LedgerMarkDeleting, Step::LedgerFind].into_iter().zip(&tickets) {
        let path = path(&ticket.resource_id);
        server.app.faults.set(step, Fault::FailBefore);
        assert_eq!(server.ask(Method::DELETE, &path).await.status(), 500, "{step:?}");
        server.app.faults.clear();
        let removal: Removal = read(server.ask(Method::DELETE, &path).await).await;
        assert!(removal.removed, "{step:?}");
    }
    assert_eq!(server.app.rows().await.get("ready"), None);
}

#[tokio::test]
async fn an_id_that_is_damaged_while_the_server_runs_costs_no_bytes() {
    let app = TestApp::start().await;
    let ticket = app.stage("others").await;
    app.change_ledger(&damage(&ticket.resource_id, "id", "'no id'")).await;
    assert_eq!(app.download(&ticket).send().await.unwrap().status(), 404);
    for _ in 0..201 {
        app.sweep().await;
    }
    assert_eq!((app.files().len(), app.metric("unreadable_resources").await), (1, "1".to_owned()));
}

#[tokio::test]
async fn more_damaged_ids_than_a_page_holds_hide_no_resource() {
    let app = TestApp::start().await;
    let good = app.stage("jars").await;
    // Before all ids in their order, and after all.
    let copies = "WITH RECURSIVE numbers(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM numbers WHERE i < 2499) \
                  INSERT INTO resources (id, secret_hash, state, size_bytes, sha256, owner_kind, owner_namespace, \
                  owner_labels, created_at, unused_timeout_millis) \
                  SELECT printf('%c%04d', CASE i % 2 WHEN 0 THEN '!' ELSE 'z' END, i), secret_hash, state, size_bytes, \
                  sha256, owner_kind, owner_namespace, owner_labels, created_at, unused_timeout_millis \
                  FROM resources, numbers";
    app.change_ledger(copies).await;
    let server = Administered::restart(app).await;
    assert_eq!(server.app.metric("unreadable_resources").await, "2500");
    let page: ResourcePage = server.get("/admin/v1/resources").await;
    let ids: Vec<_> = page.resources.into_iter().map(|resource| resource.resource_id).collect();
    assert_eq!(ids, [good.resource_id]);
    let status: ServerStatus = server.get("/admin/v1/status").await;
    assert_eq!((status.unreadable_resources, status.damaged_ids), (2500, 2500));
}

#[tokio::test]
async fn damaged_ids_at_the_end_of_a_page_are_counted_once() {
    let app = TestApp::start().await;
    app.stage("jars").await;
    // 2,500 ids, and behind each of them one that is damaged.
    let copies = "WITH RECURSIVE numbers(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM numbers WHERE i < 2499), \
                  ends(tail) AS (VALUES (''), ('!')) \
                  INSERT INTO resources (id, secret_hash, state, size_bytes, sha256, owner_kind, owner_namespace, \
                  owner_labels, created_at, unused_timeout_millis) \
                  SELECT printf('%08x-0000-4000-8000-%012x%s', i, i, ends.tail), secret_hash, state, size_bytes, \
                  sha256, owner_kind, owner_namespace, owner_labels, created_at, unused_timeout_millis \
                  FROM resources, numbers, ends";
    app.change_ledger(copies).await;
    let server = Administered::restart(app).await;
    let status: ServerStatus = server.get("/admin/v1/status").await;
    assert_eq!((status.unreadable_resources, status.damaged_ids), (2500, 2500));
    assert_eq!(server.app.staging.ready(None, 10_000).len(), 2501);
}

#[tokio::test]
async fn a_ttl_beyond_all_times_is_no_obstacle_to_a_download_or_a_sweep() {
    let app = TestApp::start().await;
    let ticket = app.stage("jars").await;
    app.change_ledger(&damage(&ticket.resource_id, "ttl_millis", "9223372036854775807")).await;
    assert_eq!(app.download(&ticket).send().await.unwrap().status(), 200);
    assert!(app.ready_row(&ticket.resource_id).await.is_used());
    app.sweep().await;
    assert_eq!(app.download(&ticket).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_row_damaged_between_a_download_and_its_note_holds_up_no_sweep() {
    let server = Administered::start().await;
    let app = &server.app;
    let (used, unused) = (app.stage("jars").await, app.stage("others").await);
    app.faults.set(Step::LedgerMarkUsed, Fault::FailBefore);
    assert_eq!(app.download(&used).send().await.unwrap().status(), 200);
    loosely(app, &damage(&used.resource_id, "owner_finished_since", "'text'")).await;
    app.faults.clear();
    app.clock.advance(Duration::from_hours(1));
    for expected in [1, 0] {
        let report: SweepReport = read(server.ask(Method::POST, "/admin/v1/sweeps").await).await;
        assert_eq!(report.deleted.values().sum::<u64>(), expected);
    }
    assert_eq!(app.download(&unused).send().await.unwrap().status(), 410);
    assert_eq!(app.download(&used).send().await.unwrap().status(), 500);
}

#[tokio::test]
async fn a_cluster_that_cannot_be_read_in_the_ledger_is_another_one() {
    let app = TestApp::start().await;
    app.change_ledger("INSERT INTO facts (name, value) VALUES ('cluster', CAST(x'ff' AS TEXT))").await;
    assert_eq!(app.staging.cluster().await.unwrap().as_deref(), Some("\u{fffd}"));
    app.staging.remember_cluster(Some("uid".to_owned())).await.unwrap();
    assert_eq!(app.staging.cluster().await.unwrap().as_deref(), Some("uid"));
}
