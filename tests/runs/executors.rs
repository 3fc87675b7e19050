//! `spark.kubernetes.cloakroom.executorStaging=init`: executors open what was staged themselves, and have it on their own
//! class path before the driver serves anything.

use std::path::Path;
use std::sync::Arc;

use cloakroom_testing::cluster::Cluster as _;
use cloakroom_testing::jobs::{Job, SERIALIZER};
use cloakroom_testing::scenarios::served::ServedCluster;
use cloakroom_testing::tls;
use libtest_mimic::Trial;
use serde_json::json;

use crate::shared::{CLOAKROOM, MACHINE, RunningCluster, SharedCluster, VERSIONS};
use crate::sight::Sight;
use crate::submission::{DRIVER, Submission, Submitter};
use crate::submitted::goes_with_its_driver;
use crate::submitted::tickets;

/// What the server wants to see from whoever uploads.
const UPLOAD_TOKEN: &str = "a-token-that-nobody-else-has";

pub fn trials(shared: &Arc<SharedCluster>) -> Vec<Trial> {
    let [latest, older] = VERSIONS;
    vec![
        shared.trial_with(
            &format!("executors::they_open_what_was_staged_on_{older}"),
            Job::Java,
            without_a_template,
        ),
        shared.trial_with(
            &format!("executors::they_open_what_was_staged_over_tls_beside_a_sidecar_on_{latest}"),
            Job::Java,
            beside_a_sidecar,
        ),
    ]
}

async fn without_a_template(shared: Arc<SharedCluster>) {
    let cluster = shared.cluster().await;
    cluster.namespace("executors").await;
    let served =
        ServedCluster::open_through(&cluster.plane, cluster.plane.address(), &["--fetch-image", CLOAKROOM]);
    let (submission, _) = run(cluster, "executors", VERSIONS[1], &served, Vec::new()).await;
    ends(&served, &submission).await;
}

/// All of it over TLS, with a certificate that no system trusts, from a server that wants a token for uploads.
async fn beside_a_sidecar(shared: Arc<SharedCluster>) {
    let cluster = shared.cluster().await;
    let namespace = "executors-tls";
    cluster.namespace(namespace).await;
    let sight = Sight::of(cluster, namespace);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let pem = tls::signed_by_ca(folder.path(), &["127.0.0.1"]);
    std::fs::write(path("token"), UPLOAD_TOKEN).unwrap();
    std::fs::write(path("executor.yaml"), template()).unwrap();
    let served = served(cluster, &pem, Path::new(&path("token")));
    let settings = vec![
        ("spark.ssl.kubernetes.resourceStagingServer.enabled", "true".to_owned()),
        ("spark.ssl.kubernetes.resourceStagingServer.clientCertPem", pem.ca.display().to_string()),
        ("spark.kubernetes.cloakroom.uploadTokenFile", path("token")),
        ("spark.kubernetes.executor.podTemplateFile", path("executor.yaml")),
        ("spark.kubernetes.executor.podTemplateContainerName", "worker".to_owned()),
    ];
    let (submission, told) = run(cluster, namespace, VERSIONS[0], &served, settings).await;
    assert!(!told.contains(UPLOAD_TOKEN), "{told}");
    assert_eq!(sight.places(UPLOAD_TOKEN), Vec::<String>::new());
    let certificate = std::fs::read_to_string(&pem.ca).unwrap();
    // Its signature, which it shares with no other one.
    sight.has_only_in_secret(certificate.lines().rev().nth(2).unwrap(), "-init-secret").await;
    let logs = cluster.runner.logs(namespace);
    let sidecars = logs.iter().filter(|(name, log)| name.ends_with(".sidecar") && log == "beside\n");
    assert!(sidecars.count() > 0, "{logs:?}");
    ends(&served, &submission).await;
}

fn served(cluster: &RunningCluster, pem: &tls::Pem, token: &Path) -> ServedCluster {
    let flags = [
        ("--fetch-image", CLOAKROOM),
        ("--tls-cert", pem.cert.to_str().unwrap()),
        ("--tls-key", pem.key.to_str().unwrap()),
        ("--upload-auth", "token"),
        ("--upload-token-file", token.to_str().unwrap()),
    ];
    let flags = flags.map(|(name, value)| [name, value]).concat();
    ServedCluster::open_trusted(&cluster.plane, cluster.plane.address(), &flags, tls::trusting(&pem.ca))
}

/// A user's own, whose first container is not Spark's. JSON is YAML.
fn template() -> String {
    let script = "echo beside; exec sleep 600";
    let template = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {"containers": [
            {"name": "sidecar", "image": MACHINE, "command": ["sh", "-c", script]},
            {"name": "worker"},
        ]},
    });
    template.to_string()
}

/// Runs it, and gives what the submitter said as well.
async fn run(
    cluster: &RunningCluster,
    namespace: &str,
    version: &'static str,
    served: &ServedCluster,
    more: Vec<(&'static str, String)>,
) -> (Submission, String) {
    let settings = vec![
        ("spark.kubernetes.resourceStagingServer.uri", served.server.url("")),
        ("spark.kubernetes.resourceStagingServer.internal.uri", served.server.url("")),
        ("spark.kubernetes.cloakroom.executorStaging", "init".to_owned()),
        ("spark.executor.extraClassPath", "/var/spark-data/spark-jars/*".to_owned()),
        ("spark.serializer", SERIALIZER.to_owned()),
        ("spark.jobs.staged", "/var/spark-data/spark-files".to_owned()),
    ];
    let settings = [settings, more].concat();
    let (submitter, job, namespace) = (Submitter::Cloakroom, Job::Java, namespace.to_owned());
    let submission = Submission { submitter, version, job, namespace, settings };
    let sources = cluster.jobs(version);
    let told = submission.runs_to_its_end(cluster, |file| sources.join(file).display().to_string()).await;
    let log = cluster.runner.log(&submission.namespace, DRIVER, "spark-kubernetes-driver");
    assert_eq!(Job::complaint_of_executors(&log), None, "{log}");
    (submission, told)
}

async fn ends(served: &ServedCluster, submission: &Submission) {
    let tickets = tickets(&served.admin, &submission.namespace).await;
    assert_eq!(tickets.len(), 2);
    goes_with_its_driver(&served.admin, submission, served, &tickets).await;
}
