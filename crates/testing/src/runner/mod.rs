//! Scheduler and kubelet for a control plane without nodes: pods are processes of this machine, in namespaces of their
//! own.
//!
//! It supports the fields that Spark's pods use. It panics at any other field, and reports the panic in the pod's
//! status.

mod container;
mod entrypoint;
mod environment;
pub mod image;
mod kubelet;
mod network;
mod objects;
mod pod;
mod process;
mod status;
mod volume;
mod waiting;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::cluster::{Account, Api, Cluster, Next, text};
use crate::wait::BOUND;

pub use image::Image;
use network::Network;
use process::Stop;

/// The one node of the cluster.
const NODE: &str = "node-1";

/// The parts of the node that all pods use.
struct Node {
    api: Api,
    network: Network,
    images: Vec<Image>,
    folder: PathBuf,
    /// The existing pods by their uids: their paths at the API server, and their stop signals.
    running: Mutex<HashMap<String, (String, Arc<Stop>)>>,
}

/// A running node. Its pods' processes end with it.
pub struct Runner {
    node: Arc<Node>,
    tasks: Vec<JoinHandle<()>>,
}

impl Runner {
    /// Runs all pods of the control plane, and keeps their files below `folder`.
    pub async fn start(plane: &impl Cluster, images: Vec<Image>, folder: &Path) -> Self {
        let network = Network::start(folder, plane.address()).await;
        let api = plane.api(Account::Admin);
        let node =
            Arc::new(Node { api, network, images, folder: folder.to_owned(), running: Mutex::default() });
        let services = Arc::clone(&node);
        let learn = async move {
            let learn = |event: &str, service: &Value| {
                if event != "DELETED" {
                    services.network.service_changed(service);
                }
            };
            follow(&services.api, "/api/v1/services", learn).await;
        };
        let pods = Arc::clone(&node);
        let run = async move {
            let run = |event: &str, pod: &Value| seen(&pods, event, pod);
            follow(&pods.api, "/api/v1/pods", run).await;
        };
        let logs = kubelet::serve(Arc::clone(&node)).await;
        Self { node, tasks: vec![tokio::spawn(learn), tokio::spawn(run), logs] }
    }

    /// Kills all containers of a pod, as the kernel does if they take too much memory.
    pub fn out_of_memory(&self, namespace: &str, pod: &str) {
        let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}");
        let running = self.node.running.lock().unwrap();
        running.values().find(|(of, _)| *of == path).unwrap().1.out_of_memory();
    }

    /// The log of a container; empty if it never ran.
    pub fn log(&self, namespace: &str, pod: &str, container: &str) -> String {
        std::fs::read_to_string(self.node.log(namespace, pod, container)).unwrap_or_default()
    }

    /// The logs of all containers in a namespace, by pod and container.
    pub fn logs(&self, namespace: &str) -> Vec<(String, String)> {
        let folder = self.node.folder.join("logs").join(namespace);
        let files = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
        let mut logs: Vec<(String, String)> = files
            .map(|file| {
                let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
                (name, String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned())
            })
            .collect();
        logs.sort();
        logs
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Node {
    fn image(&self, name: &str) -> Option<&Image> {
        self.images.iter().find(|image| image.name == name)
    }

    fn log(&self, namespace: &str, pod: &str, container: &str) -> PathBuf {
        self.folder.join("logs").join(namespace).join(format!("{pod}.{container}.log"))
    }
}

/// Lists and then watches; when a watch ends, it begins again with a list. `tell` gets each existing, changed or
/// deleted object.
async fn follow(api: &Api, path: &str, mut tell: impl FnMut(&str, &Value)) {
    let mut known: HashMap<String, Value> = HashMap::new();
    loop {
        let (status, list) = api.get(path).await;
        assert_eq!(status, 200, "{list}");
        let listed: HashMap<String, Value> =
            objects::items(&list["items"]).map(|object| (uid(object), object.clone())).collect();
        known
            .iter()
            .filter(|(uid, _)| !listed.contains_key(*uid))
            .for_each(|(_, gone)| tell("DELETED", gone));
        listed.values().for_each(|object| tell("ADDED", object));
        known = listed;
        let since = format!("resourceVersion={}", text(&list["metadata"]["resourceVersion"]));
        let mut watch = api.watch(path, &since, "application/json").await;
        loop {
            match watch.next(BOUND).await {
                Next::Event(event) if event["type"] == "ERROR" => break,
                Next::Event(event) => {
                    let object = &event["object"];
                    known.insert(uid(object), object.clone());
                    tell(&text(&event["type"]), object);
                }
                Next::Silence => {}
                Next::End | Next::Broken(_) => break,
            }
        }
    }
}

fn uid(object: &Value) -> String {
    text(&object["metadata"]["uid"])
}

/// Starts the life of a new pod, or asks a deleted one to end.
fn seen(node: &Arc<Node>, event: &str, pod: &Value) {
    let mut running = node.running.lock().unwrap();
    if event == "DELETED" {
        if let Some((_, stop)) = running.remove(&uid(pod)) {
            stop.now(0);
        }
        return;
    }
    let (_, stop) = running.entry(uid(pod)).or_insert_with(|| {
        let stop = Arc::new(Stop::default());
        tokio::spawn(guarded(Arc::clone(node), pod.clone(), Arc::clone(&stop)));
        (pod::path(pod), stop)
    });
    let metadata = &pod["metadata"];
    if !metadata["deletionTimestamp"].is_null() {
        stop.now(metadata["deletionGracePeriodSeconds"].as_u64().unwrap_or_default());
    }
}

/// Runs a pod's life. If the runner panics at an unsupported field, the pod fails with that message in its status.
async fn guarded(node: Arc<Node>, pod: Value, stop: Arc<Stop>) {
    let path = format!("{}/status", pod::path(&pod));
    let api = node.api.clone();
    if let Err(failure) = tokio::spawn(pod::live(node, pod, stop)).await {
        let panic = failure.into_panic();
        let message = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|message| (*message).to_owned()));
        let status = json!({"phase": "Failed", "reason": "PodRunner", "message": message});
        api.merge(&path, &json!({"status": status})).await;
    }
}
