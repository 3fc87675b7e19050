//! The pods of the server: the driver that was created, with a short life, and some that were there before.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use futures_util::{Stream, stream};
use serde_json::{Value, json};

use super::answers::CREATED;
use super::path::ResourcePath;
use crate::sets::Life;

/// How long each phase of the driver lasts, counted from the first time that somebody looks.
const PHASE: Duration = Duration::from_millis(200);

/// Pending, Running, ended.
const LAST_PHASE: u32 = 2;

pub struct Pods {
    life: Life,
    state: Mutex<State>,
}

struct State {
    driver: Option<Value>,
    first_seen: Option<Instant>,
    others: Vec<Value>,
}

type Query = BTreeMap<String, String>;

impl Pods {
    pub fn new(life: Life) -> Self {
        let others = others();
        Self { life, state: Mutex::new(State { driver: None, first_seen: None, others }) }
    }

    pub fn create(&self, pod: Value) {
        self.state.lock().unwrap().driver = Some(pod);
    }

    pub fn get(&self, path: &ResourcePath) -> Option<Value> {
        let phase = self.phase();
        let pods = self.all(phase);
        pods.into_iter()
            .find(|pod| is_in(pod, path) && path.name.as_deref() == pod["metadata"]["name"].as_str())
    }

    pub fn delete(&self, path: &ResourcePath) -> Option<Value> {
        let pod = self.get(path)?;
        let mut state = self.state.lock().unwrap();
        state.others.retain(|other| other["metadata"]["name"] != pod["metadata"]["name"]);
        if state.driver.as_ref().is_some_and(|driver| driver["metadata"]["name"] == pod["metadata"]["name"]) {
            state.driver = None;
        }
        Some(pod)
    }

    pub fn list(&self, path: &ResourcePath, query: &Query) -> Value {
        let phase = self.phase();
        let items: Vec<_> = self.all(phase).into_iter().filter(|pod| is_selected(pod, path, query)).collect();
        let kind = if path.resource == "pods" { "PodList" } else { "List" };
        let items = if path.resource == "pods" { items } else { Vec::new() };
        let version = (100 + phase).to_string();
        json!({"kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": version}, "items": items})
    }

    /// The events of the driver pod from the phase on that the query names; of other pods there are none. The
    /// stream stays open.
    pub fn watch(
        self: Arc<Self>,
        path: &ResourcePath,
        query: &Query,
    ) -> impl Stream<Item = Result<Bytes, Infallible>> + use<> {
        let seen = query.get("resourceVersion").and_then(|version| version.parse::<u32>().ok());
        let next = seen.filter(|version| *version >= 100).map_or(0, |version| version - 100 + 1);
        let driver = self.state.lock().unwrap().driver.clone();
        let is_watched =
            path.resource == "pods" && driver.is_some_and(|driver| is_selected(&driver, path, query));
        let is_first = seen.is_none_or(|version| version < 100);
        stream::unfold((self, next, is_first), move |(pods, next, is_first)| async move {
            if !is_watched || next > LAST_PHASE {
                return std::future::pending().await;
            }
            pods.until(next).await;
            let next = if is_first { pods.phase() } else { next };
            let event = pods.event(next, is_first);
            Some((Ok(Bytes::from(format!("{event}\n"))), (pods, next + 1, false)))
        })
    }

    fn event(&self, phase: u32, is_first: bool) -> Value {
        let kind = match phase {
            LAST_PHASE if self.life.deleted => "DELETED",
            _ if is_first => "ADDED",
            _ => "MODIFIED",
        };
        let driver = self.state.lock().unwrap().driver.clone().unwrap_or_default();
        json!({"type": kind, "object": self.at(driver, phase)})
    }

    async fn until(&self, phase: u32) {
        let first_seen = *self.state.lock().unwrap().first_seen.get_or_insert_with(Instant::now);
        tokio::time::sleep_until((first_seen + PHASE * phase).into()).await;
    }

    fn phase(&self) -> u32 {
        let mut state = self.state.lock().unwrap();
        if state.driver.is_none() {
            return 0;
        }
        let first_seen = *state.first_seen.get_or_insert_with(Instant::now);
        let phases = first_seen.elapsed().as_millis() / PHASE.as_millis();
        u32::try_from(phases).unwrap_or(LAST_PHASE).min(LAST_PHASE)
    }

    fn all(&self, phase: u32) -> Vec<Value> {
        let state = self.state.lock().unwrap();
        let is_there = !(self.life.deleted && phase == LAST_PHASE);
        let driver = state.driver.clone().filter(|_| is_there).map(|driver| self.at(driver, phase));
        driver.into_iter().chain(state.others.iter().cloned()).collect()
    }

    fn at(&self, mut pod: Value, phase: u32) -> Value {
        pod["metadata"]["resourceVersion"] = (100 + phase).to_string().into();
        let container = pod["spec"]["containers"].as_array().and_then(|all| all.last()).cloned();
        let container = container.unwrap_or_default();
        let ended_well = self.life.exit_code == 0;
        let (name, state) = match phase {
            0 => ("Pending", json!({"waiting": {"reason": "ContainerCreating"}})),
            LAST_PHASE if !self.life.deleted => (
                if ended_well { "Succeeded" } else { "Failed" },
                json!({"terminated": {
                    "exitCode": self.life.exit_code,
                    "reason": self.life.reason.as_deref().unwrap_or(if ended_well { "Completed" } else { "Error" }),
                    "startedAt": "2026-01-02T03:04:06Z", "finishedAt": "2026-01-02T03:05:06Z",
                }}),
            ),
            _ => ("Running", json!({"running": {"startedAt": "2026-01-02T03:04:06Z"}})),
        };
        pod["status"] = status(name, &container, &state);
        fill_in(&mut pod);
        pod
    }
}

fn status(phase: &str, container: &Value, state: &Value) -> Value {
    json!({
        "phase": phase, "startTime": CREATED, "hostIP": "10.0.0.1", "podIP": "10.0.1.1",
        "containerStatuses": [{
            "name": container["name"], "image": container["image"], "imageID": "", "restartCount": 0,
            "ready": phase == "Running", "started": phase == "Running", "state": state,
        }],
    })
}

/// What the API server and the scheduler write into a pod's spec.
fn fill_in(pod: &mut Value) {
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
}

fn is_in(pod: &Value, path: &ResourcePath) -> bool {
    path.resource == "pods" && path.namespace.as_deref() == pod["metadata"]["namespace"].as_str()
}

fn is_selected(pod: &Value, path: &ResourcePath, query: &Query) -> bool {
    let pairs = |key: &str| {
        let text = query.get(key).map(String::as_str).unwrap_or_default();
        let parts: Vec<_> = text.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        parts
    };
    let has_labels = pairs("labelSelector").iter().all(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        pod["metadata"]["labels"][key].as_str() == Some(value.trim_start_matches('='))
    });
    let has_fields = pairs("fieldSelector").iter().all(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        key != "metadata.name" || pod["metadata"]["name"].as_str() == Some(value.trim_start_matches('='))
    });
    is_in(pod, path) && has_labels && has_fields
}

/// For `--kill` and `--status`.
fn others() -> Vec<Value> {
    let times = json!({"startedAt": "2026-01-02T03:04:06Z"});
    let failed = json!({"terminated": {
        "exitCode": 1, "reason": "Error",
        "startedAt": "2026-01-02T03:04:06Z", "finishedAt": "2026-01-02T03:05:06Z",
    }});
    let waiting = json!({"waiting": {"reason": "ErrImagePull"}});
    [
        ("default", "spark-pi-aaa-driver", "spark-app1", "Running", json!({"running": times})),
        ("default", "spark-pi-bbb-driver", "spark-app2", "Failed", failed),
        ("default", "other-driver", "spark-app3", "Pending", waiting),
        ("ns1", "spark-pi-ns-driver", "spark-app4", "Running", json!({"running": times})),
    ]
    .map(|(namespace, name, app, phase, state)| {
        let container = json!({"name": "spark-kubernetes-driver", "image": "img:1"});
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": name, "namespace": namespace, "uid": "11111111-2222-3333-4444-555555555555",
                "creationTimestamp": CREATED, "resourceVersion": "50",
                "labels": {"spark-role": "driver", "spark-app-selector": app},
            },
            "spec": {
                "containers": [container], "nodeName": "node-7", "serviceAccountName": "default",
                "volumes": [{"name": "spark-local-dir-1", "emptyDir": {}}, {"name": "v2", "emptyDir": {}}],
            },
            "status": status(phase, &container, &state),
        })
    })
    .into()
}
