//! A pod's state as spark-submit prints it (`KubernetesUtils.formatPodState`). Schedulers parse these lines.

use std::fmt::Write as _;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Spark's text for a value that is missing or empty.
const MISSING: &str = "N/A";

/// The block behind `State changed, new state: ` and `Application status (driver): `.
pub(super) fn block(pod: &Pod) -> String {
    let (spec, status) = (pod.spec.as_ref(), pod.status.as_ref());
    let labels = pod.metadata.labels.iter().flatten().map(|(key, value)| format!("{key} -> {value}"));
    let volumes = spec.and_then(|spec| spec.volumes.as_ref()).into_iter().flatten();
    let text = |value: Option<&String>| value.cloned().unwrap_or_default();
    pairs(
        1,
        &[
            ("pod name", text(pod.metadata.name.as_ref())),
            ("namespace", text(pod.metadata.namespace.as_ref())),
            ("labels", joined(labels)),
            ("pod uid", text(pod.metadata.uid.as_ref())),
            ("creation time", time(pod.metadata.creation_timestamp.as_ref())),
            ("service account name", text(spec.and_then(|spec| spec.service_account_name.as_ref()))),
            ("volumes", joined(volumes.map(|volume| volume.name.clone()))),
            ("node name", text(spec.and_then(|spec| spec.node_name.as_ref()))),
            ("start time", time(status.and_then(|status| status.start_time.as_ref()))),
            ("phase", text(status.and_then(|status| status.phase.as_ref()))),
            ("container status", statuses(containers(pod), 2)),
        ],
    )
}

/// The block behind `Container final statuses:`. The container `last` comes last, because Airflow takes the last line
/// `exit code: N` for the driver's.
pub(super) fn final_statuses(pod: &Pod, last: &str) -> String {
    let mut all: Vec<&ContainerStatus> = containers(pod).iter().collect();
    all.sort_by_key(|status| status.name == last);
    statuses(all, 1)
}

/// The statuses of a pod's containers, without its init-containers.
pub(super) fn containers(pod: &Pod) -> &[ContainerStatus] {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_deref());
    statuses.unwrap_or_default()
}

/// The pod's phase, or `Unknown` if it has none.
pub(super) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Unknown")
}

fn statuses<'a>(containers: impl IntoIterator<Item = &'a ContainerStatus>, indent: usize) -> String {
    let each: Vec<String> =
        containers.into_iter().map(|status| pairs(indent, &of_container(status))).collect();
    each.join("\n\n")
}

fn of_container(status: &ContainerStatus) -> Vec<(&'static str, String)> {
    let mut found = vec![("container name", status.name.clone()), ("container image", status.image.clone())];
    let state = status.state.as_ref();
    if let Some(running) = state.and_then(|state| state.running.as_ref()) {
        found.push(("container state", "running".to_owned()));
        found.push(("container started at", time(running.started_at.as_ref())));
    } else if let Some(terminated) = state.and_then(|state| state.terminated.as_ref()) {
        found.extend([
            ("container state", "terminated".to_owned()),
            ("container started at", time(terminated.started_at.as_ref())),
            ("container finished at", time(terminated.finished_at.as_ref())),
            ("exit code", terminated.exit_code.to_string()),
            ("termination reason", terminated.reason.clone().unwrap_or_default()),
        ]);
    } else if let Some(waiting) = state.and_then(|state| state.waiting.as_ref()) {
        found.push(("container state", "waiting".to_owned()));
        found.push(("pending reason", waiting.reason.clone().unwrap_or_default()));
    } else {
        found.push(("container state", String::new()));
    }
    found
}

fn pairs(indent: usize, pairs: &[(&str, String)]) -> String {
    let tabs = "\t".repeat(indent);
    let mut text = String::new();
    for (name, value) in pairs {
        let value = if value.is_empty() { MISSING } else { value };
        let _ = write!(text, "\n{tabs} {name}: {value}");
    }
    text
}

fn joined(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

/// A time in the API's format: `2026-11-21T01:13:02Z`.
fn time(time: Option<&Time>) -> String {
    time.map(|time| time.0.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(value: Value) -> Pod {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_running_and_a_waiting_pod_look_as_spark_prints_them() {
        let pod = pod(json!({
            "metadata": {
                "name": "spark-pi-aaa-driver", "namespace": "default",
                "labels": {"spark-app-selector": "spark-app1", "spark-role": "driver"},
                "uid": "11111111-2222-3333-4444-555555555555", "creationTimestamp": "2026-01-02T03:04:05Z",
            },
            "spec": {
                "serviceAccountName": "default", "nodeName": "node-7", "containers": [],
                "volumes": [{"name": "spark-local-dir-1"}, {"name": "v2"}],
            },
            "status": {
                "phase": "Running", "startTime": "2026-01-02T03:04:05Z",
                "containerStatuses": [
                    {
                        "name": "spark-kubernetes-driver", "image": "img:1", "imageID": "", "ready": true,
                        "restartCount": 0, "state": {"running": {"startedAt": "2026-01-02T03:04:06Z"}},
                    },
                    {
                        "name": "sidecar", "image": "img:2", "imageID": "", "ready": false, "restartCount": 0,
                        "state": {"waiting": {"reason": "ErrImagePull"}},
                    },
                ],
            },
        }));
        assert_eq!(
            block(&pod),
            "\n\t pod name: spark-pi-aaa-driver\n\t namespace: default\
             \n\t labels: spark-app-selector -> spark-app1, spark-role -> driver\
             \n\t pod uid: 11111111-2222-3333-4444-555555555555\n\t creation time: 2026-01-02T03:04:05Z\
             \n\t service account name: default\n\t volumes: spark-local-dir-1, v2\n\t node name: node-7\
             \n\t start time: 2026-01-02T03:04:05Z\n\t phase: Running\n\t container status: \
             \n\t\t container name: spark-kubernetes-driver\n\t\t container image: img:1\
             \n\t\t container state: running\n\t\t container started at: 2026-01-02T03:04:06Z\
             \n\n\n\t\t container name: sidecar\n\t\t container image: img:2\
             \n\t\t container state: waiting\n\t\t pending reason: ErrImagePull"
        );
    }

    #[test]
    fn what_is_missing_is_not_available() {
        let text = block(&pod(json!({"metadata": {}, "status": {"containerStatuses": []}})));
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(lines.len(), 11);
        assert!(lines.iter().all(|line| line.ends_with(": N/A")), "{text}");
        let unknown = json!({"name": "x", "image": "", "imageID": "", "ready": false, "restartCount": 0});
        let text = final_statuses(&pod(json!({"status": {"containerStatuses": [unknown]}})), "x");
        assert_eq!(text, "\n\t container name: x\n\t container image: N/A\n\t container state: N/A");
    }

    #[test]
    fn the_drivers_exit_code_is_the_last_of_the_final_ones() {
        let ended = |name: &str, code: i32| {
            json!({
                "name": name, "image": "i", "imageID": "", "ready": false, "restartCount": 0,
                "state": {"terminated": {
                    "exitCode": code, "reason": "Error", "startedAt": "2026-01-02T03:04:06Z",
                    "finishedAt": "2026-01-02T03:05:06Z",
                }},
            })
        };
        let pod = pod(json!({"status": {"containerStatuses": [ended("driver", 0), ended("zzz", 3)]}}));
        let text = final_statuses(&pod, "driver");
        let codes: Vec<&str> = text.lines().filter(|line| line.contains("exit code: ")).collect();
        assert_eq!(codes, ["\t exit code: 3", "\t exit code: 0"]);
        assert!(text.ends_with(
            "\n\t container name: driver\n\t container image: i\n\t container state: terminated\
             \n\t container started at: 2026-01-02T03:04:06Z\n\t container finished at: 2026-01-02T03:05:06Z\
             \n\t exit code: 0\n\t termination reason: Error"
        ));
    }
}
