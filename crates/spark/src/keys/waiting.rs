//! Waiting for the application's end.

use std::time::Duration;

use super::keys;
use super::kind::{boolean, interval};

keys! { "Waiting":
    /// whether the application is waited for
    WAIT_APP_COMPLETION: bool =
        boolean("spark.kubernetes.submission.waitAppCompletion").or("true").substituted();
    /// how often its state is told
    REPORT_INTERVAL: Duration = interval("spark.kubernetes.report.interval").or("1s").substituted();
    /// how often executors are looked at
    EXECUTOR_POLLING_INTERVAL: Duration =
        interval("spark.kubernetes.executor.apiPollingInterval").or("30s").substituted();
    /// after how long an executor that is missing is lost
    MISSING_POD_DETECT_DELTA: Duration =
        interval("spark.kubernetes.executor.missingPodDetectDelta").or("30s").substituted();
}
