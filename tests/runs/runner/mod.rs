//! Scheduler and kubelet of a control plane that has neither: pods are processes of this machine, in namespaces of their own.
//!
//! It knows what Spark's pods are made of, and panics, which the pod's status tells, at what it does not know.

mod container;
mod entrypoint;
mod environment;
mod image;
mod network;
mod objects;
mod pod;
mod process;
mod status;
mod volume;
mod waiting;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::cluster::{Account, Api, Cluster, Next, text};
use crate::support::wait::BOUND;

pub use image::Image;
use network::Network;
use process::Stop;

/// The one node of the cluster.
const NODE: &str = "node-1";

/// What the pods' lives need of the node.
struct Node {
    api: Api,
    network: Network,
    images: Vec<Image>,
    folder: PathBuf,
}

/// A running node. Its pods' processes end with it.
pub struct Runner {
    node: Arc<Node>,
    watches: Vec<JoinHandle<()>>,
}

impl Runner {
    /// Runs all pods of the control plane, with what it keeps about them below `folder`.
    pub async fn start(plane: &impl Cluster, images: Vec<Image>, folder: &Path) -> Self {
        let network = Network::start(folder, plane.address()).await;
        let api = plane.api(Account::Admin);
        let node = Arc::new(Node { api, network, images, folder: folder.to_owned() });
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
            let mut running = HashMap::new();
            let run = |event: &str, pod: &Value| seen(&pods, &mut running, event, pod);
            follow(&pods.api, "/api/v1/pods", run).await;
        };
        Self { node, watches: vec![tokio::spawn(learn), tokio::spawn(run)] }
    }

    /// What a container has written; empty if it never ran.
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
        for watch in &self.watches {
            watch.abort();
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

/// Lists, then watches, from the beginning whenever a watch ends; tells what is there and what changes.
async fn follow(api: &Api, path: &str, mut tell: impl FnMut(&str, &Value)) {
    loop {
        let (status, list) = api.get(path).await;
        assert_eq!(status, 200, "{list}");
        for object in objects::items(&list["items"]) {
            tell("ADDED", object);
        }
        let since = format!("resourceVersion={}", text(&list["metadata"]["resourceVersion"]));
        let mut watch = api.watch(path, &since, "application/json").await;
        loop {
            match watch.next(BOUND).await {
                Next::Event(event) if event["type"] == "ERROR" => break,
                Next::Event(event) => tell(&text(&event["type"]), &event["object"]),
                Next::Silence => {}
                Next::End | Next::Broken(_) => break,
            }
        }
    }
}

/// Begins a pod's life, and tells it of its end.
fn seen(node: &Arc<Node>, running: &mut HashMap<String, Arc<Stop>>, event: &str, pod: &Value) {
    let uid = text(&pod["metadata"]["uid"]);
    let is_deleted = event == "DELETED";
    if !running.contains_key(&uid) && !is_deleted {
        let stop = Arc::new(Stop::default());
        running.insert(uid.clone(), Arc::clone(&stop));
        tokio::spawn(guarded(Arc::clone(node), pod.clone(), stop));
    }
    let Some(stop) = running.get(&uid) else { return };
    let grace = &pod["metadata"]["deletionGracePeriodSeconds"];
    if is_deleted {
        stop.now(0);
        running.remove(&uid);
    } else if !pod["metadata"]["deletionTimestamp"].is_null() {
        stop.now(grace.as_u64().unwrap_or_default());
    }
}

/// A pod's life; what this runner cannot do is the end of it, and said in its status.
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
