//! Applications that a stock spark-submit submits, with what `cloakroom stage --for` printed: their files travel through the
//! server all the same.

use std::path::Path;
use std::process::Output;
use std::sync::Arc;

use cloakroom_testing::cluster::{Account, Api, Cluster as _, Object, SPARK_APPLICATION, text};
use cloakroom_testing::jobs::Job;
use cloakroom_testing::process::{command, stderr};
use cloakroom_testing::scenarios::served::ServedCluster;
use libtest_mimic::Trial;

use crate::operator::as_the_operator;
use crate::shared::{CLOAKROOM, RunningCluster, SharedCluster, VERSIONS};
use crate::submission::{Submission, Submitter};
use crate::submitted::{goes_with_its_driver, tickets};

/// The operator's object.
const APPLICATION: &str = "words";

/// Who takes over.
#[derive(Debug, Clone, Copy, PartialEq)]
enum To {
    SparkSubmit,
    /// As the operator calls spark-submit for a `SparkApplication`.
    SparkOperator,
}

pub fn trials(shared: &Arc<SharedCluster>) -> Vec<Trial> {
    let [latest, older] = VERSIONS;
    [
        (To::SparkSubmit, latest, Job::Java),
        (To::SparkSubmit, older, Job::Python),
        (To::SparkOperator, older, Job::Java),
        (To::SparkOperator, latest, Job::Python),
    ]
    .into_iter()
    .map(|(to, version, job)| {
        let whom = if to == To::SparkSubmit { "spark_submit" } else { "the_operator" };
        let name = format!("handed_over::to_{whom}_a_{}_job_runs_on_{version}", job.name());
        shared.trial_with(&name, job, move |shared| run(shared, to, version, job))
    })
    .collect()
}

async fn run(shared: Arc<SharedCluster>, to: To, version: &'static str, job: Job) {
    let cluster = shared.cluster().await;
    let whom = if to == To::SparkSubmit { "submit" } else { "operator" };
    let namespace = format!("handed-over-{whom}-{}", version.replace('.', "-"));
    let api = cluster.namespace(&namespace).await;
    let served =
        ServedCluster::open_through(&cluster.plane, cluster.plane.address(), &["--fetch-image", CLOAKROOM]);
    let application = Object::new(SPARK_APPLICATION, &namespace, APPLICATION, &[]);
    if to == To::SparkOperator {
        api.create(&application).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = staged(cluster, &served, &namespace, (to, version, job), folder.path());
    let told = stderr(&output);
    assert!(output.status.success(), "{told}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let given = match to {
        To::SparkSubmit => words_of(&printed),
        To::SparkOperator => as_the_operator(&printed, folder.path()),
    };
    let [class, code] = class_and_code(job);
    // Whatever would still be copied from this machine would fail.
    let settings = vec![("spark.kubernetes.file.upload.path", "file:///nowhere".to_owned())];
    let submission = Submission { submitter: Submitter::SparkSubmit, version, job, namespace, settings };
    submission.runs_with(cluster, [class, given, code].concat()).await;
    let tickets = tickets(&api, &submission.namespace).await;
    assert!(!tickets.iter().any(|(_, ticket)| printed.contains(&ticket.resource_secret)));
    if to == To::SparkSubmit {
        goes_with_its_driver(&api, &submission, &served, &tickets).await;
    } else {
        api.remove(&application).await;
        for (_, ticket) in &tickets {
            assert_eq!(served.goes(ticket).await.reason, "orphaned");
        }
    }
    are_found_as_it_says(&api, &submission.namespace, &told).await;
}

/// `cloakroom stage --for`, with all the files of the job.
fn staged(
    cluster: &RunningCluster,
    served: &ServedCluster,
    namespace: &str,
    (to, version, job): (To, &str, Job),
    folder: &Path,
) -> Output {
    let kubeconfig = folder.join("kubeconfig");
    std::fs::write(&kubeconfig, cluster.plane.kubeconfig(Account::Admin, cluster.plane.address())).unwrap();
    let sources = cluster.jobs(version);
    let mut command = command();
    command.current_dir(folder).env("KUBECONFIG", kubeconfig).arg("stage");
    command.args(["--server", &served.server.url(""), "--namespace", namespace]);
    let internal = format!("spark.kubernetes.resourceStagingServer.internal.uri={}", served.server.url(""));
    command.args(["--conf", &internal]);
    match to {
        To::SparkSubmit => command.args(["--for", "spark-submit"]),
        To::SparkOperator => command.args(["--for", "spark-operator", "--name", APPLICATION]),
    };
    let arguments = job.arguments(|file| sources.join(file).display().to_string());
    let own = arguments.iter().filter(|argument| !class_and_code(job).concat().contains(argument));
    command.args(own).output().unwrap()
}

/// What is the application's own, before and behind what was printed.
fn class_and_code(job: Job) -> [Vec<String>; 2] {
    let mut arguments = job.arguments(str::to_owned);
    let code = vec![arguments.pop().unwrap()];
    let class = if matches!(job, Job::Java) { arguments[..2].to_vec() } else { Vec::new() };
    [class, code]
}

/// As a shell takes them.
fn words_of(printed: &str) -> Vec<String> {
    let script = format!("printf '%s\\n' {printed}");
    let words = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
    String::from_utf8(words.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// The line that was told selects both objects, and nothing else of the namespace.
async fn are_found_as_it_says(api: &Api, namespace: &str, told: &str) {
    let label = told.split("-l ").nth(1).unwrap().split('”').next().unwrap();
    let label = label.replace('=', "%3D");
    for plural in ["configmaps", "secrets"] {
        let path = format!("/api/v1/namespaces/{namespace}/{plural}?labelSelector={label}");
        let (_, found) = api.get(&path).await;
        let names: Vec<String> =
            found["items"].as_array().unwrap().iter().map(|item| text(&item["metadata"]["name"])).collect();
        assert!(names.len() == 1 && told.contains(&names[0]), "{names:?} {told}");
    }
}
