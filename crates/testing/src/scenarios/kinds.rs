//! Owners of other kinds than pods.

use cloakroom_core::protocol::problem::Problem;
use jiff::Timestamp;

use super::desk::{Desk, GRACE};
use crate::cluster::{Cluster, DEPLOYMENT, JOB, Kind, Object, SPARK_APPLICATION, STATEFUL_SET};

/// Built-in kinds, and one that a CustomResourceDefinition defines.
pub async fn an_owner_may_be_of_any_kind(cluster: &dyn Cluster) {
    let desk = Desk::open(cluster, "kinds", &[]).await;
    let kinds = [DEPLOYMENT, STATEFUL_SET, JOB, SPARK_APPLICATION];
    let owners = kinds.map(|kind| Object::new(kind, "kinds", "etl", &[("app", "etl")]));
    let mut tickets = Vec::new();
    for owner in &owners {
        let ticket = desk.stage(owner).await;
        desk.admin.create(owner).await;
        desk.fetch(&ticket).await;
        tickets.push(ticket);
    }
    for ticket in &tickets {
        desk.until_seen(ticket).await;
    }
    for (owner, ticket) in owners.iter().zip(&tickets) {
        let before = Timestamp::now();
        desk.admin.remove(owner).await;
        desk.goes(ticket).await.assert("orphaned", before + GRACE);
    }
}

/// The server refuses an unknown kind at once.
pub async fn a_kind_that_the_cluster_does_not_have_is_refused(cluster: &dyn Cluster) {
    let banana = Kind {
        group: "fruit.example.com",
        version: "v1",
        plural: "bananas",
        kind: "Banana",
        is_namespaced: true,
    };
    let flags = ["--owner-kinds", "Pod,Banana.fruit.example.com"];
    let desk = Desk::open(cluster, "no-bananas", &flags).await;
    let response = desk.try_stage(&Object::new(banana, "no-bananas", "yellow", &[("app", "demo")])).await;
    let text = response.text().await.unwrap();
    let problem: Problem = serde_json::from_str(&text).unwrap();
    assert_eq!((problem.status, problem.code.as_str()), (400, "invalid-owner"), "{text}");
    assert!(problem.detail.contains("Banana"), "{text}");
}
