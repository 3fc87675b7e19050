//! Waits for the driver's end, and reports what happens until then.

mod driver;
mod driver_log;
mod events;
mod executors;
mod outcome;
mod reason;
mod trouble;
mod watch;

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use self::driver::Driver;
use self::driver_log::DriverLog;
use self::events::Events;
use self::executors::{Executor, Executors, Finding};
use self::reason::FailureReason;
use self::watch::{PodChange, Watching};
use super::create::Created;
use super::events::{Level, Log};
use super::submission::Submission;
use cloakroom_cluster::calls::{Calls, Select, said};
use cloakroom_cluster::{ApiFailure, ApiServer};
use cloakroom_core::retry::Backoff;
use cloakroom_core::text::in_one_line;

pub use outcome::Outcome;

/// The class that logs these lines in Spark.
const LOGGER: &str = "LoggingPodStatusWatcherImpl";

/// Intervals and limits of following an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowIntervals {
    /// The waits while the API server cannot be reached. The first one is also the pause before a watch that ended or
    /// broke is resumed. Spark's client waits a second as well.
    pub backoff: Backoff,
    /// How often the driver pod is read in addition to the watch. A connection may be dead without an error.
    pub look: Duration,
    /// How often the driver pod is read if it may not be watched.
    pub poll: Duration,
    /// How often the events of a pod that does not start are read.
    pub events: Duration,
    /// How long credentials may be refused before following ends. A token may be renewed in this time.
    pub credentials: Duration,
}

impl Default for FollowIntervals {
    fn default() -> Self {
        Self {
            backoff: Backoff {
                first: Duration::from_secs(1),
                longest: Duration::from_secs(10),
                longest_asked: Duration::from_mins(1),
            },
            look: Duration::from_mins(1),
            poll: Duration::from_secs(2),
            events: Duration::from_secs(10),
            credentials: Duration::from_mins(1),
        }
    }
}

/// The application can no longer be followed. It continues to run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the driver pod {pod} in namespace {namespace} cannot be followed: {}: the application goes on running; see how it \
     is with “kubectl get pod -n {namespace} {pod}”",
    said(failure)
)]
pub struct FollowError {
    /// The driver pod's name.
    pub pod: String,
    /// The driver pod's namespace.
    pub namespace: String,
    /// The API server's answer.
    pub failure: ApiFailure,
}

/// Reports what happens to the application until it has ended or `stop` is cancelled.
pub(super) async fn follow(
    intervals: FollowIntervals,
    server: &ApiServer,
    submission: &Submission,
    created: &Created,
    log: &Log,
    stop: &CancellationToken,
) -> Result<Outcome, FollowError> {
    let calls = Calls::new(server, &submission.namespace);
    let driver = Driver::new(submission, created, log);
    let watched = Select::Name(submission.pod_name.clone());
    let following = Following {
        pods: Some(Watching::start(calls.clone(), watched, intervals.look, intervals)),
        executor_pods: None,
        events: Some(Events::start(calls.clone(), created.uid.clone(), intervals)),
        executors: Executors::default(),
        began: Instant::now(),
        calls,
        intervals,
        submission,
        driver,
        log,
    };
    following.run(stop).await
}

struct Following<'a> {
    pods: Option<Watching<Pod>>,
    executor_pods: Option<Watching<Executor>>,
    events: Option<Events>,
    executors: Executors,
    began: Instant,
    calls: Calls,
    intervals: FollowIntervals,
    submission: &'a Submission,
    driver: Driver<'a>,
    log: &'a Log,
}

impl Following<'_> {
    async fn run(mut self, stop: &CancellationToken) -> Result<Outcome, FollowError> {
        let every = self.submission.follow.report_interval.max(Duration::from_millis(1));
        let mut report = interval_at(Instant::now() + every, every);
        report.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                seen = Watching::next(&mut self.pods) => {
                    if let Some(outcome) = self.driver(seen)? {
                        self.explain(&outcome, stop).await;
                        return Ok(outcome);
                    }
                }
                seen = Watching::next(&mut self.executor_pods) => self.executor(seen),
                events = Events::next(&mut self.events) => self.driver.events(&events),
                _ = report.tick() => self.driver.report(self.executors.running()),
                () = stop.cancelled() => {
                    self.say_stopped();
                    return Ok(Outcome::Stopped);
                }
            }
        }
    }

    fn driver(&mut self, seen: PodChange<Pod>) -> Result<Option<Outcome>, FollowError> {
        let outcome = match seen {
            PodChange::All(pods) => self.driver.look(pods.into_iter().next()),
            PodChange::Changed(pod) => self.driver.change(pod),
            PodChange::Deleted(pod) => self.driver.delete(pod),
            PodChange::Away(why) => self.say(Level::Warn, &away(&why)),
            PodChange::Back => self.say(Level::Info, "The API server answers again"),
            PodChange::Polling(why) => {
                self.say(Level::Info, &format!("The driver pod cannot be watched, and is polled: {why}"))
            }
            PodChange::Refused(failure) => {
                let Submission { pod_name, namespace, .. } = self.submission;
                return Err(FollowError { pod: pod_name.clone(), namespace: namespace.clone(), failure });
            }
        };
        if !self.driver.is_pending() {
            self.events = None;
        }
        if self.driver.is_running() && self.executor_pods.is_none() {
            self.executor_pods = Some(self.watch_executors());
        }
        Ok(outcome)
    }

    /// Shows the end of the log of a driver that failed by itself, and the reason if it is a known one. A driver that
    /// was deleted has no log any more.
    async fn explain(&self, outcome: &Outcome, stop: &CancellationToken) {
        let Outcome::Failed { exit_code: Some(exit_code) } = outcome else { return };
        let Submission { pod_name, namespace, .. } = self.submission;
        let log = tokio::select! {
            log = DriverLog::read(&self.calls, pod_name, self.driver.container()) => log,
            () = stop.cancelled() => return,
        };
        if let Some(lines) = log.as_ref().and_then(DriverLog::last_lines) {
            self.say(Level::Error, &format!("The last lines of its log:{lines}"));
        }
        if let Some(reason) = FailureReason::find(log.as_ref().map(DriverLog::text), *exit_code, namespace) {
            self.say(Level::Error, &reason.to_string());
        }
    }

    fn watch_executors(&self) -> Watching<Executor> {
        let labels = format!("spark-app-selector={},spark-role=executor", self.submission.app_id);
        let every = self.submission.follow.executor_poll_interval.max(Duration::from_millis(1));
        Watching::start(self.calls.clone(), Select::Labels(labels), every, self.intervals)
    }

    fn executor(&mut self, seen: PodChange<Executor>) {
        let now = self.began.elapsed();
        let missing_for = self.submission.follow.missing_pod_detect_delta;
        let findings = match seen {
            PodChange::All(executors) => self.executors.look(executors, now, missing_for),
            PodChange::Changed(executor) => self.executors.change(executor, now),
            PodChange::Deleted(executor) => self.executors.delete(&executor),
            PodChange::Refused(failure) => {
                let text = format!("Executor pods cannot be followed: {}", said(&failure));
                vec![Finding { level: Level::Info, text }]
            }
            // The driver's watch reports these already.
            PodChange::Away(_) | PodChange::Back | PodChange::Polling(_) => Vec::new(),
        };
        for Finding { level, text } in findings {
            self.log.say(level, LOGGER, &text);
        }
    }

    /// Logs a line. The result is always `None`, for arms of a `match` that end nothing.
    fn say(&self, level: Level, message: &str) -> Option<Outcome> {
        self.log.say(level, LOGGER, message);
        None
    }

    fn say_stopped(&self) {
        let Submission { app_name, namespace, pod_name, .. } = self.submission;
        let app_name = in_one_line(app_name);
        let master = format!("--master k8s://{}", self.calls.server().address());
        let goes_on = if self.driver.is_pending() { "has not started yet" } else { "goes on running" };
        let message = format!(
            "Stopped waiting for application {app_name}, which {goes_on}. See how it is with “cloakroom submit \
             {master} --status {namespace}:{pod_name}”; end it with “cloakroom submit {master} --kill \
             {namespace}:{pod_name}”"
        );
        self.log.say(Level::Warn, LOGGER, &message);
    }
}

fn away(why: &str) -> String {
    format!("The application cannot be watched for now, and goes on running: {why}. Trying again")
}
