//! What stays of a resource that was deleted, how much, and for how long.

use std::time::Duration;

use cloakroom_core::protocol::admin::ResourceDetails;
use cloakroom_testing::logs;

use crate::admin::Administered;
use crate::support::TestApp;
use crate::support::app::{Options, problem};

const SECOND: Duration = Duration::from_secs(1);

// Invariant: tombstones are bounded in size and number.
#[tokio::test]
async fn a_tombstone_has_kind_namespace_size_reason_and_times_and_nothing_else() {
    let server = Administered::start().await;
    let ticket = server.stage("demo", "Deployment", "long-label").await;
    server.use_once(&ticket).await;
    assert_eq!(server.app.delete(&ticket).send().await.unwrap().status(), 204);
    let gone: ResourceDetails = server.get(&format!("/admin/v1/resources/{}", ticket.resource_id)).await;
    let owner = &gone.resource.owner;
    assert_eq!((owner.kind.as_str(), owner.namespace.as_str()), ("Deployment", "demo"));
    assert!(owner.labels.is_empty() && owner.name.is_none());
    assert_eq!((gone.resource.size_bytes, gone.resource.deletion_reason.as_deref()), (4, Some("released")));
    assert!(gone.resource.deleted_at.is_some() && gone.first_used_at.is_some());
    assert!(gone.sha256.is_none() && gone.file_name.is_none() && gone.resource.uploaded_by.is_none());
    let answer = problem(server.app.download(&ticket).send().await.unwrap()).await;
    assert_eq!((answer.status, answer.deletion_reason.as_deref()), (410, Some("released")));
}

#[tokio::test]
async fn too_many_tombstones_go_oldest_first_from_the_largest_namespace() {
    let mut options = Options::default();
    options.limits.max_resources = 2;
    let app = TestApp::start_with(options).await;
    let deleted_in = async |namespace: &str| {
        let url = app.url(&format!("/api/v1/resources/a?namespace={namespace}&label=app%3Ddemo"));
        let ticket = app.ticket(app.client.put(url).body("jars").send().await.unwrap()).await;
        assert_eq!(app.delete(&ticket).send().await.unwrap().status(), 204);
        app.clock.advance(SECOND);
        ticket
    };
    let small = deleted_in("small").await;
    let mut large = Vec::new();
    for _ in 0..5 {
        large.push(deleted_in("large").await);
    }
    let swept = app.sweep().await;
    assert_eq!((swept.forgotten.expired, swept.forgotten.dropped), (0, 2));
    swept.log();
    let status = async |ticket| app.download(ticket).send().await.unwrap().status().as_u16();
    assert_eq!(status(&small).await, 410);
    for (number, ticket) in large.iter().enumerate() {
        assert_eq!(status(ticket).await, if number < 2 { 404 } else { 410 }, "{number}");
    }
    assert_eq!(app.metric("tombstones_dropped_total").await, "2");
    let lines = logs::lines_with("more tombstones than twice --max-resources");
    assert!(lines.iter().any(|line| line.contains("dropped=2")), "{lines:?}");
    assert_eq!(app.sweep().await.forgotten.dropped, 0);
    app.clock.advance(Duration::from_hours(7 * 24 + 1));
    assert_eq!(app.sweep().await.forgotten.expired, 4);
}
