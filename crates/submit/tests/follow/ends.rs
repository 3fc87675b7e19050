//! Ends of an application that are easily taken for others.

use super::*;

/// Airflow takes every such line for the driver's exit code; those of Spark's block are the driver's.
#[tokio::test]
async fn a_name_cannot_pass_for_the_drivers_exit_code() {
    let mut planned = quick();
    planned.app_name = "nightly exit code: 5".to_owned();
    let followed = Followed::with(hurried(), planned, |_| {}).await;
    followed.run();
    followed.finish(3, "Error");
    let (outcome, lines) = followed.outcome().await;
    assert_eq!(outcome, Outcome::Failed { exit_code: Some(3) });
    assert!(
        lines.iter().any(|line| line.contains("Application nightly exit code 5 with application ID ")),
        "{lines:#?}"
    );
    let codes: Vec<&str> =
        lines.iter().flat_map(|text| text.lines()).filter(|line| line.contains("xit code: ")).collect();
    assert!(!codes.is_empty() && codes.iter().all(|line| line.ends_with("\t exit code: 3")), "{codes:#?}");
}

/// As the kubelet leaves a pod that it evicts.
#[tokio::test]
async fn an_eviction_without_container_statuses_is_judged_by_the_last_known() {
    let followed = Followed::start().await;
    followed.run();
    followed.said("container state: running", 1).await;
    followed.status(&json!({
        "phase": "Failed", "reason": "Evicted", "message": "The node was low on memory", "containerStatuses": null,
    }));
    let (outcome, lines) = followed.outcome().await;
    assert_eq!(outcome, Outcome::Failed { exit_code: None });
    let position =
        position(&lines, "its container spark-kubernetes-driver was running when it was last seen");
    assert!(lines[position + 1].ends_with("reason: Evicted: The node was low on memory"), "{lines:#?}");
    let statuses = lines.iter().find(|line| line.contains("Container final statuses:")).unwrap();
    assert!(statuses.ends_with("Container final statuses:\n\n"), "as Spark prints it: {statuses}");
}

/// As with Istio.
#[tokio::test]
async fn a_pod_that_is_deleted_after_its_driver_has_ended_is_no_failure() {
    for (code, expected) in [(0, Outcome::Succeeded), (3, Outcome::Failed { exit_code: Some(3) })] {
        let followed = Followed::start().await;
        let mut status = ended(CONTAINER, code, "Error");
        status["phase"] = "Running".into();
        let sidecar = container("istio-proxy", json!({"running": {"startedAt": "2026-01-01T12:00:00Z"}}));
        status["containerStatuses"].as_array_mut().unwrap().push(sidecar);
        followed.status(&status);
        followed.said("the pod goes on until these end as well: istio-proxy", 1).await;
        followed.server.delete_pod(NAMESPACE, DRIVER);
        assert_eq!(followed.outcome().await.0, expected);
    }
}
