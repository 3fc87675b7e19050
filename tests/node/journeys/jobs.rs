//! Applications whose every file is on the laptop, submitted by an account that has the shipped roles and nothing else.

use std::path::PathBuf;
use std::sync::OnceLock;

use cloakroom_testing::documentation::block;
use cloakroom_testing::jobs::{self, EXIT_CODE, Job, SERIALIZER};
use cloakroom_testing::needs::path;
use serde_json::json;

use super::Journey;
use super::deploy::server;
use super::transfers::goes_after_the_grace;
use crate::cluster::{Cluster, cluster};
use crate::example::COUNTED;
use crate::images::{BUSYBOX, SPARK_HOMES, VERSIONS, spark};
use crate::shell::{At, Ran, laptop, run, start, until};
use crate::world;

pub const JOURNEYS: &[Journey] = &[
    Journey("the_local_files_of_the_submit_page_travel", of_the_page),
    Journey("the_port_forward_of_the_submit_page_works", port_forward),
    Journey("a_java_job_of_the_laptop_runs_on_spark_4_3", || submitted(VERSIONS[0], Job::Java)),
    Journey("a_python_job_of_the_laptop_runs_on_spark_4_3", || submitted(VERSIONS[0], Job::Python)),
    Journey("a_java_job_of_the_laptop_runs_on_spark_3_5", || submitted(VERSIONS[1], Job::Java)),
    Journey("a_python_job_of_the_laptop_runs_on_spark_3_5", || submitted(VERSIONS[1], Job::Python)),
    // Invariant: executors get them too if that is configured, also over TLS.
    Journey("executors_open_what_was_staged_themselves_on_spark_3_5", || executors(VERSIONS[1], "")),
    Journey("executors_open_what_was_staged_themselves_beside_a_sidecar", beside_a_sidecar),
];

/// What all submissions here say about the cluster and the server, in a file of properties.
const SETTINGS: &str = "
spark.kubernetes.authenticate.driver.serviceAccountName   spark
spark.kubernetes.resourceStagingServer.uri                https://10.99.0.1:31000
spark.kubernetes.resourceStagingServer.internal.uri       https://cloakroom.cloakroom:10000
spark.ssl.kubernetes.resourceStagingServer.enabled        true
spark.ssl.kubernetes.resourceStagingServer.clientCertPem  tls.crt
spark.kubernetes.cloakroom.uploadTokenFile                upload-token
spark.kubernetes.driver.pod.name                          driver
spark.driver.memory                                       512m
spark.executor.memory                                     512m
spark.executor.instances                                  1
spark.ui.enabled                                          false
";

/// A new namespace with the shipped roles, `settings.conf`, `plain.conf` (without the staging server), and kubeconfigs of the submitter's and the stager's accounts
/// (`submitter.kubeconfig`, `stager.kubeconfig`).
pub fn namespace(name: &str) {
    server();
    with_roles(name);
}

/// The same with the server as it is.
pub fn with_roles(name: &str) {
    static SETTINGS_FILE: OnceLock<()> = OnceLock::new();
    SETTINGS_FILE.get_or_init(|| {
        std::fs::write(home().join("settings.conf"), SETTINGS).unwrap();
        let is_ours = |line: &&str| line.contains("StagingServer") || line.contains("cloakroom");
        let plain: Vec<&str> = SETTINGS.lines().filter(|line| !is_ours(line)).collect();
        std::fs::write(home().join("plain.conf"), plain.join("\n")).unwrap();
    });
    laptop(&format!(
        "kubectl create namespace {name}
         mkdir -p {name}
         cp manifests/submitter/* {name}/
         sed -i 's/^namespace: .*/namespace: {name}/; s/^  # - /  - /' {name}/kustomization.yaml
         kubectl apply -k {name}"
    ));
    for account in ["submitter", "stager"] {
        let token = laptop(&format!("kubectl create token spark-{account} -n {name}")).stdout;
        let kubeconfig = cluster().kubeconfig(token.trim());
        std::fs::rename(kubeconfig, home().join(format!("{account}.kubeconfig"))).unwrap();
    }
}

pub fn home() -> PathBuf {
    world::folder().join("home")
}

/// The words of docs/submit.md, by the admin.
fn of_the_page() {
    server();
    let command = block("docs/submit.md", "Local files", "cloakroom submit");
    laptop(&command.replace("APISERVER", "10.99.0.1").replace("NODE", "10.99.0.1"));
    let log = newest_driver("spark");
    for line in [COUNTED, "data.txt: some data", "app.conf: a setting", "env/page.txt: a page"] {
        assert!(log.contains(line), "no “{line}” in {log}");
    }
}

/// What the driver that was made last says.
pub fn newest_driver(namespace: &str) -> String {
    let newest = "-l spark-role=driver --sort-by=.metadata.creationTimestamp -o name | tail -n 1";
    let pod = laptop(&format!("kubectl get pods -n {namespace} {newest}")).stdout;
    log_at_its_end(namespace, pod.trim())
}

/// The log of a driver, once it has ended. A stock spark-submit may end earlier, and with code 0 even if the driver never began.
/// In that case this fails with the pod's status, the logs of its init-containers and the events.
fn log_at_its_end(namespace: &str, pod: &str) -> String {
    let phase = format!("kubectl get -n {namespace} {pod} -o jsonpath={{.status.phase}}");
    until("the driver has ended", || ["Succeeded", "Failed"].contains(&laptop(&phase).stdout.as_str()));
    let log = run(At::Laptop, &format!("kubectl logs -n {namespace} {pod} -c spark-kubernetes-driver"));
    if log.code == Some(0) {
        return log.stdout;
    }
    let why = format!(
        "kubectl get -n {namespace} {pod} -o jsonpath={{.status}}
         for init in $(kubectl get -n {namespace} {pod} -o jsonpath={{.spec.initContainers[*].name}}); do
             echo && kubectl logs -n {namespace} {pod} -c $init || true
         done
         kubectl get events -n {namespace}"
    );
    panic!("{}{}", log.stderr, run(At::Laptop, &why).stdout);
}

/// Its settings come behind those of the file, and win.
fn port_forward() {
    namespace("port-forward");
    let settings = block("docs/submit.md", "Local files", "--conf");
    let mut forward = start("kubectl port-forward -n cloakroom service/cloakroom 10000");
    until("it is forwarded", || {
        run(At::Laptop, "curl -sf --cacert tls.crt https://localhost:10000/api/v1").code == Some(0)
    });
    let ran = submit("port-forward", VERSIONS[0], Job::Java, &settings.replace("\\\n", ""));
    assert!(forward.is_running());
    assert!(ran.stderr.contains("to https://localhost:10000"), "{}", ran.stderr);
    ran.ended_with(EXIT_CODE);
}

fn submitted(version: &str, job: Job) {
    let namespace = format!("submit-{}-{}", job.name(), version.replace('.', "-"));
    self::namespace(&namespace);
    let ran = submit(&namespace, version, job, "");
    ran.ended_with(EXIT_CODE);
    assert_eq!(Job::complaint(&log(&namespace)), None, "{}", log(&namespace));
    ticket_of(&namespace);
    goes_after_the_grace("driver.json", &format!("kubectl delete pod -n {namespace} driver"));
}

fn executors(version: &str, more: &str) {
    let namespace = format!("executors-{}", version.replace('.', "-"));
    self::namespace(&namespace);
    let more = format!(
        "--conf spark.kubernetes.cloakroom.executorStaging=init --conf spark.serializer='{SERIALIZER}' {more} \
         --conf spark.executor.extraClassPath='/var/spark-data/spark-jars/*' --conf spark.jobs.staged=/var/spark-data/spark-files"
    );
    submit(&namespace, version, Job::Java, &more).ended_with(EXIT_CODE);
    let log = log(&namespace);
    assert_eq!(Job::complaint(&log).or(Job::complaint_of_executors(&log)), None, "{log}");
}

/// A user's own template, whose first container is not Spark's.
fn beside_a_sidecar() {
    let sidecar = json!({"name": "sidecar", "image": BUSYBOX, "command": ["sleep", "600"]});
    let template =
        json!({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [sidecar, {"name": "worker"}]}});
    server();
    std::fs::write(home().join("executor.yaml"), template.to_string()).unwrap();
    let of_the_template = "--conf spark.kubernetes.executor.podTemplateFile=executor.yaml \
         --conf spark.kubernetes.executor.podTemplateContainerName=worker";
    executors(VERSIONS[0], of_the_template);
}

/// `cloakroom submit` with all the files of a job.
pub fn submit(namespace: &str, version: &str, job: Job, more: &str) -> Ran {
    let arguments = arguments(version, job).join(" ");
    run(At::Laptop, &format!("{} {more} {arguments}", submission(namespace, version)))
}

/// `cloakroom submit`, up to the application's own options.
pub fn submission(namespace: &str, version: &str) -> String {
    format!(
        "KUBECONFIG=submitter.kubeconfig cloakroom submit --master k8s://{} --deploy-mode cluster \
         --kubernetes-namespace {namespace} --properties-file settings.conf \
         --conf spark.kubernetes.container.image={} --conf spark.kubernetes.cloakroom.sparkVersion={version}",
        Cluster::api_server(),
        spark(version)
    )
}

/// The files of a job, and what is said of them.
pub fn arguments(version: &str, job: Job) -> Vec<String> {
    let folder = home().join(format!("jobs-{version}"));
    if !folder.exists() {
        jobs::prepare(&path(SPARK_HOMES).join(format!("spark-{version}")), &folder);
    }
    job.arguments(|file| format!("jobs-{version}/{file}"))
}

/// What the driver said.
pub fn log(namespace: &str) -> String {
    log_at_its_end(namespace, "pod/driver")
}

/// The ticket of the bundle with the driver's files, as `driver.json`.
pub fn ticket_of(namespace: &str) {
    laptop(&format!(
        "map=$(kubectl get configmap -n {namespace} -o name | grep init-config)
         secret=$(kubectl get secret -n {namespace} -o name | grep init-secret)
         id=$(kubectl get -n {namespace} $map -o json | jq -r '.data[]' | sed -n 's/.*downloadFilesResourceIdentifier=//p')
         secret=$(kubectl get -n {namespace} $secret -o json | jq -r '.data.downloadSubmittedFilesSecret' | base64 -d)
         jq -n --arg id \"$id\" --arg secret \"$secret\" '{{resourceId: $id, resourceSecret: $secret}}' >driver.json"
    ));
}
