//! Whether the driver may make executors: asked before anything is created, because Spark finds out in the pod alone.

use std::time::Duration;

use tokio::time::timeout;

use super::LOGGER;
use crate::calls::Calls;
use crate::events::Log;
use crate::log::Level;
use crate::submission::Submission;
use cloakroom_spark::keys;

/// No submission waits longer for an answer that only helps.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Warns where the API server says clearly that the driver's service account may not create pods. It is no error, for Spark
/// would run such a driver, and some applications need no executors. Any other answer is passed over: many roles may not ask.
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
