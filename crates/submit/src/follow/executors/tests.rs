//! Tests with snapshots of executor pods, one after the other, and the lines about each.
#![expect(clippy::needless_pass_by_value, reason = "tables of JSON are read more easily without borrows")]

use serde_json::{Value, json};

use super::*;

const DELTA: Duration = Duration::from_secs(30);

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn pod(id: u32, status: Value) -> Value {
    json!({
        "metadata": {
            "name": format!("x-exec-{id}"), "uid": format!("uid-{id}"),
            "labels": {"spark-exec-id": id.to_string()},
        },
        "spec": {"nodeName": "n", "containers": []},
        "status": status,
    })
}

fn executor(pod: Value) -> Executor {
    serde_json::from_value::<Pod>(pod).unwrap().into()
}

fn running(id: u32) -> Executor {
    executor(pod(id, json!({"phase": "Running"})))
}

fn ended(code: i32, reason: &str) -> Value {
    let state = json!({"terminated": {"exitCode": code, "reason": reason}});
    let status = json!({
        "name": "spark-kubernetes-executor", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
        "state": state,
    });
    json!({"phase": if code == 0 { "Succeeded" } else { "Failed" }, "containerStatuses": [status]})
}

fn texts(findings: Vec<Finding>) -> Vec<String> {
    findings.into_iter().map(|finding| format!("{:?} {}", finding.level, finding.text)).collect()
}

const NOTHING: [&str; 0] = [];

#[test]
fn an_executor_that_exits_is_told_once_however_often_it_is_seen() {
    let mut known = Executors::default();
    assert_eq!(texts(known.change(running(3), at(0))), NOTHING);
    let failed = || executor(pod(3, ended(137, "OOMKilled")));
    let said = texts(known.change(failed(), at(1)));
    assert_eq!(
        said,
        [
            "Warn Executor 3 (pod x-exec-3 on node n) was lost: it exited with code 137 (killed: the container went over its \
          memory limit; raise spark.executor.memoryOverhead or spark.executor.memory; OOMKilled); caused by the application \
          itself; containers: spark-kubernetes-executor terminated with code 137, OOMKilled"
        ]
    );
    assert_eq!(texts(known.change(failed(), at(2))), NOTHING);
    assert_eq!(texts(known.look(vec![failed()], at(30), DELTA)), NOTHING);
    assert_eq!(texts(known.delete(&failed())), NOTHING);
    assert_eq!(texts(known.look(Vec::new(), at(90), DELTA)), NOTHING);
    assert!(known.known.is_empty() && known.told.is_empty(), "nothing is kept of what is gone");
}

#[test]
fn a_deletion_is_told_as_one() {
    let mut known = Executors::default();
    known.change(running(1), at(0));
    let expected = ["Info Executor 1 (pod x-exec-1 on node n) was removed: its pod was deleted"];
    assert_eq!(texts(known.delete(&running(1))), expected);
}

fn deleted(id: u32, status: Value) -> Executor {
    let mut pod = pod(id, status);
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T12:00:00Z".into();
    executor(pod)
}

/// Dynamic allocation removes hundreds of executors in this way.
#[test]
fn executors_that_are_not_needed_any_more_are_not_lost() {
    for code in [0, 143] {
        let mut known = Executors::default();
        known.change(running(2), at(0));
        let expected = ["Info Executor 2 (pod x-exec-2 on node n) was removed: its pod was deleted"];
        assert_eq!(texts(known.change(deleted(2, ended(code, "Error")), at(1))), expected);
        assert_eq!(texts(known.delete(&deleted(2, ended(code, "Error")))), NOTHING);
        // A kubelet may leave the phase unchanged.
        let mut status = ended(code, "Error");
        status["phase"] = "Running".into();
        assert_eq!(texts(known.delete(&deleted(2, status))), expected);
    }
    let killed = texts(Executors::default().change(deleted(3, ended(137, "Error")), at(0)));
    assert!(killed[0].starts_with("Warn Executor 3 (pod x-exec-3 on node n) was lost: it exited with"));
    assert!(
        killed[0].contains("; its pod was deleted (by the driver, a user or the cluster); "),
        "{killed:?}"
    );
    let unasked = texts(Executors::default().change(executor(pod(4, ended(143, "Error"))), at(0)));
    assert!(unasked[0].contains("was lost: it exited with code 143"), "{unasked:?}");
}

#[test]
fn an_executor_in_a_mesh_ends_and_is_removed_as_without_one() {
    for (code, is_deleted, expected) in [
        (0, false, "Info Executor 3 (pod x-exec-3 on node n) has ended"),
        (143, true, "Info Executor 3 (pod x-exec-3 on node n) was removed: its pod was deleted"),
    ] {
        let mut pod = pod(3, ended(code, "Error"));
        pod["spec"]["initContainers"] = json!([{"name": "istio-proxy", "restartPolicy": "Always"}]);
        let state = json!({"terminated": {"exitCode": 143, "reason": "Error"}});
        pod["status"]["initContainerStatuses"] = json!([{
            "name": "istio-proxy", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state,
        }]);
        if is_deleted {
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T12:00:30Z".into();
        }
        assert_eq!(texts(Executors::default().change(executor(pod), at(0))), [expected]);
    }
}

#[test]
fn an_executor_whose_init_container_failed_says_so_and_guesses_nothing() {
    let state = json!({"terminated": {"exitCode": 9, "reason": "Error", "message": "fetch failed"}});
    let container = |name: &str, state: Value| json!({"name": name, "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state});
    let waiting = json!({"waiting": {"reason": "PodInitializing"}});
    let status = json!({
        "phase": "Failed", "initContainerStatuses": [container("fetch", state)],
        "containerStatuses": [container("spark-kubernetes-executor", waiting)],
    });
    assert_eq!(
        texts(Executors::default().change(executor(pod(3, status)), at(0))),
        [
            "Warn Executor 3 (pod x-exec-3 on node n) was lost: its init-container fetch exited with code 9 (the \
          init-container's own): fetch failed; containers: spark-kubernetes-executor waiting, PodInitializing"
        ]
    );
}

#[test]
fn an_executor_evicted_after_it_ran_is_not_said_never_to_have_run() {
    let mut known = Executors::default();
    known.change(running(1), at(0));
    let evicted = json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"});
    assert_eq!(
        texts(known.change(executor(pod(1, evicted.clone())), at(1))),
        [
            "Warn Executor 1 (pod x-exec-1 on node n) was lost: it was running when it was last seen; by the cluster; \
          Evicted: low on memory"
        ]
    );
    let said = texts(known.change(executor(pod(2, evicted)), at(1)));
    assert!(said[0].contains("was lost: it failed before it ran; by the cluster; "), "{said:?}");
}

#[test]
fn what_the_cluster_ends_is_told_with_its_reason() {
    let mut known = Executors::default();
    let mut status = ended(137, "Error");
    status["reason"] = "Evicted".into();
    status["message"] = "The node was low on resource: memory".into();
    let said = texts(known.change(executor(pod(1, status)), at(0)));
    assert!(said[0].starts_with("Warn "), "{said:?}");
    assert!(
        said[0].contains("; by the cluster; Evicted: The node was low on resource: memory; "),
        "{said:?}"
    );
    let condition = json!({"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"});
    let preempted = executor(pod(2, json!({"phase": "Running", "conditions": [condition]})));
    let said = texts(known.delete(&preempted));
    assert!(said[0].contains("a pod of a higher priority took its place"), "{said:?}");
}

#[test]
fn an_executor_is_missing_once_it_was_not_seen_for_long_enough() {
    let mut known = Executors::default();
    known.look(vec![running(1), running(2)], at(0), DELTA);
    assert_eq!(texts(known.look(vec![running(1)], at(29), DELTA)), NOTHING);
    let said = texts(known.look(vec![running(1)], at(30), DELTA));
    assert_eq!(
        said,
        [
            "Warn Executor 2 (pod x-exec-2 on node n) was lost: it has been missing from the cluster for 30s, and no \
          deletion was reported"
        ]
    );
    // Its deletion is reported late.
    assert_eq!(texts(known.delete(&running(2))), NOTHING);
    assert_eq!(texts(known.look(vec![running(1)], at(60), DELTA)), NOTHING);
    // It is seen again in time: an earlier list may have come from a replica that was behind.
    assert_eq!(texts(known.look(Vec::new(), at(70), DELTA)), NOTHING);
    assert_eq!(texts(known.look(vec![running(1)], at(80), DELTA)), NOTHING);
    assert_eq!(texts(known.look(Vec::new(), at(100), DELTA)), NOTHING);
}

#[test]
fn an_executor_that_finished_is_no_alarm() {
    let mut known = Executors::default();
    let said = texts(known.look(vec![executor(pod(1, ended(0, "Completed")))], at(0), DELTA));
    assert_eq!(said, ["Info Executor 1 (pod x-exec-1 on node n) has ended"]);
}

#[test]
fn executors_that_do_not_start_for_one_reason_are_told_once() {
    let mut known = Executors::default();
    let condition = json!({"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"});
    let pending = |id| executor(pod(id, json!({"phase": "Pending", "conditions": [condition]})));
    let said = texts(known.look(vec![pending(1), pending(2)], at(0), DELTA));
    assert_eq!(said, ["Warn No node takes an executor pod: 0/3 nodes are available"]);
}

#[test]
fn a_sidecars_code_is_not_the_executors() {
    let mut status = ended(52, "Error");
    let mut sidecar = status["containerStatuses"][0].clone();
    sidecar["name"] = "aaa".into();
    sidecar["state"] = json!({"terminated": {"exitCode": 7}});
    let own = status["containerStatuses"][0].clone();
    status["containerStatuses"] = json!([sidecar, own]);
    let said = texts(Executors::default().change(executor(pod(1, status)), at(0)));
    assert!(
        said[0].contains("exited with code 52 (the JVM ran out of memory; raise spark.executor.memory)"),
        "{said:?}"
    );
    assert!(
        said[0].contains("containers: aaa terminated with code 7, spark-kubernetes-executor terminated with")
    );
    assert!(!said[0].contains("exit code:"), "Airflow would take it for the driver's: {said:?}");
}
