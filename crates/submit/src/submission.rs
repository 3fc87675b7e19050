//! What [`plan`](super::plan) hands over to [`create`](super::create) and [`follow`](super::follow).

use std::time::Duration;

use serde_json::Value;

use super::file_copy::FileCopy;
use super::stage::StagePlan;

/// A submission that was checked as far as it can be checked here: the objects, in the order in which they are made.
///
/// Objects are JSON and not typed structs: a pod template may have fields that no struct here knows.
#[derive(Clone, PartialEq)]
pub struct Submission {
    /// Where every object is made.
    pub namespace: String,
    /// `spark.app.name`.
    pub app_name: String,
    /// `spark-` and 32 hexadecimal digits; the driver pod's label `spark-app-selector`.
    pub app_id: String,
    /// Name of the driver pod.
    pub pod_name: String,
    /// The driver pod. Its namespace is in no body: Spark leaves it to the URL.
    pub pod: Value,
    /// The service account whose rights the driver has; none where it shows credentials of its own.
    pub driver_account: Option<String>,
    /// Applied before the pod is made, and once more with it as their owner (a Volcano `PodGroup`).
    pub before_pod: Vec<Value>,
    /// Applied after the pod was made, in this order, with it as their owner. They have no `ownerReferences` yet.
    pub after_pod: Vec<Value>,
    /// Files of this machine to copy before the pod is made, once nothing else can be refused.
    pub uploads: Vec<FileCopy>,
    /// Files of this machine that go to a staging server before the pod is made. Their tickets are filled in then.
    pub staging: Option<StagePlan>,
    /// What happens once everything was made.
    pub follow: FollowSettings,
    /// What the user should know, one line each, without `warning:`.
    pub warnings: Vec<String>,
}

/// How a submission is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowSettings {
    /// `spark.kubernetes.submission.waitAppCompletion`, true by default.
    pub wait: bool,
    /// `spark.kubernetes.report.interval`: how often the status line is printed; 1s by default.
    pub report_interval: Duration,
    /// `spark.kubernetes.executor.apiPollingInterval`: how often executor pods are listed; 30s by default.
    pub executor_poll_interval: Duration,
    /// `spark.kubernetes.executor.missingPodDetectDelta`: for how long an executor pod may be in no list; 30s by
    /// default.
    pub missing_pod_detect_delta: Duration,
    /// `spark.kubernetes.cloakroom.exitCode`.
    pub exit_code: ExitCodeRule,
}

/// What the exit code of a submission that was waited for says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExitCodeRule {
    /// How the application ended: 0, or the driver's own exit code (1 where there is none).
    #[default]
    Application,
    /// `spark`: 0 whatever happened, as spark-submit does.
    Spark,
}
