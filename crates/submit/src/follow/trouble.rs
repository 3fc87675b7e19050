//! Why a pod does not start, from its state and its events.

use std::collections::HashSet;

use k8s_openapi::api::core::v1::{ContainerStatus, Event, Pod};

use super::outcome::{condition, disruption, ended, has_ended};
use crate::pod_state::containers;
use cloakroom_core::text::in_one_line;

/// A problem that the user should know about. Each one is reported once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    /// Troubles with equal keys count as the same.
    pub(super) key: String,
    pub(super) text: String,
}

/// The keys of reported troubles. Their number is limited, because messages may have parts that change each time.
#[derive(Debug, Default)]
pub(super) struct ToldTroubles(HashSet<String>);

impl ToldTroubles {
    const MOST: usize = 100;

    /// Adds a key, and returns whether it has to be reported now.
    pub(super) fn is_new(&mut self, key: String) -> bool {
        self.0.len() < Self::MOST && self.0.insert(key)
    }
}

/// Reasons for which a container waits during a normal start.
const ON_THE_WAY: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// Reasons that mean that an image cannot be pulled. They count as one trouble, because the first two alternate.
const IMAGE: [&str; 4] = ["ErrImagePull", "ImagePullBackOff", INVALID_IMAGE_NAME, NEVER_PULLED];
const INVALID_IMAGE_NAME: &str = "InvalidImageName";
const NEVER_PULLED: &str = "ErrImageNeverPull";

/// The events that are reported. The pod's state already has the others, such as those about images and exit codes.
const TOLD_EVENTS: [&str; 10] = [
    "FailedMount",
    "FailedAttachVolume",
    "FailedMapVolume",
    "FailedBinding",
    "FailedCreatePodSandBox",
    "FailedToRetrieveImagePullSecret",
    "NetworkNotReady",
    "Evicted",
    "Preempted",
    "TaintManagerEviction",
];

/// Events that are reported only if they repeat. spark-submit creates the config map after the pod. So mounting it
/// fails once or twice in every submission.
const PASSING: [&str; 1] = ["FailedMount"];
const TIMES_UNTIL_TOLD: i32 = 3;

/// The troubles in the state of a pod. `what` is the pod's name in messages.
pub(super) fn of_pod(pod: &Pod, what: &str, driver: &str) -> Vec<Trouble> {
    let mut found = Vec::new();
    let unscheduled = condition(pod, "PodScheduled").filter(|condition| condition.status == "False");
    if let Some(message) = unscheduled.and_then(|condition| condition.message.as_deref()) {
        found.push(unschedulable(what, message));
    }
    let init = pod.status.as_ref().and_then(|status| status.init_container_statuses.as_deref());
    found.extend(
        init.unwrap_or_default().iter().chain(containers(pod)).filter_map(|status| waiting(status, what)),
    );
    if !has_ended(pod) {
        found.extend(disruption(pod).map(|text| Trouble { key: "disruption".to_owned(), text }));
        found.extend(left_alone(pod, what, driver));
    }
    found
}

/// The trouble of an event, if it is one that is reported.
pub(super) fn of_event(event: &Event, what: &str) -> Option<Trouble> {
    let reason = event.reason.as_deref()?;
    let message = event.message.as_deref().unwrap_or_default();
    if reason == "FailedScheduling" {
        return Some(unschedulable(what, message));
    }
    let series = event.series.as_ref().and_then(|series| series.count);
    let times = event.count.unwrap_or_default().max(series.unwrap_or_default());
    let is_told = TOLD_EVENTS.contains(&reason) && (!PASSING.contains(&reason) || times >= TIMES_UNTIL_TOLD);
    let message = in_one_line(message);
    is_told.then(|| Trouble {
        key: format!("event {reason} {message}"),
        text: format!("Event of {what}: {reason}: {message}"),
    })
}

/// A pod that no node takes. The key is without digits: the numbers of nodes in the message change with the cluster.
fn unschedulable(what: &str, message: &str) -> Trouble {
    let message = in_one_line(message);
    let reason = message.replace(|c: char| c.is_ascii_digit(), "");
    Trouble { key: format!("unschedulable {reason}"), text: format!("No node takes {what}: {message}") }
}

fn waiting(status: &ContainerStatus, what: &str) -> Option<Trouble> {
    let waiting = status.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.as_deref().filter(|reason| !ON_THE_WAY.contains(reason))?;
    let kind = if IMAGE.contains(&reason) { "image" } else { reason };
    let message = waiting.message.as_deref().map(in_one_line).unwrap_or_default();
    let name = &status.name;
    let text = if kind == "image" {
        format!(
            "The image {} of container {name} in {what} cannot be pulled: {reason}: {}",
            status.image,
            after_image(reason, &message)
        )
    } else {
        format!("Container {name} in {what} cannot start: {reason}: {message}")
    };
    Some(Trouble { key: format!("waiting {name} {kind}"), text: text.trim_end_matches(": ").to_owned() })
}

/// The message about an image, with advice. The cluster tries again by itself, but often the user has to act.
fn after_image(reason: &str, message: &str) -> String {
    let message = if message.is_empty() { String::new() } else { format!("{message}: ") };
    let advice = match reason {
        INVALID_IMAGE_NAME => {
            "this cannot be the name of an image; end the application, and submit it again with another name \
             (spark.kubernetes.container.image; of spark-init spark.kubernetes.initContainer.image)"
        }
        NEVER_PULLED => {
            "the node does not have it, and the policy Never does not let it be pulled; load it into the nodes, or end the \
             application, and submit it again with spark.kubernetes.container.image.pullPolicy=IfNotPresent"
        }
        _ => {
            "the cluster goes on trying; check the name and the tag, and whether the registry wants a pull secret \
             (spark.kubernetes.container.image.pullSecrets)"
        }
    };
    message + advice
}

/// Containers that keep the pod running after the driver's container has ended. Spark waits for the whole pod.
fn left_alone(pod: &Pod, what: &str, driver: &str) -> Option<Trouble> {
    let (drivers, others): (Vec<_>, Vec<_>) =
        containers(pod).iter().partition(|status| status.name == driver);
    let end = drivers.first().and_then(|status| ended(status))?;
    let running: Vec<&str> =
        others.iter().filter(|status| ended(status).is_none()).map(|status| status.name.as_str()).collect();
    (!running.is_empty()).then(|| Trouble {
        key: "left alone".to_owned(),
        text: format!(
            "Container {driver} in {what} has ended with code {}; the pod goes on until these end as well: {}",
            end.exit_code,
            running.join(", ")
        ),
    })
}

#[cfg(test)]
mod tests;
