//! The pods of the server: the driver that was created, with a short life, and some that were there before.

use std::time::Duration;

use axum::http::Method;
use axum::middleware::Next;
use serde_json::{Value, json};

use super::ask;
use crate::sets::Life;

/// How long the driver is pending, and how long it runs, counted from the first look at it. A watch gets every phase, however
/// late it asks.
const PHASE: Duration = Duration::from_millis(200);

/// The unique id of every driver: there is one in each recording, and the rest hangs on it.
pub const UID: &str = "00000000-0000-4000-8000-000000000001";

/// When everything was created and started.
const CREATED: &str = "2026-01-02T03:04:05Z";
const STARTED: &str = "2026-01-02T03:04:06Z";

/// Gives a new pod what the API server, the scheduler and the kubelet write into it. Returns its path, and the pod.
pub async fn settle(next: &Next, pods: &str, mut pod: Value) -> (String, Value) {
    pod["metadata"]["uid"] = UID.into();
    pod["metadata"]["creationTimestamp"] = CREATED.into();
    let spec = &mut pod["spec"];
    if spec["serviceAccountName"].is_null() {
        spec["serviceAccountName"] = "default".into();
    }
    spec["nodeName"] = "node-1".into();
    let token = json!({"name": "kube-api-access-x7k2p", "projected": {"sources": []}});
    match spec["volumes"].as_array_mut() {
        Some(volumes) => volumes.push(token),
        None => spec["volumes"] = json!([token]),
    }
    let path = format!("{pods}/{}", pod["metadata"]["name"].as_str().unwrap());
    ask(next, Method::PATCH, &path, &pod).await;
    set(next, &path, &pod, "Pending", json!({"waiting": {"reason": "ContainerCreating"}})).await;
    (path, pod)
}

/// It runs, and then it ends.
pub async fn live(next: Next, path: String, pod: Value, life: Life) {
    tokio::time::sleep(PHASE).await;
    set(&next, &path, &pod, "Running", json!({"running": {"startedAt": STARTED}})).await;
    tokio::time::sleep(PHASE).await;
    if life.deleted {
        ask(&next, Method::DELETE, &path, &Value::Null).await;
        return;
    }
    let (phase, reason) = if life.exit_code == 0 { ("Succeeded", "Completed") } else { ("Failed", "Error") };
    set(&next, &path, &pod, phase, ended(life.exit_code, life.reason.as_deref().unwrap_or(reason))).await;
}

fn ended(exit_code: i32, reason: &str) -> Value {
    json!({"terminated": {
        "exitCode": exit_code, "reason": reason, "startedAt": STARTED, "finishedAt": "2026-01-02T03:05:06Z",
    }})
}

/// Sets the phase of a pod and the state of its last container.
async fn set(next: &Next, path: &str, pod: &Value, phase: &str, state: Value) {
    let container = pod["spec"]["containers"].as_array().and_then(|all| all.last());
    let status = status(phase, container.unwrap_or(&Value::Null), state);
    ask(next, Method::PATCH, &format!("{path}/status"), &json!({"status": status})).await;
}

fn status(phase: &str, container: &Value, state: Value) -> Value {
    json!({
        "phase": phase, "startTime": CREATED, "hostIP": "10.0.0.1", "podIP": "10.0.1.1",
        "containerStatuses": [{
            "name": container["name"], "image": container["image"], "imageID": "", "restartCount": 0,
            "ready": phase == "Running", "started": phase == "Running", "state": state,
        }],
    })
}

/// A list in the order of the recordings, which were made before the server sorted by name.
pub fn in_order(mut list: Value) -> Value {
    list["items"].as_array_mut().unwrap().sort_by_key(|pod| pod["metadata"]["name"] == "other-driver");
    list
}

/// For `--kill` and `--status`, each with its namespace.
pub fn others() -> [(&'static str, Value); 4] {
    let running = || json!({"running": {"startedAt": STARTED}});
    [
        ("default", "spark-pi-aaa-driver", "spark-app1", "Running", running()),
        ("default", "spark-pi-bbb-driver", "spark-app2", "Failed", ended(1, "Error")),
        ("default", "other-driver", "spark-app3", "Pending", json!({"waiting": {"reason": "ErrImagePull"}})),
        ("ns1", "spark-pi-ns-driver", "spark-app4", "Running", running()),
    ]
    .map(|(namespace, name, app, phase, state)| {
        let container = json!({"name": "spark-kubernetes-driver", "image": "img:1"});
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": name, "namespace": namespace, "uid": "11111111-2222-3333-4444-555555555555",
                "creationTimestamp": CREATED, "labels": {"spark-role": "driver", "spark-app-selector": app},
            },
            "spec": {
                "containers": [container], "nodeName": "node-7", "serviceAccountName": "default",
                "volumes": [{"name": "spark-local-dir-1", "emptyDir": {}}, {"name": "v2", "emptyDir": {}}],
            },
            "status": status(phase, &container, state),
        });
        (namespace, pod)
    })
}
