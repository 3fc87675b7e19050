//! Owners of other kinds than pods.

use cloakroom_core::protocol::problem::Problem;
use jiff::Timestamp;

use super::served::{GRACE, ServedCluster};
use crate::cluster::{Cluster, DEPLOYMENT, JOB, Kind, Object, SPARK_APPLICATION, STATEFUL_SET};

/// Built-in kinds, and one that a CustomResourceDefinition defines.
pub async fn an_owner_may_be_of_any_kind(cluster: &dyn Cluster) {
    let served = ServedCluster::open(cluster, "kinds", &[]).await;
    let kinds = [DEPLOYMENT, STATEFUL_SET, JOB, SPARK_APPLICATION];
    let owners = kinds.map(|kind| Object::new(kind, "kinds", "etl", &[("app", "etl")]));
    let mut tickets = Vec::new();
    for owner in &owners {
        let ticket = served.stage(owner).await;
        served.admin.create(owner).await;
        served.fetch(&ticket).await;
        tickets.push(ticket);
    }
    for ticket in &tickets {
        served.until_seen(ticket).await;
    }
    for (owner, ticket) in owners.iter().zip(&tickets) {
        let before = Timestamp::now();
        served.admin.remove(owner).await;
        served.goes(ticket).await.assert("orphaned", before + GRACE);
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
    let served = ServedCluster::open(cluster, "no-bananas", &flags).await;
    let response = served.try_stage(&Object::new(banana, "no-bananas", "yellow", &[("app", "demo")])).await;
    let text = response.text().await.unwrap();
    let problem: Problem = serde_json::from_str(&text).unwrap();
    assert_eq!((problem.status, problem.code.as_str()), (400, "invalid-owner"), "{text}");
    assert!(problem.detail.contains("Banana"), "{text}");
}
