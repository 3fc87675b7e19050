//! How an application ended, decided from the last state of its driver pod.

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod, PodCondition};
use serde::Serialize;

use crate::exit_code::{ContainerRole, in_words};
use crate::pod_state::{containers, phase};
use crate::submission::ExitCodeRule;
use cloakroom_core::text::in_one_line;

/// How following ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// The driver's container ended with 0.
    Succeeded,
    /// The driver failed or never started.
    Failed {
        /// The exit code of the driver's container. It is `None` if there is none, or if it is 0.
        exit_code: Option<u8>,
    },
    /// The driver pod was deleted before the application had ended.
    Deleted {
        /// The exit code of the driver's container. It is `None` if there is none, or if it is 0.
        exit_code: Option<u8>,
    },
    /// The user stopped the waiting. The application continues to run.
    Stopped,
}

impl Outcome {
    /// The exit code of `cloakroom submit`. It is `None` if the user stopped the waiting: then the signal decides it.
    pub fn exit_code(&self, rule: ExitCodeRule) -> Option<u8> {
        match (self, rule) {
            (Self::Stopped, _) => None,
            (_, ExitCodeRule::Spark) | (Self::Succeeded, _) => Some(0),
            (Self::Failed { exit_code } | Self::Deleted { exit_code }, _) => Some(exit_code.unwrap_or(1)),
        }
    }
}

/// The outcome of an application, with the lines about it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) outcome: Outcome,
    /// The lines to log. The first one says how the application ended.
    pub(super) lines: Vec<String>,
}

/// Whether the pod has ended and will not change any more.
pub(super) fn has_ended(pod: &Pod) -> bool {
    ["Succeeded", "Failed"].contains(&phase(pod))
}

/// The verdict on a pod that has ended or is gone. `driver` is the name of Spark's container. Only its end counts;
/// other containers do not change the outcome.
pub(super) fn verdict(pod: &Pod, driver: &str) -> Verdict {
    let end = end_of(containers(pod), driver);
    let exit_code =
        end.and_then(|end| u8::try_from(end.exit_code).ok().or(Some(1))).filter(|code| *code != 0);
    let is_success = end.is_some_and(|end| end.exit_code == 0) && !was_ended_by_cluster(pod);
    let (outcome, how) = if was_ended_by_deletion(pod, end) {
        (Outcome::Deleted { exit_code }, deletion(end.is_some() || is_running(pod, driver)).to_owned())
    } else if phase(pod) == "Succeeded" || is_success {
        (Outcome::Succeeded, String::new())
    } else {
        (Outcome::Failed { exit_code }, failure(pod, end, driver))
    };
    let mut lines = Vec::new();
    if outcome != Outcome::Succeeded {
        // Kyuubi reports the last line with `Exception:` and without `at `. So this line has no text of the cluster in
        // it.
        lines.push(format!("SparkException: Application failed: {how}"));
        lines.extend(end.and_then(|end| message("container", driver, end)));
        lines.extend(end.filter(|_| !is_deleted(&outcome)).and_then(|_| where_its_log_is(pod, driver)));
    }
    lines.extend(details(pod, driver));
    Verdict { outcome, lines }
}

fn failure(pod: &Pod, end: Option<&ContainerStateTerminated>, driver: &str) -> String {
    match end {
        Some(end) => {
            let words = in_words(end.exit_code, end.reason.as_deref(), ContainerRole::Driver);
            format!("its container {driver} exited with {words}")
        }
        None if is_running(pod, driver) => {
            format!("its container {driver} was running when it was last seen")
        }
        None => format!("its container {driver} never ran"),
    }
}

/// The phase does not say it: the kubelet ends a deleted pod whose containers never ran with the phase `Failed`.
fn deletion(has_started: bool) -> &'static str {
    if has_started {
        "its driver pod was deleted before the application had ended"
    } else {
        "its driver pod was deleted before the application had started"
    }
}

/// The command that shows the driver's log. Most failures have their reason only there.
fn where_its_log_is(pod: &Pod, container: &str) -> Option<String> {
    let (namespace, name) = (pod.metadata.namespace.as_deref()?, pod.metadata.name.as_deref()?);
    Some(format!("Its log is shown by “kubectl logs -n {namespace} {name} -c {container}”"))
}

fn is_deleted(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Deleted { .. })
}

/// More facts of the API: about the pod, and about its other containers.
fn details(pod: &Pod, driver: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let status = pod.status.clone().unwrap_or_default();
    if has_reason(pod) || status.message.is_some() {
        lines.push(format!(
            "The driver pod's reason: {}",
            reason_and_message(status.reason.as_deref(), status.message.as_deref())
        ));
    }
    lines.extend(disruption(pod));
    lines.extend(failed_init_containers(pod).map(|failed| format!("The {failed}")));
    let others = containers(pod).iter().filter(|one| one.name != driver);
    lines.extend(
        others
            .filter_map(|one| failed_container("container", one, ContainerRole::Sidecar))
            .map(|failed| format!("The {failed}")),
    );
    lines
}

/// A text for each init-container that failed: `init-container fetch exited with code 1 (…): its termination message`.
/// Sidecars are left out: the kubelet ends them after all other containers, so that each of them exits with 143 or 137.
pub(super) fn failed_init_containers(pod: &Pod) -> impl Iterator<Item = String> {
    let statuses = pod.status.as_ref().and_then(|status| status.init_container_statuses.as_deref());
    let statuses = statuses.unwrap_or_default().iter().filter(|status| !is_sidecar(pod, &status.name));
    statuses.filter_map(|status| failed_container("init-container", status, ContainerRole::InitContainer))
}

/// Whether an init-container is a sidecar, which runs as long as the pod
/// (<https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/>).
fn is_sidecar(pod: &Pod, name: &str) -> bool {
    let containers = pod.spec.as_ref().and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default();
    containers.iter().any(|one| one.name == name && one.restart_policy.as_deref() == Some("Always"))
}

/// Why the cluster ended a pod. It is `None` if the cluster did not end it
/// (<https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions>).
pub(super) fn disruption(pod: &Pod) -> Option<String> {
    let condition = condition(pod, "DisruptionTarget").filter(|condition| condition.status == "True")?;
    let why = match condition.reason.as_deref() {
        Some("PreemptionByScheduler") => "a pod of a higher priority took its place",
        Some("DeletionByTaintManager") => "its node has a taint that it does not tolerate",
        Some("EvictionByEvictionAPI") => "it was evicted, as when a node is drained",
        Some("DeletionByPodGC") => "its node is gone",
        Some("TerminationByKubelet") => "its node was short of something, or was shut down",
        _ => "the cluster ended it",
    };
    let said = reason_and_message(condition.reason.as_deref(), condition.message.as_deref());
    Some(format!("The cluster ended the pod: {why} ({said})"))
}

/// The pod's condition of this type, if it has one.
pub(super) fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    pod.status.as_ref()?.conditions.iter().flatten().find(|condition| condition.type_ == kind)
}

fn failed_container(what: &str, status: &ContainerStatus, role: ContainerRole) -> Option<String> {
    let end = ended(status).filter(|end| end.exit_code != 0)?;
    let words = in_words(end.exit_code, end.reason.as_deref(), role);
    let said = end.message.as_deref().map(in_one_line).filter(|said| !said.is_empty());
    let said = said.map(|said| format!(": {said}")).unwrap_or_default();
    Some(format!("{what} {} exited with {words}{said}", status.name))
}

fn message(what: &str, name: &str, end: &ContainerStateTerminated) -> Option<String> {
    let said = end.message.as_deref().map(in_one_line).filter(|said| !said.is_empty())?;
    Some(format!("The {what} {name} left this message: {said}"))
}

/// Both parts in one line: `Evicted: The node was low on resource: memory`.
pub(super) fn reason_and_message(reason: Option<&str>, message: Option<&str>) -> String {
    let parts = [reason, message];
    let parts = parts.into_iter().flatten().map(in_one_line).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(": ")
}

/// The end of a container. It is `None` if the container has not ended.
pub(super) fn ended(status: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    status.state.as_ref()?.terminated.as_ref()
}

fn end_of<'a>(statuses: &'a [ContainerStatus], name: &str) -> Option<&'a ContainerStateTerminated> {
    statuses.iter().find(|status| status.name == name).and_then(ended)
}

fn has_reason(pod: &Pod) -> bool {
    let reason = pod.status.as_ref().and_then(|status| status.reason.as_deref());
    reason.is_some_and(|reason| !reason.is_empty())
}

/// Whether the cluster ended the pod: it was evicted, or its deadline has passed. Only then the pod has a reason. A pod
/// that failed because of a sidecar has none.
fn was_ended_by_cluster(pod: &Pod) -> bool {
    has_ended(pod) && has_reason(pod)
}

fn is_running(pod: &Pod, name: &str) -> bool {
    let status = containers(pod).iter().find(|status| status.name == name);
    status.and_then(|status| status.state.as_ref()).is_some_and(|state| state.running.is_some())
}

/// Whether the pod's deletion was requested before the driver had ended by itself. The time of the request is the
/// deletion timestamp minus the grace period. Times have whole seconds. In doubt, the driver ended by itself.
fn was_ended_by_deletion(pod: &Pod, end: Option<&ContainerStateTerminated>) -> bool {
    if end.is_none() && !has_ended(pod) {
        return true;
    }
    let Some(deletion) = &pod.metadata.deletion_timestamp else { return false };
    let grace = SignedDuration::from_secs(pod.metadata.deletion_grace_period_seconds.unwrap_or_default());
    let Some(finished) = end.and_then(|end| end.finished_at.as_ref()) else { return true };
    deletion.0.checked_sub(grace).is_ok_and(|asked| finished.0 > asked)
}

#[cfg(test)]
mod tests;
