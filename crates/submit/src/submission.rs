//! The result of [`plan`](super::plan), which [`create`](super::create) and [`follow`](super::follow) work with.

use std::time::Duration;

use serde_json::Value;

use super::file_copy::FileCopy;
use super::stage::StagePlan;

/// A checked submission: its objects, in the order of their creation.
///
/// The objects are JSON and no typed structs, because a pod template may have fields that no struct here knows
/// (decision 15).
#[derive(Clone, PartialEq)]
pub struct Submission {
    pub namespace: String,
    pub app_name: String,
    /// `spark-` and 32 hexadecimal digits; the driver pod's label `spark-app-selector`.
    pub app_id: String,
    pub pod_name: String,
    /// The driver pod. Like Spark's, it has no namespace: that is only in the URL.
    pub pod: Value,
    /// The service account whose rights the driver has. It is `None` if the driver has its own credentials.
    pub driver_account: Option<String>,
    /// Objects that are applied before the pod is created, and again with the pod as their owner (Volcano's
    /// `PodGroup`).
    pub before_pod: Vec<Value>,
    /// Objects that are applied after the pod, in this order, with the pod as their owner. They have no
    /// `ownerReferences` yet.
    pub after_pod: Vec<Value>,
    /// Local files to copy just before the pod is created.
    pub uploads: Vec<FileCopy>,
    /// Local files for a staging server. They are uploaded before the pod is created, and then their tickets go into
    /// `after_pod`.
    pub staging: Option<StagePlan>,
    /// How to wait for the application.
    pub follow: FollowSettings,
    /// Warnings for the user, one line each, without `warning:`.
    pub warnings: Vec<String>,
}

/// The settings for waiting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowSettings {
    /// `spark.kubernetes.submission.waitAppCompletion`, true by default.
    pub wait: bool,
    /// `spark.kubernetes.report.interval`: how often the status line is printed; 1s by default.
    pub report_interval: Duration,
    /// `spark.kubernetes.executor.apiPollingInterval`: how often executor pods are listed; 30s by default.
    pub executor_poll_interval: Duration,
    /// `spark.kubernetes.executor.missingPodDetectDelta`: how long an executor pod may be missing before it counts as
    /// lost; 30s by default.
    pub missing_pod_detect_delta: Duration,
    /// `spark.kubernetes.cloakroom.exitCode`, `application` by default.
    pub exit_code: ExitCodeRule,
}

/// The meaning of the exit code after waiting (decision 16).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExitCodeRule {
    /// `application`: 0, or the driver's own exit code, or 1 if it has none.
    #[default]
    Application,
    /// `spark`: always 0, as spark-submit does.
    Spark,
}
