//! Which executors ended, were removed or were lost, and why. It compares each snapshot of their pods with the one
//! before.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use super::outcome::{disruption, ended, failed_init_containers, has_ended, reason_and_message};
use super::trouble::{self, ToldTroubles, Trouble};
use crate::events::Level;
use crate::exit_code::{ContainerRole, in_words};
use crate::pod_state::{containers, phase};

/// The label with an executor's number.
const ID_LABEL: &str = "spark-exec-id";
/// The name of Spark's container, unless a template has another one.
const CONTAINER: &str = "spark-kubernetes-executor";

/// Exit codes of an executor that the driver has deleted because it was not needed: the kubelet ends it by SIGTERM
/// (143).
const GRACEFUL: [i32; 2] = [0, 143];

/// The part of an executor's pod that reports need. There may be thousands of pods, so the rest is not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Executor {
    uid: String,
    /// `Executor 3 (pod x-exec-3 on node n)`
    called: String,
    /// Whether it runs, or was running at an earlier look.
    ran: bool,
    /// Whether its pod has ended and will not change any more.
    has_ended: bool,
    end: End,
    /// Whether its deletion was requested.
    is_deleted: bool,
    /// The pod's reason, and its disruption by the cluster.
    reasons: Vec<String>,
    troubles: Vec<Trouble>,
}

/// How an executor ended. It is empty for one that has not ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct End {
    /// Exit code and reason of Spark's container. It is `None` if that container never ran.
    code: Option<(i32, Option<String>)>,
    /// A description of each init-container that failed.
    init: Vec<String>,
    /// A short description of all its containers.
    containers: String,
}

/// A line to log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) level: Level,
    pub(super) text: String,
}

/// The known executors, and what was reported about them.
#[derive(Debug, Default)]
pub(super) struct Executors {
    /// Executors that were seen and not reported as ended, by unique id, with the time of the last look that saw them.
    known: HashMap<String, (Executor, Duration)>,
    /// Unique ids of executors that were reported as ended, and whose pods may still be seen.
    told: HashSet<String>,
    /// Reported troubles of executors that do not start.
    told_troubles: ToldTroubles,
}

impl From<Pod> for Executor {
    fn from(pod: Pod) -> Self {
        let status = pod.status.clone().unwrap_or_default();
        let (reason, message) = (&status.reason, &status.message);
        let reasons =
            [reason_and_message(reason.as_deref(), message.as_deref()), disruption(&pod).unwrap_or_default()];
        let called = called(&pod);
        Self {
            uid: pod.metadata.uid.clone().unwrap_or_default(),
            ran: phase(&pod) == "Running",
            has_ended: has_ended(&pod),
            end: end(&pod),
            is_deleted: pod.metadata.deletion_timestamp.is_some(),
            reasons: reasons.into_iter().filter(|reason| !reason.is_empty()).collect(),
            troubles: trouble::of_pod(&pod, "an executor pod", CONTAINER),
            called,
        }
    }
}

fn called(pod: &Pod) -> String {
    let labels = pod.metadata.labels.as_ref();
    let id = labels.and_then(|labels| labels.get(ID_LABEL)).map_or("?", String::as_str);
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    let node = node.map(|node| format!(" on node {node}")).unwrap_or_default();
    format!("Executor {id} (pod {name}{node})")
}

fn end(pod: &Pod) -> End {
    let statuses = containers(pod);
    let named = statuses.iter().find(|status| status.name == CONTAINER);
    let ended_one = named.filter(|status| ended(status).is_some());
    let other = statuses.iter().find(|status| ended(status).is_some()).filter(|_| has_ended(pod));
    let first = ended_one.or(other);
    let code = first.and_then(ended).map(|end| (end.exit_code, end.reason.clone()));
    if code.is_none() && !has_ended(pod) {
        return End::default();
    }
    let init = failed_init_containers(pod).map(|failed| format!("its {failed}")).collect();
    let each: Vec<String> = statuses.iter().map(in_few_words).collect();
    End { code, init, containers: each.join(", ") }
}

/// A container in a few words. They are without `exit code:`, because Airflow takes such a line for the driver's.
fn in_few_words(status: &ContainerStatus) -> String {
    let state = status.state.clone().unwrap_or_default();
    let words = if let Some(end) = &state.terminated {
        let reason = end.reason.as_deref().map(|reason| format!(", {reason}")).unwrap_or_default();
        format!("terminated with code {}{reason}", end.exit_code)
    } else if state.running.is_some() {
        "running".to_owned()
    } else {
        let reason = state.waiting.and_then(|waiting| waiting.reason);
        reason.map_or_else(|| "waiting".to_owned(), |reason| format!("waiting, {reason}"))
    };
    format!("{} {words}", status.name)
}

impl Executors {
    /// Takes a complete list of executors, read at `now`. A known executor that is not in it may only be missing from
    /// this list. So it counts as lost after `missing_for` (`spark.kubernetes.executor.missingPodDetectDelta`).
    pub(super) fn look(&mut self, seen: Vec<Executor>, now: Duration, missing_for: Duration) -> Vec<Finding> {
        let uids: HashSet<String> = seen.iter().map(|executor| executor.uid.clone()).collect();
        self.told.retain(|uid| uids.contains(uid));
        let mut findings: Vec<Finding> =
            seen.into_iter().flat_map(|executor| self.change(executor, now)).collect();
        let is_missing = |uid: &String, (_, last): &mut (Executor, Duration)| {
            !uids.contains(uid) && now.saturating_sub(*last) >= missing_for
        };
        let mut missing: Vec<_> = self.known.extract_if(is_missing).collect();
        missing.sort_by(|(_, one), (_, other)| one.0.called.cmp(&other.0.called));
        for (uid, (executor, last)) in missing {
            findings.push(executor.missing(now.saturating_sub(last)));
            // Its deletion may still be reported later.
            self.told.insert(uid);
        }
        findings
    }

    /// Takes an executor that is new or has changed.
    pub(super) fn change(&mut self, mut executor: Executor, now: Duration) -> Vec<Finding> {
        if self.told.contains(&executor.uid) {
            return Vec::new();
        }
        let mut findings = self.troubles(&executor);
        executor.ran |= self.known.get(&executor.uid).is_some_and(|(before, _)| before.ran);
        if executor.has_ended {
            findings.push(executor.finding());
            self.known.remove(&executor.uid);
            self.told.insert(executor.uid);
        } else {
            self.known.insert(executor.uid.clone(), (executor, now));
        }
        findings
    }

    /// Takes the deletion of an executor, with its last state.
    pub(super) fn delete(&mut self, executor: &Executor) -> Vec<Finding> {
        self.known.remove(&executor.uid);
        if self.told.remove(&executor.uid) {
            return Vec::new();
        }
        vec![Executor { is_deleted: true, ..executor.clone() }.finding()]
    }

    /// The number of executors that run.
    pub(super) fn running(&self) -> usize {
        self.known.values().filter(|(executor, _)| executor.ran).count()
    }

    /// Troubles that are new. If no node takes a hundred executors, that is one trouble.
    fn troubles(&mut self, executor: &Executor) -> Vec<Finding> {
        let new = executor.troubles.iter().filter(|trouble| self.told_troubles.is_new(trouble.key.clone()));
        new.map(|trouble| Finding { level: Level::Warn, text: trouble.text.clone() }).collect()
    }
}

impl Executor {
    /// The line about an executor that has ended or is gone. It is short for a normal end, because with dynamic
    /// allocation there are hundreds of them.
    fn finding(&self) -> Finding {
        let called = &self.called;
        let code = self.end.code.as_ref().map(|(code, _)| *code);
        let is_disrupted = !self.reasons.is_empty() || !self.end.init.is_empty();
        match code {
            Some(0) if !self.is_deleted && !is_disrupted => {
                Finding { level: Level::Info, text: format!("{called} has ended") }
            }
            code if self.is_deleted && !is_disrupted && code.is_none_or(|code| GRACEFUL.contains(&code)) => {
                Finding { level: Level::Info, text: format!("{called} was removed: its pod was deleted") }
            }
            _ => Finding { level: Level::Warn, text: format!("{called} was lost: {}", self.loss()) },
        }
    }

    /// The loss in words: the exit code, who ended it, the reasons and its containers.
    fn loss(&self) -> String {
        let mut parts = self.end.init.clone();
        match &self.end.code {
            Some((code, reason)) => {
                parts.push(format!(
                    "it exited with {}",
                    in_words(*code, reason.as_deref(), ContainerRole::Executor)
                ));
            }
            // After an eviction, the status has no containers.
            None if self.ran && !self.is_deleted => {
                parts.push("it was running when it was last seen".to_owned());
            }
            None if self.has_ended && parts.is_empty() => parts.push("it failed before it ran".to_owned()),
            None => {}
        }
        if self.is_deleted {
            parts.push("its pod was deleted (by the driver, a user or the cluster)".to_owned());
        } else if !self.reasons.is_empty() {
            parts.push("by the cluster".to_owned());
        } else if self.end.code.is_some() {
            parts.push("caused by the application itself".to_owned());
        }
        parts.extend(self.reasons.iter().cloned());
        if !self.end.containers.is_empty() {
            parts.push(format!("containers: {}", self.end.containers));
        }
        parts.join("; ")
    }

    fn missing(&self, since: Duration) -> Finding {
        let mut parts = vec![format!(
            "it has been missing from the cluster for {}s, and no deletion was reported",
            since.as_secs()
        )];
        parts.extend(self.reasons.iter().cloned());
        Finding { level: Level::Warn, text: format!("{} was lost: {}", self.called, parts.join("; ")) }
    }
}

#[cfg(test)]
mod tests;
