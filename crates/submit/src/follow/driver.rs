//! The driver pod: keeps its last state, and reports each change.

use k8s_openapi::api::core::v1::{ContainerStatus, Event, Pod};

use super::LOGGER;
use super::outcome::{Outcome, Verdict, has_ended, verdict};
use super::trouble::{self, ToldTroubles, Trouble};
use crate::create::Created;
use crate::events::{Level, Log, Status};
use crate::pod_state::{block, containers, final_statuses, phase};
use crate::submission::Submission;
use cloakroom_core::text::in_one_line;

/// The driver pod's name in messages.
const DRIVER_POD: &str = "the driver pod";
/// The name of Spark's container, unless a template has another one.
const CONTAINER: &str = "spark-kubernetes-driver";

/// The last known state of the driver pod, and what was reported about it.
pub(super) struct Driver<'a> {
    submission: &'a Submission,
    log: &'a Log,
    uid: String,
    /// The name of Spark's container. Spark puts it behind all others.
    container: String,
    last: Pod,
    /// The last statuses of containers that were seen. A kubelet that evicts a pod removes them from its status.
    containers: Vec<ContainerStatus>,
    block: String,
    told: ToldTroubles,
    is_waiting: bool,
    was_reported: bool,
}

impl<'a> Driver<'a> {
    pub(super) fn new(submission: &'a Submission, created: &Created, log: &'a Log) -> Self {
        let containers = submission.pod["spec"]["containers"].as_array();
        let name = containers.and_then(|all| all.last()?["name"].as_str());
        Self {
            submission,
            log,
            uid: created.uid.clone(),
            container: name.unwrap_or(CONTAINER).to_owned(),
            last: serde_json::from_value(created.pod.clone()).unwrap_or_default(),
            containers: Vec::new(),
            block: String::new(),
            told: ToldTroubles::default(),
            is_waiting: false,
            was_reported: false,
        }
    }

    pub(super) fn is_pending(&self) -> bool {
        phase(&self.last) == "Pending"
    }

    pub(super) fn is_running(&self) -> bool {
        phase(&self.last) == "Running"
    }

    /// The name of Spark's container.
    pub(super) fn container(&self) -> &str {
        &self.container
    }

    /// Takes the pod of this name as it was read, or its absence.
    pub(super) fn look(&mut self, pod: Option<Pod>) -> Option<Outcome> {
        match pod {
            Some(pod) => self.change(pod),
            None => Some(self.end()),
        }
    }

    /// Takes a change of the pod of this name. If its unique id is another one, our pod is gone.
    pub(super) fn change(&mut self, pod: Pod) -> Option<Outcome> {
        if !self.is_ours(&pod) {
            return Some(self.end());
        }
        self.observe(pod);
        self.wait();
        has_ended(&self.last).then(|| self.end())
    }

    /// Takes the deletion of a pod of this name.
    pub(super) fn delete(&mut self, pod: Pod) -> Option<Outcome> {
        if !self.is_ours(&pod) {
            return None;
        }
        self.keep(pod);
        Some(self.end())
    }

    fn is_ours(&self, pod: &Pod) -> bool {
        pod.metadata.uid.as_deref() == Some(&self.uid)
    }

    /// Prints the block of the pod's state if something in it is new. Spark prints it for every event.
    fn observe(&mut self, pod: Pod) {
        let block = block(&pod);
        if block != self.block {
            self.say(Level::Info, &format!("State changed, new state: {block}"));
            self.block = block;
        }
        for trouble in trouble::of_pod(&pod, DRIVER_POD, &self.container) {
            self.tell(trouble);
        }
        self.keep(pod);
    }

    fn keep(&mut self, pod: Pod) {
        if !containers(&pod).is_empty() {
            self.containers = containers(&pod).to_vec();
        }
        self.last = pod;
    }

    fn wait(&mut self) {
        if !std::mem::replace(&mut self.is_waiting, true) {
            self.say(Level::Info, &format!("Waiting for {} to finish...", self.called()));
        }
    }

    /// Reports events of the pod, each once.
    pub(super) fn events(&mut self, events: &[Event]) {
        for trouble in events.iter().filter_map(|event| trouble::of_event(event, DRIVER_POD)) {
            self.tell(trouble);
        }
    }

    fn tell(&mut self, trouble: Trouble) {
        if self.told.is_new(trouble.key) {
            self.say(Level::Warn, &trouble.text);
        }
    }

    /// Prints the line of each report interval.
    pub(super) fn report(&mut self, executors: usize) {
        self.was_reported = true;
        let phase = phase(&self.last);
        let message = format!("Application status for {} (phase: {phase})", self.submission.app_id);
        self.log.report(LOGGER, &message, &Status { phase: phase.to_owned(), executors });
    }

    /// Prints Spark's last lines, then why the application failed if it did.
    fn end(&mut self) -> Outcome {
        self.wait();
        if self.was_reported {
            self.report(0);
        }
        let statuses = final_statuses(&self.last, &self.container);
        self.say(Level::Info, &format!("Container final statuses:\n\n{statuses}"));
        self.say(Level::Info, &format!("{} finished", capitalised(&self.called())));
        // Spark's lines show only the last state. The verdict uses the kept statuses of containers as well.
        self.last.status.get_or_insert_default().container_statuses =
            Some(std::mem::take(&mut self.containers));
        let Verdict { outcome, lines } = verdict(&self.last, &self.container);
        let level = if outcome == Outcome::Succeeded { Level::Warn } else { Level::Error };
        for line in lines {
            self.say(level, &line);
        }
        outcome
    }

    fn called(&self) -> String {
        let Submission { app_name, app_id, namespace, pod_name, .. } = self.submission;
        let app_name = in_one_line(app_name);
        format!(
            "application {app_name} with application ID {app_id} and submission ID {namespace}:{pod_name}"
        )
    }

    fn say(&self, level: Level, message: &str) {
        self.log.say(level, LOGGER, message);
    }
}

fn capitalised(text: &str) -> String {
    text.replacen("application", "Application", 1)
}
