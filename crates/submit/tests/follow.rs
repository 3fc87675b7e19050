//! An application is followed to its end: what is said on the way, how it ended, and what stands in the way of knowing.

mod ends;
mod executors;
mod logs;

use std::sync::Arc;
use std::time::Duration;

use cloakroom_submit::Submission;
use cloakroom_submit::create::Created;
use cloakroom_submit::follow::{FollowError, FollowIntervals, Outcome};
use cloakroom_testing::api_server::{EVENT, FakeApiServer, Fault, Verb};
use cloakroom_testing::cluster::POD;
use cloakroom_testing::wait::{BOUND, until_true};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::submitter::{APP_ID, DRIVER, Submitter, hurried, submission};

const NAMESPACE: &str = "spark";
const CONTAINER: &str = "spark-kubernetes-driver";

/// An application that is followed.
struct Followed {
    server: FakeApiServer,
    submitter: Arc<Submitter>,
    following: JoinHandle<Result<Outcome, FollowError>>,
}

impl Followed {
    /// A driver pod that is pending, and whoever waits for it.
    async fn start() -> Self {
        Self::with(hurried(), quick(), |_| {}).await
    }

    async fn with(
        intervals: FollowIntervals,
        planned: Submission,
        before: impl FnOnce(&FakeApiServer),
    ) -> Self {
        let server = FakeApiServer::start();
        server.define(EVENT);
        server.create_pod(NAMESPACE, "somebody-elses", &[]);
        server.add(POD, NAMESPACE, planned.pod.clone());
        let pod = server.object(POD, NAMESPACE, DRIVER).unwrap();
        let created = Created { uid: pod["metadata"]["uid"].as_str().unwrap().to_owned(), pod };
        before(&server);
        let submitter = Arc::new(Submitter::new(&server));
        let follower = Arc::clone(&submitter);
        let following = tokio::spawn(async move { follower.follow(intervals, &planned, &created).await });
        Self { server, submitter, following }
    }

    /// Waits until something was said, so often.
    async fn said(&self, needle: &str, times: usize) {
        let lines = &self.submitter.lines;
        until_true(&format!("“{needle}” is said {times} times"), || lines.with(needle).len() >= times).await;
    }

    fn status(&self, status: &Value) {
        self.server.set_status(NAMESPACE, DRIVER, status);
    }

    fn run(&self) {
        self.status(&running());
    }

    fn finish(&self, code: i32, reason: &str) {
        self.status(&ended(CONTAINER, code, reason));
    }

    async fn outcome(self) -> (Outcome, Vec<String>) {
        let outcome = tokio::time::timeout(BOUND, self.following).await.unwrap().unwrap().unwrap();
        (outcome, self.submitter.lines.all())
    }

    async fn refused(self) -> String {
        tokio::time::timeout(BOUND, self.following).await.unwrap().unwrap().unwrap_err().to_string()
    }

    fn executor(&self, id: u32) -> String {
        let name = format!("my-app-exec-{id}");
        let labels =
            [("spark-app-selector", APP_ID), ("spark-role", "executor"), ("spark-exec-id", &id.to_string())];
        self.server.create_pod(NAMESPACE, &name, &labels);
        self.server.set_phase(NAMESPACE, &name, "Running");
        name
    }
}

/// Nobody waits here for seconds to pass.
fn quick() -> Submission {
    let mut planned = submission(NAMESPACE);
    planned.follow.report_interval = Duration::from_millis(20);
    planned
}

/// Looked at so often, and missing after so long.
fn looked_at(every: u64, missing: u64) -> Submission {
    let mut planned = quick();
    planned.follow.executor_poll_interval = Duration::from_millis(every);
    planned.follow.missing_pod_detect_delta = Duration::from_millis(missing);
    planned
}

fn container(name: &str, state: Value) -> Value {
    json!({
        "name": name, "image": "repo.example/spark:4", "imageID": "", "ready": false, "restartCount": 0,
        "state": state,
    })
}

fn running() -> Value {
    let state = json!({"running": {"startedAt": "2026-01-01T12:00:00Z"}});
    json!({"phase": "Running", "containerStatuses": [container(CONTAINER, state)]})
}

fn ended(name: &str, code: i32, reason: &str) -> Value {
    let end = json!({
        "exitCode": code, "reason": reason, "startedAt": "2026-01-01T12:00:00Z",
        "finishedAt": "2026-01-01T12:00:30Z",
    });
    let phase = if code == 0 { "Succeeded" } else { "Failed" };
    json!({"phase": phase, "containerStatuses": [container(name, json!({"terminated": end}))]})
}

/// What comes behind the time.
fn messages(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| line.split_at("26/11/21 01:13:00 ".len()).1.to_owned()).collect()
}

fn position(lines: &[String], needle: &str) -> usize {
    lines.iter().position(|line| line.contains(needle)).unwrap_or_else(|| panic!("no {needle} in {lines:#?}"))
}

#[tokio::test]
async fn the_lines_are_those_of_spark_submit() {
    let followed = Followed::start().await;
    followed.said("Waiting for application", 1).await;
    followed.run();
    followed.said("(phase: Running)", 2).await;
    followed.finish(0, "Completed");
    let (outcome, lines) = followed.outcome().await;
    assert_eq!(outcome, Outcome::Succeeded);
    let called =
        format!("pplication My App with application ID {APP_ID} and submission ID {NAMESPACE}:{DRIVER}");
    let lines = messages(&lines);
    let order = [
        format!(
            "INFO LoggingPodStatusWatcherImpl: State changed, new state: \n\t pod name: {DRIVER}\n\t namespace: spark\n"
        ),
        format!("INFO LoggingPodStatusWatcherImpl: Waiting for a{called} to finish..."),
        format!("INFO LoggingPodStatusWatcherImpl: Application status for {APP_ID} (phase: Running)"),
        format!("INFO LoggingPodStatusWatcherImpl: Application status for {APP_ID} (phase: Succeeded)"),
        format!(
            "INFO LoggingPodStatusWatcherImpl: Container final statuses:\n\n\n\t container name: {CONTAINER}\n"
        ),
        format!("INFO LoggingPodStatusWatcherImpl: A{called} finished"),
    ];
    let positions: Vec<usize> = order.iter().map(|line| position(&lines, line)).collect();
    assert!(positions.is_sorted(), "{lines:#?}");
    assert_eq!(*positions.last().unwrap(), lines.len() - 1, "nothing more to say");
    let states = lines.iter().filter(|line| line.contains("State changed")).count();
    assert_eq!(states, 3, "one block for each state: {lines:#?}");
    assert!(lines[positions[4]].ends_with("\n\t exit code: 0\n\t termination reason: Completed"));
}

#[tokio::test]
async fn a_failure_has_the_drivers_exit_code_and_says_why() {
    let followed = Followed::start().await;
    followed.run();
    followed.finish(137, "OOMKilled");
    let (outcome, lines) = followed.outcome().await;
    assert_eq!(outcome, Outcome::Failed { exit_code: Some(137) });
    let said = messages(&lines);
    let [.., why, where_its_log_is] = &said[..] else { panic!("{said:?}") };
    assert!(
        why.starts_with(
            "ERROR LoggingPodStatusWatcherImpl: SparkException: Application failed: its container spark-kubernetes-driver exited with \
             code 137 (killed: the container went over its memory limit"
        ),
        "{why}"
    );
    assert_eq!(
        *where_its_log_is,
        format!(
            "ERROR LoggingPodStatusWatcherImpl: Its log is shown by “kubectl logs -n {NAMESPACE} {DRIVER} -c {CONTAINER}”"
        )
    );
}

#[tokio::test]
async fn an_application_that_had_ended_before_is_told_without_a_status_line() {
    let mut planned = quick();
    planned.follow.report_interval = Duration::from_mins(1);
    let followed = Followed::with(hurried(), planned, |server| {
        server.set_status(NAMESPACE, DRIVER, &ended(CONTAINER, 1, "Error"));
    })
    .await;
    let (outcome, lines) = followed.outcome().await;
    assert_eq!(outcome, Outcome::Failed { exit_code: Some(1) });
    assert!(!lines.iter().any(|line| line.contains("Application status for")), "{lines:#?}");
    assert!(position(&lines, "State changed") < position(&lines, "Waiting for application"));
}

#[tokio::test]
async fn a_watch_that_ends_or_breaks_is_resumed_where_it_was() {
    let followed = Followed::start().await;
    followed.said("Waiting for application", 1).await;
    followed.run();
    followed.said("phase: Running\n", 1).await;
    let watches = || followed.server.calls_to(Verb::Watch);
    let of_driver =
        || watches().into_iter().filter(|call| call.parameter("fieldSelector").is_some()).collect::<Vec<_>>();
    for break_watches in [FakeApiServer::end_watches, FakeApiServer::cut_watches] {
        let before = of_driver().len();
        break_watches(&followed.server);
        until_true("the watch is resumed", || of_driver().len() > before).await;
    }
    let of_driver = of_driver();
    assert_eq!(of_driver[0].parameter("resourceVersion"), None);
    assert_eq!(of_driver[0].parameter("fieldSelector"), Some(format!("metadata.name={DRIVER}").as_str()));
    assert!(of_driver[1..].iter().all(|call| call.parameter("resourceVersion").is_some()));
    assert_eq!(followed.server.calls_to(Verb::Get).len(), 1, "a watch that is resumed needs no look");
    followed.finish(0, "Completed");
    let (outcome, lines) = followed.outcome().await;
    assert_eq!(outcome, Outcome::Succeeded);
    assert!(!lines.iter().any(|line| line.contains("WARN")), "{lines:#?}");
}

#[tokio::test]
async fn what_happened_while_the_past_was_forgotten_is_seen() {
    let followed = Followed::start().await;
    followed.said("Waiting for application", 1).await;
    followed.server.fail(Verb::Watch, Fault::Status(503));
    followed.server.end_watches();
    followed.said("The application cannot be watched for now", 1).await;
    followed.server.delete_pod(NAMESPACE, DRIVER);
    followed.server.compact();
    followed.server.heal();
    let (outcome, lines) = followed.outcome().await;
    assert_eq!(outcome, Outcome::Deleted { exit_code: None });
    assert!(
        lines.last().unwrap().ends_with("its driver pod was deleted before the application had started"),
        "{lines:#?}"
    );
}

#[tokio::test]
async fn a_forgotten_version_begins_anew_without_a_word() {
    let followed = Followed::start().await;
    followed.said("Waiting for application", 1).await;
    followed.server.compact();
    followed.server.end_watches();
    let looks = || followed.server.calls_to(Verb::Get).len();
    until_true("the pod is looked at again", || looks() > 1).await;
    followed.finish(0, "Completed");
    let (outcome, lines) = followed.outcome().await;
    assert_eq!(outcome, Outcome::Succeeded);
    assert!(!lines.iter().any(|line| line.contains("WARN")), "{lines:#?}");
}

#[tokio::test]
async fn an_api_server_that_is_away_is_waited_for_and_told_once() {
    let followed = Followed::start().await;
    followed.said("Waiting for application", 1).await;
    followed.server.stop();
    followed
        .said("The application cannot be watched for now, and goes on running: the API server cannot be", 1)
        .await;
    // Long enough for more attempts.
    followed
        .said("Application status for", followed.submitter.lines.with("Application status for").len() + 20)
        .await;
    followed.server.start_again();
    followed.said("The API server answers again", 1).await;
    followed.finish(0, "Completed");
    let (outcome, lines) = followed.outcome().await;
    assert_eq!(outcome, Outcome::Succeeded);
    let told = |needle: &str| lines.iter().filter(|line| line.contains(needle)).count();
    assert_eq!((told("cannot be watched for now"), told("answers again")), (1, 1), "{lines:#?}");
}

#[tokio::test]
async fn a_dead_watch_is_made_up_for_by_looks() {
    let intervals = FollowIntervals { look: Duration::from_millis(50), ..hurried() };
    let followed = Followed::with(intervals, quick(), |server| server.fail(Verb::Watch, Fault::Silent)).await;
    followed.said("Waiting for application", 1).await;
    followed.finish(0, "Completed");
    assert_eq!(followed.outcome().await.0, Outcome::Succeeded);
}

#[tokio::test]
async fn where_no_watch_is_allowed_the_pod_is_polled() {
    let followed =
        Followed::with(hurried(), quick(), |server| server.fail(Verb::Watch, Fault::Status(403))).await;
    followed
        .said("The driver pod cannot be watched, and is polled: the API server does not allow it (403", 1)
        .await;
    followed.run();
    followed.said("phase: Running\n", 1).await;
    followed.finish(0, "Completed");
    assert_eq!(followed.outcome().await.0, Outcome::Succeeded);
}

#[tokio::test]
async fn where_nothing_may_be_seen_the_application_runs_on() {
    for (code, words) in [(403, "does not allow it (403"), (401, "does not accept the credentials (401")] {
        let followed = Followed::with(hurried(), quick(), |server| {
            server.fail(Verb::Get, Fault::Status(code));
            if code == 401 {
                server.fail(Verb::Watch, Fault::Status(code));
            }
        })
        .await;
        let said = followed.refused().await;
        for part in [
            &format!(
                "the driver pod {DRIVER} in namespace {NAMESPACE} cannot be followed: the API server {words}"
            ),
            "the application goes on running",
            &format!("“kubectl get pod -n {NAMESPACE} {DRIVER}”"),
        ] {
            assert!(said.contains(part), "{part} is not in {said}");
        }
    }
}

#[tokio::test]
async fn a_deletion_is_told() {
    let followed = Followed::start().await;
    followed.run();
    followed.said("phase: Running\n", 1).await;
    followed.server.delete_pod(NAMESPACE, DRIVER);
    let (outcome, lines) = followed.outcome().await;
    assert_eq!(outcome, Outcome::Deleted { exit_code: None });
    let last = lines.last().unwrap();
    assert!(
        last.ends_with(
            "SparkException: Application failed: its driver pod was deleted before the application had ended"
        ),
        "{last}"
    );
    assert!(lines.iter().any(|line| line.contains("Container final statuses:")));
}

#[tokio::test]
async fn a_pod_that_took_the_name_meanwhile_is_not_ours() {
    let followed = Followed::start().await;
    followed.said("Waiting for application", 1).await;
    followed.server.stop();
    followed.said("cannot be watched for now", 1).await;
    followed.server.delete_pod(NAMESPACE, DRIVER);
    followed.server.create_pod(NAMESPACE, DRIVER, &[("spark-app-selector", "spark-other")]);
    followed.server.finish_pod(NAMESPACE, DRIVER);
    followed.server.start_again();
    let (outcome, lines) = followed.outcome().await;
    assert_eq!(outcome, Outcome::Deleted { exit_code: None });
    assert!(!lines.iter().any(|line| line.contains("spark-other")), "{lines:#?}");
}

/// A cleaner may take a pod as soon as it has ended.
#[tokio::test]
async fn a_pod_that_ended_before_it_was_deleted_has_ended() {
    let followed = Followed::start().await;
    followed.said("Waiting for application", 1).await;
    followed.server.fail(Verb::Watch, Fault::Status(500));
    followed.server.end_watches();
    followed.said("cannot be watched for now", 1).await;
    followed.finish(0, "Completed");
    followed.server.heal();
    assert_eq!(followed.outcome().await.0, Outcome::Succeeded);
}

#[tokio::test]
async fn what_keeps_a_driver_from_starting_is_told_once() {
    let followed = Followed::start().await;
    let message = "0/3 nodes are available: 3 Insufficient memory.";
    let condition =
        json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message});
    followed.status(&json!({"conditions": [condition]}));
    followed.said(&format!("No node takes the driver pod: {message}"), 1).await;
    let uid = followed.server.object(POD, NAMESPACE, DRIVER).unwrap()["metadata"]["uid"].clone();
    for (name, uid, count) in [("ours", uid, 9), ("others", json!("another-uid"), 9)] {
        let event = json!({
            "metadata": {"name": name}, "involvedObject": {"uid": uid}, "reason": "FailedMount", "count": count,
            "message": format!("configmap of {name} not found"),
        });
        followed.server.add(EVENT, NAMESPACE, event);
    }
    followed.said("Event of the driver pod: FailedMount: configmap of ours not found", 1).await;
    for reason in ["ErrImagePull", "ImagePullBackOff", "ErrImagePull"] {
        let waiting =
            container(CONTAINER, json!({"waiting": {"reason": reason, "message": "no such image"}}));
        let before = followed.submitter.lines.with(&format!("pending reason: {reason}")).len();
        followed.status(&json!({"containerStatuses": [waiting]}));
        followed.said(&format!("pending reason: {reason}"), before + 1).await;
    }
    followed.server.delete_pod(NAMESPACE, DRIVER);
    let (_, lines) = followed.outcome().await;
    let warned: Vec<_> = messages(&lines).into_iter().filter(|line| line.starts_with("WARN")).collect();
    assert_eq!(warned.len(), 3, "{warned:#?}");
    assert!(warned[2].contains("cannot be pulled: ErrImagePull: no such image"), "{warned:#?}");
}

#[tokio::test]
async fn events_that_may_not_be_read_are_done_without() {
    let followed = Followed::with(hurried(), quick(), |server| {
        server.fail_for(EVENT, Verb::List, Fault::Status(403));
    })
    .await;
    let asked = || followed.server.calls_to(Verb::List).len();
    until_true("events are asked for", || asked() > 0).await;
    followed.finish(0, "Completed");
    let (outcome, lines) = followed.outcome().await;
    assert_eq!(outcome, Outcome::Succeeded);
    assert!(!lines.iter().any(|line| line.contains("403")), "{lines:#?}");
}

#[tokio::test]
async fn whoever_stops_waiting_is_told_how_to_look_and_how_to_end_it() {
    let followed = Followed::start().await;
    followed.run();
    followed.said("phase: Running\n", 1).await;
    followed.submitter.stop.cancel();
    let server = followed.server.calls_to(Verb::Delete);
    let address = followed.submitter.server.address().to_owned();
    let (outcome, lines) = followed.outcome().await;
    assert_eq!(outcome, Outcome::Stopped);
    assert!(server.is_empty());
    let last = lines.last().unwrap();
    for part in [
        "which goes on running",
        &format!("“cloakroom submit --master k8s://{address} --status {NAMESPACE}:{DRIVER}”"),
        &format!("“cloakroom submit --master k8s://{address} --kill {NAMESPACE}:{DRIVER}”"),
    ] {
        assert!(last.contains(part), "{part} is not in {last}");
    }
}
