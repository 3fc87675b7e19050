//! The life of one pod: binds it to the node, makes its volumes, runs its containers, and reports its end.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::container::{self, Surroundings};
use super::objects::{Objects, items};
use super::process::Stop;
use super::status::{Container, State, Status};
use super::waiting::Waiting;
use super::{NODE, Node, volume};
use crate::cluster::text;

/// How often the start of a waiting container is tried again.
const RETRY: Duration = Duration::from_millis(100);

struct Life {
    node: Arc<Node>,
    /// The pod as it was first seen, with its address and its node.
    pod: Value,
    objects: Objects,
    folder: PathBuf,
    volumes: HashMap<String, PathBuf>,
    status: Status,
    stop: Arc<Stop>,
}

/// The pod was asked to end.
struct Stopped;

/// The pod's path at the API server.
pub fn path(pod: &Value) -> String {
    let metadata = &pod["metadata"];
    format!("/api/v1/namespaces/{}/pods/{}", text(&metadata["namespace"]), text(&metadata["name"]))
}

/// Runs the pod from its creation to its deletion.
pub async fn live(node: Arc<Node>, pod: Value, stop: Arc<Stop>) {
    let mut life = Life::begin(node, pod, stop).await;
    if life.run().await.is_err() {
        life.never_started();
    }
    life.report().await;
    life.stop.asked().await;
    life.remove().await;
}

impl Life {
    /// Binds the pod to the node, and gives it an address.
    async fn begin(node: Arc<Node>, mut pod: Value, stop: Arc<Stop>) -> Self {
        let target = json!({"apiVersion": "v1", "kind": "Node", "name": NODE});
        let metadata = json!({"name": pod["metadata"]["name"]});
        let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target});
        // If the pod was deleted meanwhile, `stop` is set as well.
        node.api.post(&format!("{}/binding", path(&pod)), &binding).await;
        let address = node.network.address(&pod, &container::host_name(&pod));
        pod["spec"]["nodeName"] = NODE.into();
        pod["status"]["podIP"] = address.to_string().into();
        pod["status"]["hostIP"] = "127.0.0.1".into();
        let objects = Objects::new(node.api.clone(), text(&pod["metadata"]["namespace"]));
        let folder = node.folder.join("pods").join(text(&pod["metadata"]["uid"]));
        std::fs::create_dir_all(&folder).unwrap();
        let waiting = |list: &Value, reason| -> Vec<Container> {
            let waiting = State::Waiting(Waiting::new(reason, String::new()));
            items(list).map(|spec| Container::new(spec, waiting.clone())).collect()
        };
        let init = waiting(&pod["spec"]["initContainers"], "PodInitializing");
        let first = if init.is_empty() { "ContainerCreating" } else { "PodInitializing" };
        let main = waiting(&pod["spec"]["containers"], first);
        let status = Status { started: Timestamp::now(), address, init, main };
        Self { node, pod, objects, folder, volumes: HashMap::new(), status, stop }
    }

    async fn run(&mut self) -> Result<(), Stopped> {
        let policy = &self.pod["spec"]["restartPolicy"];
        assert_eq!(policy, "Never", "the runner does not start containers again");
        self.report().await;
        self.make_volumes().await?;
        for index in 0..self.status.init.len() {
            let spec = self.pod["spec"]["initContainers"][index].clone();
            let mut container = self.start(&spec, true, index).await?;
            self.status.init[index].state = container.state();
            self.report().await;
            let ended = container.end(&self.stop).await;
            let code = ended.code();
            self.status.init[index].state = ended;
            if code != Some(0) {
                return Ok(());
            }
        }
        self.run_main().await
    }

    async fn run_main(&mut self) -> Result<(), Stopped> {
        let mut containers = Vec::new();
        for index in 0..self.status.main.len() {
            let spec = self.pod["spec"]["containers"][index].clone();
            let container = self.start(&spec, false, index).await?;
            self.status.main[index].state = container.state();
            containers.push(container);
        }
        self.report().await;
        let ended = join_all(containers.iter_mut().map(|container| container.end(&self.stop))).await;
        for (container, state) in self.status.main.iter_mut().zip(ended) {
            container.state = state;
        }
        Ok(())
    }

    /// Makes the volumes. It waits for their sources, which may come later than the pod.
    async fn make_volumes(&mut self) -> Result<(), Stopped> {
        let group = self.pod["spec"]["securityContext"]["fsGroup"].as_u64().map(|group| group as u32);
        let folder = self.folder.join("volumes");
        let mut told = String::new();
        for spec in items(&self.pod["spec"]["volumes"]) {
            let path = loop {
                match volume::make(spec, &self.pod, &self.objects, &folder, group).await {
                    Ok(path) => break path,
                    Err(Waiting { message, .. }) if message != told => {
                        self.warn("FailedMount", &message).await;
                        told = message;
                    }
                    Err(_) => self.pause().await?,
                }
            };
            self.volumes.insert(text(&spec["name"]), path);
        }
        Ok(())
    }

    /// Starts a container as soon as possible.
    async fn start(
        &mut self,
        spec: &Value,
        is_init: bool,
        index: usize,
    ) -> Result<container::Running, Stopped> {
        loop {
            if self.stop.is_asked() {
                return Err(Stopped);
            }
            let surroundings = Surroundings {
                node: &self.node,
                pod: &self.pod,
                objects: &self.objects,
                folder: &self.folder,
                volumes: &self.volumes,
            };
            match surroundings.start(spec).await {
                Ok(running) => return Ok(running),
                Err(waiting) => self.wait(is_init, index, waiting).await?,
            }
        }
    }

    async fn wait(&mut self, is_init: bool, index: usize, waiting: Waiting) -> Result<(), Stopped> {
        let list = if is_init { &mut self.status.init } else { &mut self.status.main };
        if !matches!(&list[index].state, State::Waiting(before) if *before == waiting) {
            list[index].state = State::Waiting(waiting);
            self.report().await;
        }
        self.pause().await
    }

    async fn pause(&self) -> Result<(), Stopped> {
        let asked = tokio::time::timeout(RETRY, self.stop.asked()).await;
        if asked.is_ok() { Err(Stopped) } else { Ok(()) }
    }

    /// Reports containers that never started as the kubelet does (`TerminatePod` in its status manager): as lost if the
    /// pod is initialized, else as still waiting.
    fn never_started(&mut self) {
        if !self.status.is_initialized() {
            return;
        }
        for container in &mut self.status.main {
            if matches!(container.state, State::Waiting(_)) {
                container.state = State::Lost;
            }
        }
    }

    async fn report(&self) {
        self.node.api.merge(&format!("{}/status", path(&self.pod)), &self.status.to_json()).await;
    }

    async fn warn(&self, reason: &str, message: &str) {
        let metadata = &self.pod["metadata"];
        let namespace = text(&metadata["namespace"]);
        let event = json!({
            "metadata": {"generateName": format!("{}.", text(&metadata["name"])), "namespace": namespace},
            "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"],
                               "namespace": namespace, "uid": metadata["uid"]},
            "type": "Warning",
            "reason": reason,
            "message": message,
            "source": {"component": "kubelet", "host": NODE},
        });
        self.node.api.post(&format!("/api/v1/namespaces/{namespace}/events"), &event).await;
    }

    /// Deletes the pod object, which is the kubelet's last step of a deletion.
    async fn remove(&self) {
        let options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": self.pod["metadata"]["uid"]},
        });
        let (api, path) = (&self.node.api, path(&self.pod));
        api.call(reqwest::Method::DELETE, &path, &[], Some(&options)).await.unwrap();
        std::fs::remove_dir_all(&self.folder).unwrap();
    }
}
