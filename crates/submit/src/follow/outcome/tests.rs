//! Tests with last states of pods and their verdicts.
#![expect(clippy::needless_pass_by_value, reason = "tables of JSON are read more easily without borrows")]

use serde_json::{Value, json};

use super::*;

const DRIVER: &str = "spark-kubernetes-driver";

fn container(name: &str, state: Value) -> Value {
    json!({"name": name, "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state})
}

fn terminated(name: &str, code: i32, reason: &str) -> Value {
    let end = json!({"exitCode": code, "reason": reason, "finishedAt": "2026-01-01T12:00:30Z"});
    container(name, json!({"terminated": end}))
}

fn waiting(name: &str) -> Value {
    container(name, json!({"waiting": {"reason": "PodInitializing"}}))
}

fn judged(metadata: Value, status: Value) -> (Outcome, String) {
    let pod: Pod = serde_json::from_value(json!({"metadata": metadata, "status": status})).unwrap();
    let Verdict { outcome, lines } = verdict(&pod, DRIVER);
    (outcome, lines.join("\n"))
}

fn check(metadata: Value, status: Value, expected: Outcome, parts: &[&str]) {
    let (outcome, said) = judged(metadata, status);
    assert_eq!(outcome, expected, "{said}");
    for part in parts {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    if parts.is_empty() {
        assert_eq!(said, "");
    }
}

fn failed(exit_code: Option<u8>) -> Outcome {
    Outcome::Failed { exit_code }
}

#[test]
fn the_drivers_own_exit_code_counts() {
    let status = |phase: &str, containers: &[Value]| json!({"phase": phase, "containerStatuses": containers});
    let none = || json!({});
    check(none(), status("Succeeded", &[terminated(DRIVER, 0, "Completed")]), Outcome::Succeeded, &[]);
    let killed = status("Failed", &[terminated(DRIVER, 137, "OOMKilled")]);
    let said = "SparkException: Application failed: its container spark-kubernetes-driver exited with code 137 (killed: the \
                container went over its memory limit";
    check(none(), killed, failed(Some(137)), &[said, "OOMKilled"]);
    let sidecar_first =
        [terminated("aaa", 3, "Error"), terminated(DRIVER, 1, "Error"), terminated("zzz", 9, "Error")];
    let parts = [
        "exited with code 1 (",
        "The container aaa exited with code 3 (the container's own)",
        "The container zzz exited with code 9",
    ];
    check(none(), status("Failed", &sidecar_first), failed(Some(1)), &parts);
    check(none(), status("Failed", &[terminated(DRIVER, 3_000, "Error")]), failed(Some(1)), &["code 3000"]);
}

#[test]
fn a_sidecar_that_fails_is_no_failure_of_the_application() {
    let containers = [terminated(DRIVER, 0, "Completed"), terminated("istio-proxy", 1, "Error")];
    let status = json!({"phase": "Failed", "containerStatuses": containers});
    check(json!({}), status, Outcome::Succeeded, &["The container istio-proxy exited with code 1"]);
    let evicted = json!({"phase": "Failed", "reason": "Evicted", "containerStatuses": containers});
    check(json!({}), evicted, failed(None), &["The driver pod's reason: Evicted"]);
}

#[test]
fn a_driver_that_never_ran_has_no_exit_code() {
    let evicted = json!({
        "phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory.\n",
        "containerStatuses": [waiting(DRIVER)],
    });
    let parts = [
        "SparkException: Application failed: its container spark-kubernetes-driver never ran",
        "The driver pod's reason: Evicted: The node was low on resource: memory.",
    ];
    check(json!({}), evicted, failed(None), &parts);
    check(json!({}), json!({"phase": "Failed"}), failed(None), &["never ran"]);
}

/// Such a pod is `Failed` at once, with an empty reason.
#[test]
fn a_native_sidecar_that_the_kubelet_ends_is_not_told_of() {
    let pod = json!({
        "spec": {"containers": [], "initContainers": [
            {"name": "istio-proxy", "restartPolicy": "Always"}, {"name": "fetch"},
        ]},
        "status": {
            "phase": "Succeeded", "containerStatuses": [terminated(DRIVER, 0, "Completed")],
            "initContainerStatuses": [terminated("istio-proxy", 143, "Error"), terminated("fetch", 1, "Error")],
        },
    });
    let pod: Pod = serde_json::from_value(pod).unwrap();
    let failed: Vec<String> = failed_init_containers(&pod).collect();
    assert!(failed.len() == 1 && failed[0].starts_with("init-container fetch exited"), "{failed:?}");
}

#[test]
fn an_init_container_that_fails_leaves_its_message() {
    let mut init = terminated("fetch", 1, "Error");
    init["state"]["terminated"]["message"] = "cannot fetch jars:\n404 at http://x\n".into();
    let status = json!({
        "phase": "Failed", "containerStatuses": [waiting(DRIVER)],
        "initContainerStatuses": [terminated("first", 0, "Completed"), init],
    });
    let parts = [
        "never ran",
        "The init-container fetch exited with code 1 (a failure; its log says more): cannot fetch jars: 404 at http://x",
    ];
    check(json!({}), status, failed(None), &parts);
    let status = json!({"phase": "Failed", "initContainerStatuses": [terminated("fetch", 3, "Error")]});
    check(json!({}), status, failed(None), &["fetch exited with code 3 (the init-container's own)"]);
}

/// With Istio, the pod continues after the driver's end until it is deleted.
#[test]
fn the_drivers_end_counts_where_its_pod_is_deleted_while_a_sidecar_runs() {
    let status = |code| {
        let containers =
            [terminated(DRIVER, code, "Error"), container("istio-proxy", json!({"running": {}}))];
        json!({"phase": "Running", "containerStatuses": containers})
    };
    // The driver ended at 12:00:30. The deletion was requested at 12:01:30.
    let deleted_later =
        || json!({"deletionTimestamp": "2026-01-01T12:02:00Z", "deletionGracePeriodSeconds": 30});
    for metadata in [json!({}), deleted_later()] {
        check(metadata.clone(), status(0), Outcome::Succeeded, &[]);
        check(metadata, status(3), failed(Some(3)), &["exited with code 3 (the application's own)"]);
    }
    let deleted_before =
        json!({"deletionTimestamp": "2026-01-01T12:00:40Z", "deletionGracePeriodSeconds": 30});
    let gone = Outcome::Deleted { exit_code: Some(143) };
    check(
        deleted_before,
        status(143),
        gone,
        &["its driver pod was deleted before the application had ended"],
    );
}

#[test]
fn a_driver_that_ran_and_went_silent_is_not_said_never_to_have_run() {
    let status = json!({
        "phase": "Failed", "reason": "Evicted",
        "containerStatuses": [container(DRIVER, json!({"running": {}}))],
    });
    let (outcome, said) = judged(json!({}), status);
    assert_eq!(outcome, failed(None));
    assert!(said.contains("was running when it was last seen") && !said.contains("never ran"), "{said}");
}

/// A deleted pod has no log.
#[test]
fn the_command_for_a_failed_drivers_log_is_told_while_the_pod_exists() {
    let status = || json!({"phase": "Failed", "containerStatuses": [terminated(DRIVER, 7, "Error")]});
    let metadata = || json!({"namespace": "n", "name": "my-driver"});
    let said = "Its log is shown by “kubectl logs -n n my-driver -c spark-kubernetes-driver”";
    check(metadata(), status(), failed(Some(7)), &[said]);
    let mut deleted = metadata();
    deleted["deletionTimestamp"] = "2026-01-01T12:00:00Z".into();
    assert!(!judged(deleted, status()).1.contains("kubectl logs"));
    let never_ran = json!({"phase": "Failed", "containerStatuses": [waiting(DRIVER)]});
    assert!(!judged(metadata(), never_ran).1.contains("kubectl logs"));
}

#[test]
fn the_message_of_the_driver_is_told() {
    let mut end = terminated(DRIVER, 1, "Error");
    end["state"]["terminated"]["message"] = "no such table".into();
    let status = json!({"phase": "Failed", "containerStatuses": [end]});
    check(
        json!({}),
        status,
        failed(Some(1)),
        &["The container spark-kubernetes-driver left this message: no such table"],
    );
}

#[test]
fn what_the_cluster_ended_is_told() {
    for (reason, said) in [
        ("PreemptionByScheduler", "a pod of a higher priority took its place"),
        ("EvictionByEvictionAPI", "it was evicted, as when a node is drained"),
        ("DeletionByTaintManager", "a taint that it does not tolerate"),
        ("TerminationByKubelet", "its node was short of something, or was shut down"),
    ] {
        let condition =
            json!({"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "words of it"});
        let containers = [terminated(DRIVER, 143, "Error")];
        let status = json!({"phase": "Failed", "conditions": [condition], "containerStatuses": containers});
        let words = format!("({reason}: words of it)");
        check(json!({}), status, failed(Some(143)), &["exited with code 143", said, &words]);
    }
}

#[test]
fn a_deletion_is_told_apart_from_an_end_before_it() {
    let running =
        json!({"phase": "Running", "containerStatuses": [container(DRIVER, json!({"running": {}}))]});
    let gone = Outcome::Deleted { exit_code: None };
    check(json!({}), running, gone.clone(), &["its driver pod was deleted before the application had ended"]);
    // The kubelet ends a deleted pod so whose images could not be pulled.
    let never_ran = json!({"phase": "Failed", "containerStatuses": [waiting(DRIVER)]});
    for (metadata, status) in [
        (json!({}), json!({"phase": "Pending"})),
        (json!({"deletionTimestamp": "2026-01-01T12:00:00Z"}), never_ran),
    ] {
        let said = "its driver pod was deleted before the application had started";
        check(metadata, status, gone.clone(), &[said]);
    }
    // The container ended at 12:00:30. A deletion that is due at 12:00:50 with a grace period of 30 s was requested at
    // 12:00:20.
    for (due, code, expected) in [
        ("2026-01-01T12:00:50Z", 143, Outcome::Deleted { exit_code: Some(143) }),
        ("2026-01-01T12:00:50Z", 0, gone),
        ("2026-01-01T12:01:00Z", 0, Outcome::Succeeded),
        ("2026-01-01T12:02:00Z", 1, failed(Some(1))),
    ] {
        let metadata = json!({"deletionTimestamp": due, "deletionGracePeriodSeconds": 30});
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        let status = json!({"phase": phase, "containerStatuses": [terminated(DRIVER, code, "Error")]});
        let (outcome, said) = judged(metadata, status);
        assert_eq!(outcome, expected, "{due}: {said}");
        let is_deleted = matches!(outcome, Outcome::Deleted { .. });
        assert_eq!(said.contains("deleted before the application had ended"), is_deleted, "{said}");
    }
}

#[test]
fn the_exit_code_is_the_applications_or_0_as_sparks() {
    for (outcome, application) in [
        (Outcome::Succeeded, 0),
        (failed(Some(137)), 137),
        (failed(None), 1),
        (Outcome::Deleted { exit_code: Some(143) }, 143),
        (Outcome::Deleted { exit_code: None }, 1),
    ] {
        assert_eq!(outcome.exit_code(ExitCodeRule::Application), Some(application));
        assert_eq!(outcome.exit_code(ExitCodeRule::Spark), Some(0));
    }
    assert_eq!(Outcome::Stopped.exit_code(ExitCodeRule::Spark), None);
}
