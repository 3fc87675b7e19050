//! The runner's own proof: what the real spark-submit creates runs on it, executors included.

use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use libtest_mimic::Trial;

use crate::jobs::{PAGE, WORDS};
use crate::stage::{ACCOUNT, JOBS, Stage, VERSIONS, World, image, spark_home};
use crate::support::cluster::{Account, Cluster as _};

pub fn trials(stage: &Arc<Stage>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for version in VERSIONS {
        let name = |what: &str| format!("spark_submit::{version}::{what}");
        trials.push(stage.trial(&name("a_java_job_runs"), move |stage| java(stage, version)));
    }
    trials
}

/// The spark-submit of a version, as an admin, in cluster mode, for two small executors.
async fn submit(world: &World, version: &str, namespace: &str, args: &[&str]) -> Output {
    let home = spark_home(version);
    let folder = tempfile::tempdir().unwrap();
    let conf = |text: String| ["--conf".to_owned(), text];
    let settings = [
        format!("spark.kubernetes.namespace={namespace}"),
        format!("spark.kubernetes.container.image={}", image(version)),
        format!("spark.kubernetes.authenticate.driver.serviceAccountName={ACCOUNT}"),
        format!("spark.kubernetes.authenticate.submission.oauthToken={}", world.plane.token(Account::Admin)),
        format!(
            "spark.kubernetes.authenticate.submission.caCertFile={}",
            world.plane.ca().unwrap().display()
        ),
        "spark.kubernetes.driver.pod.name=driver".to_owned(),
        "spark.driver.memory=512m".to_owned(),
        "spark.executor.memory=512m".to_owned(),
        "spark.executor.instances=2".to_owned(),
        "spark.ui.enabled=false".to_owned(),
    ];
    let mut command = Command::new("timeout");
    command
        .args(["--kill-after=1", "200"])
        .arg(home.join("bin/spark-submit"))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("SPARK_HOME", &home)
        .env("HOME", folder.path())
        .env("SPARK_CONF_DIR", folder.path())
        .args(["--master", &format!("k8s://https://{}", world.plane.address()), "--deploy-mode", "cluster"])
        .args(settings.map(conf).concat())
        .args(args)
        .stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    drop(folder);
    output
}

async fn java(stage: Arc<Stage>, version: &'static str) {
    let world = stage.world().await;
    let namespace = format!("java-{}", version.replace('.', "-"));
    world.namespace(&namespace).await;
    let jobs = world.jobs(version);
    let given = |name: &str| jobs.join(name).display().to_string();
    let archive = format!("{}#books", given("books.tar.gz"));
    let output = submit(
        world,
        version,
        &namespace,
        &[
            "--conf",
            &format!("spark.kubernetes.file.upload.path=file://{}", world.shared().display()),
            "--class",
            "cloakroom.runs.Words",
            "--jars",
            &format!("local://{JOBS}/greeting.jar"),
            "--files",
            &given("words.txt"),
            "--archives",
            &archive,
            &format!("local://{JOBS}/words.jar"),
            "3",
        ],
    )
    .await;
    let all = || format!("{}\n{:#?}", String::from_utf8_lossy(&output.stderr), world.runner.logs(&namespace));
    let pod = world.ended(&namespace, "driver").await;
    let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!(ended["exitCode"], 3, "{}", all());
    let log = world.runner.log(&namespace, "driver", "spark-kubernetes-driver");
    let expected =
        |number: usize| format!(": hello task {number}, file {WORDS}, beside {WORDS}, archive {PAGE}");
    assert!(log.contains(&format!("seen by driver{}", expected(0))), "{}", all());
    for number in 1..=8 {
        let line = log.lines().find(|line| line.ends_with(&expected(number)));
        assert!(line.is_some_and(|line| !line.starts_with("seen by driver")), "task {number}: {}", all());
    }
}
