//! Keys of waiting for the application's end.

use std::time::Duration;

use super::keys;
use super::kind::{boolean, interval};

keys! { "Waiting":
    /// whether to wait for the application's end
    WAIT_APP_COMPLETION: bool =
        boolean("spark.kubernetes.submission.waitAppCompletion").or("true").substituted();
    /// how often the state of the application is printed
    REPORT_INTERVAL: Duration = interval("spark.kubernetes.report.interval").or("1s").substituted();
    /// how often the executor pods are listed
    EXECUTOR_POLLING_INTERVAL: Duration =
        interval("spark.kubernetes.executor.apiPollingInterval").or("30s").substituted();
    /// how long an executor may be missing before it counts as lost
    MISSING_POD_DETECT_DELTA: Duration =
        interval("spark.kubernetes.executor.missingPodDetectDelta").or("30s").substituted();
}
