//! Applications in cluster mode, from their submission to their end: submitted by the real spark-submit, which proves the
//! runner, and by `cloakroom submit`.

use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use libtest_mimic::Trial;
use serde_json::json;

use crate::jobs::{EXIT_CODE, Job};
use crate::stage::{ACCOUNT, JOBS, Stage, VERSIONS, World, image, spark_home};
use crate::support::cluster::{Account, Cluster as _};
use crate::support::process;
use crate::support::wait::until;

/// The name of each driver: there is one in a namespace.
const DRIVER: &str = "driver";

/// The most that a submission takes, in seconds; the test's own bound is a little longer.
const LONGEST_SUBMISSION: &str = "230";

/// Who submits.
#[derive(Debug, Clone, Copy)]
enum Submitter {
    SparkSubmit,
    Cloakroom,
}

/// An application, and how it comes into the cluster.
#[derive(Debug, Clone, Copy)]
struct Run {
    submitter: Submitter,
    version: &'static str,
    job: Job,
}

pub fn trials(stage: &Arc<Stage>) -> Vec<Trial> {
    let [latest, older] = VERSIONS;
    let run = |submitter, version, job| Run { submitter, version, job };
    let runs = [
        run(Submitter::SparkSubmit, latest, Job::Java),
        run(Submitter::SparkSubmit, older, Job::Python),
        run(Submitter::Cloakroom, latest, Job::Java),
        run(Submitter::Cloakroom, latest, Job::Python),
        run(Submitter::Cloakroom, older, Job::Java),
        run(Submitter::Cloakroom, older, Job::Python),
    ];
    let trial = |run: Run| stage.trial(&run.name(), move |stage| runs_to_its_end(stage, run));
    runs.map(trial).into_iter().collect()
}

/// Jars are in the image; everything else comes by a folder that all sides see.
async fn runs_to_its_end(stage: Arc<Stage>, run: Run) {
    let world = stage.world().await;
    let namespace = run.namespace();
    let api = world.namespace(&namespace).await;
    let output = run.submit(world).await;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let all = || {
        let logs = world.runner.logs(&namespace);
        let logs: Vec<String> = logs.iter().map(|(of, log)| format!("== {of}\n{log}")).collect();
        format!("{told}\n{}", logs.join("\n"))
    };
    assert_eq!(output.status.code(), Some(run.exit_code()), "{}", all());
    let pod = world.ended(&namespace, DRIVER).await;
    let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!(ended["exitCode"], EXIT_CODE, "{}", all());
    let log = world.runner.log(&namespace, DRIVER, "spark-kubernetes-driver");
    assert_eq!(run.job.complaint(&log), None, "{}", all());
    // The lines that schedulers look for.
    for line in [format!("pod name: {DRIVER}"), format!("exit code: {EXIT_CODE}")] {
        assert!(told.contains(&line), "no “{line}”: {}", all());
    }
    let executors = format!("/api/v1/namespaces/{namespace}/pods?labelSelector=spark-role%3Dexecutor");
    until("the executors are gone", async || api.get(&executors).await.1["items"] == json!([])).await;
}

impl Run {
    fn name(self) -> String {
        let submitter = match self.submitter {
            Submitter::SparkSubmit => "spark_submit",
            Submitter::Cloakroom => "cloakroom_submit",
        };
        format!("applications::{submitter}_{}_a_{}_job_runs", self.version, self.job.name())
    }

    fn namespace(self) -> String {
        format!("{:?}-{}-{}", self.submitter, self.version, self.job.name()).to_lowercase().replace('.', "-")
    }

    /// spark-submit succeeds whatever became of the application.
    fn exit_code(self) -> i32 {
        match self.submitter {
            Submitter::SparkSubmit => 0,
            Submitter::Cloakroom => EXIT_CODE,
        }
    }

    /// As an admin, in cluster mode, for two small executors.
    async fn submit(self, world: &World) -> Output {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("timeout");
        command.args(["--kill-after=1", LONGEST_SUBMISSION]).env_clear().env("HOME", folder.path());
        command.env("PATH", std::env::var_os("PATH").unwrap()).stdin(Stdio::null());
        match self.submitter {
            Submitter::SparkSubmit => {
                let home = spark_home(self.version);
                command.arg(home.join("bin/spark-submit"));
                command.env("SPARK_HOME", home).env("SPARK_CONF_DIR", folder.path());
            }
            Submitter::Cloakroom => {
                command.arg(process::command().get_program()).arg("submit");
                let version = format!("spark.kubernetes.cloakroom.sparkVersion={}", self.version);
                command.args(["--conf", &version]);
            }
        }
        let master = format!("k8s://https://{}", world.plane.address());
        command.args(["--master", &master, "--deploy-mode", "cluster"]).args(self.settings(world));
        let files = world.jobs(self.version).display().to_string();
        command.args(self.job.arguments(&files, &format!("local://{JOBS}")));
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        drop(folder);
        output
    }

    fn settings(self, world: &World) -> Vec<String> {
        let ca = world.plane.ca().unwrap().display().to_string();
        let settings = [
            ("spark.kubernetes.namespace", self.namespace()),
            ("spark.kubernetes.container.image", image(self.version)),
            ("spark.kubernetes.authenticate.driver.serviceAccountName", ACCOUNT.to_owned()),
            ("spark.kubernetes.authenticate.submission.oauthToken", world.plane.token(Account::Admin)),
            ("spark.kubernetes.authenticate.submission.caCertFile", ca),
            ("spark.kubernetes.file.upload.path", format!("file://{}", world.shared().display())),
            ("spark.kubernetes.driver.pod.name", DRIVER.to_owned()),
            ("spark.driver.memory", "512m".to_owned()),
            ("spark.executor.memory", "512m".to_owned()),
            ("spark.executor.instances", "2".to_owned()),
            ("spark.ui.enabled", "false".to_owned()),
        ];
        settings
            .into_iter()
            .flat_map(|(key, value)| ["--conf".to_owned(), format!("{key}={value}")])
            .collect()
    }
}
