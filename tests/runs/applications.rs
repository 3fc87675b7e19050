//! Applications whose jars are in the image, and whose files come by a folder that all sides see: submitted by the real
//! spark-submit, which proves the runner, and by `cloakroom submit`.

use std::sync::Arc;

use cloakroom_testing::cluster::Cluster as _;
use cloakroom_testing::jobs::Job;
use libtest_mimic::Trial;

use crate::shared::{JOBS, SharedCluster, VERSIONS};
use crate::submission::{Submission, Submitter};

pub fn trials(shared: &Arc<SharedCluster>) -> Vec<Trial> {
    let [latest, older] = VERSIONS;
    [
        (Submitter::SparkSubmit, latest, Job::Java),
        (Submitter::SparkSubmit, older, Job::Python),
        (Submitter::Cloakroom, latest, Job::Java),
        (Submitter::CloakroomByKubeconfig, latest, Job::Python),
        (Submitter::Cloakroom, older, Job::Java),
        (Submitter::Cloakroom, older, Job::Python),
    ]
    .into_iter()
    .map(|(submitter, version, job)| {
        let name = format!("applications::{}_{version}_a_{}_job_runs", submitter.name(), job.name());
        shared.trial_with(&name, job, move |shared| run(shared, submitter, version, job))
    })
    .collect()
}

async fn run(shared: Arc<SharedCluster>, submitter: Submitter, version: &'static str, job: Job) {
    let cluster = shared.cluster().await;
    let namespace = format!("{}-{version}-{}", submitter.name(), job.name()).replace(['.', '_'], "-");
    cluster.namespace(&namespace).await;
    let files = cluster.jobs(version).display().to_string();
    let place = |file: &str| {
        let folder = if file.ends_with(".jar") { format!("local://{JOBS}") } else { files.clone() };
        format!("{folder}/{file}")
    };
    let submission = Submission { submitter, version, job, namespace, settings: Vec::new() };
    let told = submission.runs_to_its_end(cluster, place).await;
    let where_to = format!("submitting to https://{} of the context “test”\n", cluster.plane.address());
    let by_kubeconfig = matches!(submitter, Submitter::CloakroomByKubeconfig);
    assert_eq!(told.contains(&where_to), by_kubeconfig, "{told}");
}
