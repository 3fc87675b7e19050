//! Asks whether the driver's service account may create executors, before anything is created. With spark-submit, the
//! driver finds out in its pod.

use std::time::Duration;

use tokio::time::timeout;

use super::LOGGER;
use crate::events::Log;
use crate::log::Level;
use crate::submission::Submission;
use cloakroom_cluster::calls::Calls;
use cloakroom_spark::keys;

/// The longest wait for the answer. It only helps, so it must not delay a submission.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Warns if the API server says clearly that the driver's service account may not create pods. This is no error: Spark
/// would run such a driver, and some applications need no executors. Any other answer is ignored, because many roles
/// may not ask.
pub(super) async fn warn_if_powerless(calls: &Calls, submission: &Submission, log: &Log) {
    let Some(account) = &submission.driver_account else { return };
    match timeout(LONGEST_WAIT, calls.may_create_pods(account)).await {
        Ok(Ok(Some(false))) => log.say(Level::Warn, LOGGER, &warning(account, calls.namespace())),
        Ok(Err(failure)) => tracing::debug!(error = %failure, "what the driver may do is not known"),
        Ok(Ok(_)) | Err(_) => {}
    }
}

fn warning(account: &str, namespace: &str) -> String {
    format!(
        "The driver's service account {account} may not create pods in namespace {namespace}, so the driver will get no \
         executors: set {} to an account with the role spark-driver (kubectl apply -k manifests/submitter makes one, \
         called spark)",
        keys::DRIVER_SERVICE_ACCOUNT
    )
}
