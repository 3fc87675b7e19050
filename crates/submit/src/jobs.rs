//! `--kill` and `--status`: drivers of earlier submissions.

mod submission_id;

use k8s_openapi::api::core::v1::Pod;

use super::events::Log;
use super::pod_state::block;
use cloakroom_cluster::calls::{Calls, Patience, delete_options, retried, said};
use cloakroom_cluster::{ApiFailure, ApiServer};

pub use submission_id::{SubmissionId, SubmissionIdError};

/// The label selector of all driver pods.
const DRIVERS: &str = "spark-role=driver";

/// Why a driver could not be found or deleted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// A call failed.
    #[error("cannot {what} in namespace {namespace}: {}{}", said(failure), hint(verb, namespace, failure))]
    Failed { what: String, verb: &'static str, namespace: String, failure: ApiFailure },
    /// Some of several drivers could not be deleted. The others were.
    #[error("{} of {all} driver pods could not be deleted: {}", failed.len(), lines(failed))]
    Several { all: usize, failed: Vec<JobError> },
}

fn hint(verb: &str, namespace: &str, failure: &ApiFailure) -> String {
    match failure {
        ApiFailure::Forbidden { .. } => {
            format!(": “kubectl auth can-i {verb} pods -n {namespace}” must say yes")
        }
        ApiFailure::Untrusted { .. } => {
            ": name the CA that signed its certificate by spark.kubernetes.authenticate.submission.caCertFile, or by \
             certificate-authority in the kubeconfig, and give --master a host name that the certificate is for"
                .to_owned()
        }
        ApiFailure::Unreachable { .. } => ": check --master and the network".to_owned(),
        ApiFailure::Refused { code: 300..400, .. } => ": check --master".to_owned(),
        _ => String::new(),
    }
}

fn lines(failed: &[JobError]) -> String {
    failed.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// `--kill`: deletes one driver pod, or all whose names have the id's prefix. As in Spark, it is no failure if there is
/// none. `master` is only shown.
pub async fn kill(
    server: &ApiServer,
    master: &str,
    id: &SubmissionId,
    grace_period_seconds: Option<u64>,
    log: &Log,
) -> Result<(), JobError> {
    let grace = grace_period_seconds.map_or_else(|| "not set.".to_owned(), |seconds| seconds.to_string());
    log.print(&format!(
        "Submitting a request to kill submission {id} in {master}. Grace period in secs: {grace}"
    ));
    let Job { names, is_glob, calls } = Job::find(server, id, log).await?;
    if is_glob {
        for pod in &names {
            log.print(&format!("Deleting driver pod: {}.", name(pod)));
        }
    }
    // Spark stops at the first pod that cannot be deleted. Here the others are deleted too.
    let mut failed = Vec::new();
    for pod in &names {
        failed.extend(delete(&calls, name(pod), grace_period_seconds).await.err());
    }
    match failed.len() {
        0 => Ok(()),
        1 if names.len() == 1 => failed.pop().map_or(Ok(()), Err),
        _ => Err(JobError::Several { all: names.len(), failed }),
    }
}

/// `--status`: prints the state of one driver pod, or of all whose names have the id's prefix.
pub async fn status(server: &ApiServer, master: &str, id: &SubmissionId, log: &Log) -> Result<(), JobError> {
    log.print(&format!("Submitting a request for the status of submission {id} in {master}."));
    for pod in Job::find(server, id, log).await?.names {
        log.print(&format!("Application status (driver): {}", block(&pod)));
    }
    Ok(())
}

/// The pods of a submission id.
struct Job {
    names: Vec<Pod>,
    is_glob: bool,
    calls: Calls,
}

impl Job {
    async fn find(server: &ApiServer, id: &SubmissionId, log: &Log) -> Result<Self, JobError> {
        let calls = Calls::new(server, id.namespace());
        let stop = tokio_util::sync::CancellationToken::new();
        let patience = Patience { stop: &stop, after_timeouts: false };
        let (found, verb, missing) = if id.is_glob() {
            let all = retried(patience, || calls.all_pods(DRIVERS)).await;
            let matching = all.map(|pods| pods.into_iter().filter(|pod| id.matches(name(pod))).collect());
            (matching, "list", "No applications found.")
        } else {
            let pod = retried(patience, || calls.pod_named(id.name())).await;
            (pod.map(|pod| pod.into_iter().collect()), "get", "Application not found.")
        };
        let names: Vec<Pod> = found.map_err(|failure| JobError::Failed {
            what: format!("look for {}", id.name()),
            verb,
            namespace: id.namespace().to_owned(),
            failure,
        })?;
        if names.is_empty() {
            log.print(missing);
        }
        Ok(Self { names, is_glob: id.is_glob(), calls })
    }
}

async fn delete(calls: &Calls, name: &str, grace_period_seconds: Option<u64>) -> Result<(), JobError> {
    let stop = tokio_util::sync::CancellationToken::new();
    let patience = Patience { stop: &stop, after_timeouts: true };
    let options = delete_options(None, grace_period_seconds);
    match retried(patience, || calls.delete_pod(name, &options)).await {
        // The pod was deleted in the meantime.
        Ok(_) | Err(ApiFailure::NotFound { .. }) => Ok(()),
        Err(failure) => Err(JobError::Failed {
            what: format!("delete pod {name}"),
            verb: "delete",
            namespace: calls.namespace().to_owned(),
            failure,
        }),
    }
}

fn name(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}
