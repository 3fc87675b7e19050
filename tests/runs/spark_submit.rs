//! The runner's own proof: what the real spark-submit creates runs on it, executors included.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use libtest_mimic::Trial;
use serde_json::json;

use crate::jobs::{EXIT_CODE, Job};
use crate::stage::{ACCOUNT, JOBS, Stage, VERSIONS, World, image, spark_home};
use crate::support::cluster::{Account, Cluster as _};
use crate::support::wait::until;

/// The name of each driver: there is one in a namespace.
const DRIVER: &str = "driver";

/// The most that a submission takes, in seconds; the test's own bound is a little longer.
const LONGEST_SUBMISSION: &str = "230";

pub fn trials(stage: &Arc<Stage>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for version in VERSIONS {
        for job in [Job::Java, Job::Python] {
            let name = format!("spark_submit_{version}::a_{}_job_runs", job.name());
            trials.push(stage.trial(&name, move |stage| run(stage, version, job)));
        }
    }
    trials
}

/// Jars are in the image; everything else comes by a folder that all sides see.
async fn run(stage: Arc<Stage>, version: &'static str, job: Job) {
    let world = stage.world().await;
    let namespace = format!("{}-{}", job.name(), version.replace('.', "-"));
    let api = world.namespace(&namespace).await;
    let files = world.jobs(version).display().to_string();
    let arguments = job.arguments(&files, &format!("local://{JOBS}"));
    let output = submit(world, version, &namespace, arguments).await;
    let told = || {
        let logs = world.runner.logs(&namespace);
        let logs: Vec<String> = logs.iter().map(|(of, log)| format!("== {of}\n{log}")).collect();
        format!("{}\n{}", String::from_utf8_lossy(&output.stderr), logs.join("\n"))
    };
    let pod = world.ended(&namespace, DRIVER).await;
    let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!(ended["exitCode"], EXIT_CODE, "{}", told());
    let log = world.runner.log(&namespace, DRIVER, "spark-kubernetes-driver");
    assert_eq!(job.complaint(&log), None, "{}", told());
    assert!(
        String::from_utf8_lossy(&output.stderr).contains(&format!("exit code: {EXIT_CODE}")),
        "{}",
        told()
    );
    let executors = format!("/api/v1/namespaces/{namespace}/pods?labelSelector=spark-role%3Dexecutor");
    until("the executors are gone", async || api.get(&executors).await.1["items"] == json!([])).await;
}

/// The spark-submit of a version, as an admin, in cluster mode, for two small executors.
async fn submit(world: &World, version: &str, namespace: &str, arguments: Vec<String>) -> Output {
    let home = spark_home(version);
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("timeout");
    command
        .args(["--kill-after=1", LONGEST_SUBMISSION])
        .arg(home.join("bin/spark-submit"))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("SPARK_HOME", &home)
        .env("HOME", folder.path())
        .env("SPARK_CONF_DIR", folder.path())
        .args(["--master", &format!("k8s://https://{}", world.plane.address()), "--deploy-mode", "cluster"])
        .args(settings(world, version, namespace, &world.shared()))
        .args(arguments)
        .stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    drop(folder);
    output
}

fn settings(world: &World, version: &str, namespace: &str, upload: &Path) -> Vec<String> {
    let ca = world.plane.ca().unwrap().display().to_string();
    let settings = [
        ("spark.kubernetes.namespace", namespace.to_owned()),
        ("spark.kubernetes.container.image", image(version)),
        ("spark.kubernetes.authenticate.driver.serviceAccountName", ACCOUNT.to_owned()),
        ("spark.kubernetes.authenticate.submission.oauthToken", world.plane.token(Account::Admin)),
        ("spark.kubernetes.authenticate.submission.caCertFile", ca),
        ("spark.kubernetes.file.upload.path", format!("file://{}", upload.display())),
        ("spark.kubernetes.driver.pod.name", DRIVER.to_owned()),
        ("spark.driver.memory", "512m".to_owned()),
        ("spark.executor.memory", "512m".to_owned()),
        ("spark.executor.instances", "2".to_owned()),
        ("spark.ui.enabled", "false".to_owned()),
    ];
    settings.into_iter().flat_map(|(key, value)| ["--conf".to_owned(), format!("{key}={value}")]).collect()
}
