//! A pod's status, as the kubelet reports it.

use std::net::IpAddr;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::waiting::Waiting;
use crate::cluster::text;

/// The kubelet's reason for a container that it does not find.
const LOST: i32 = 137;

/// The state of a container.
#[derive(Debug, Clone)]
pub enum State {
    Waiting(Waiting),
    Running {
        since: Timestamp,
    },
    Terminated(End),
    /// Ended, at an unknown time and in an unknown way.
    Lost,
}

/// How a container ended.
#[derive(Debug, Clone)]
pub struct End {
    pub since: Timestamp,
    pub until: Timestamp,
    pub code: i32,
    pub message: String,
    pub was_out_of_memory: bool,
}

/// A container's name, image and state.
#[derive(Debug, Clone)]
pub struct Container {
    pub name: String,
    pub image: String,
    pub state: State,
}

/// The whole status of a pod.
#[derive(Debug, Clone)]
pub struct Status {
    pub started: Timestamp,
    pub address: IpAddr,
    pub init: Vec<Container>,
    pub main: Vec<Container>,
}

impl State {
    pub fn is_running(&self) -> bool {
        matches!(self, Self::Running { .. })
    }

    /// The exit code; `None` if it has not ended.
    pub fn code(&self) -> Option<i32> {
        match self {
            Self::Terminated(end) => Some(end.code),
            Self::Lost => Some(LOST),
            Self::Waiting(_) | Self::Running { .. } => None,
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Waiting(Waiting { reason, message }) => {
                json!({"waiting": {"reason": reason, "message": message}})
            }
            Self::Running { since } => json!({"running": {"startedAt": time(*since)}}),
            Self::Terminated(end) => json!({"terminated": {
                "startedAt": time(end.since),
                "finishedAt": time(end.until),
                "exitCode": end.code,
                "reason": end.reason(),
                "message": end.message,
            }}),
            Self::Lost => json!({"terminated": {
                "startedAt": null,
                "finishedAt": null,
                "exitCode": LOST,
                "reason": "ContainerStatusUnknown",
                "message": "The container could not be located when the pod was terminated",
            }}),
        }
    }
}

impl End {
    fn reason(&self) -> &'static str {
        match self.code {
            0 => "Completed",
            _ if self.was_out_of_memory => "OOMKilled",
            _ => "Error",
        }
    }
}

impl Container {
    pub fn new(spec: &Value, state: State) -> Self {
        Self { name: text(&spec["name"]), image: text(&spec["image"]), state }
    }

    fn to_json(&self, is_init: bool) -> Value {
        let is_ready = if is_init { self.state.code() == Some(0) } else { self.state.is_running() };
        json!({
            "name": self.name,
            "image": self.image,
            "imageID": self.image,
            "restartCount": 0,
            "ready": is_ready,
            "started": self.state.is_running(),
            "state": self.state.to_json(),
        })
    }
}

impl Status {
    /// Whether all init-containers have succeeded.
    pub fn is_initialized(&self) -> bool {
        self.init.iter().all(|container| container.state.code() == Some(0))
    }

    /// The phase, for a pod whose containers are never restarted.
    pub fn phase(&self) -> &'static str {
        if self.init.iter().any(|container| container.state.code().is_some_and(|code| code != 0)) {
            return "Failed";
        }
        let codes: Vec<Option<i32>> = self.main.iter().map(|container| container.state.code()).collect();
        if codes.iter().all(|code| *code == Some(0)) {
            "Succeeded"
        } else if codes.iter().all(Option::is_some) {
            "Failed"
        } else if self.main.iter().any(|container| container.state.is_running()) {
            "Running"
        } else {
            "Pending"
        }
    }

    /// A merge patch.
    pub fn to_json(&self) -> Value {
        let is_ready = self.is_initialized() && self.main.iter().all(|one| one.state.is_running());
        let conditions = [
            ("PodScheduled", true),
            ("Initialized", self.is_initialized()),
            ("ContainersReady", is_ready),
            ("Ready", is_ready),
        ];
        let conditions = conditions.map(|(kind, is_true)| {
            let status = if is_true { "True" } else { "False" };
            json!({"type": kind, "status": status, "lastTransitionTime": time(self.started)})
        });
        let all = |list: &[Container], is_init: bool| -> Vec<Value> {
            list.iter().map(|container| container.to_json(is_init)).collect()
        };
        json!({"status": {
            "phase": self.phase(),
            "conditions": conditions,
            "hostIP": "127.0.0.1",
            "podIP": self.address,
            "podIPs": [{"ip": self.address}],
            "startTime": time(self.started),
            "initContainerStatuses": all(&self.init, true),
            "containerStatuses": all(&self.main, false),
        }})
    }
}

/// A time in whole seconds, as Kubernetes writes times.
fn time(at: Timestamp) -> String {
    Timestamp::from_second(at.as_second()).unwrap().to_string()
}
