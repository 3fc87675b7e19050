//! Submissions in cluster mode, to a namespace of their own: by the real spark-submit, or by `cloakroom submit`.

use std::process::{Command, Output, Stdio};

use cloakroom_testing::cluster::{Account, Cluster as _};
use cloakroom_testing::jobs::{EXIT_CODE, Job, SHORT_LIVED_JAVA};
use cloakroom_testing::process;
use cloakroom_testing::wait::until;
use serde_json::json;

use crate::shared::{ACCOUNT, RunningCluster, image, spark_home};

/// The name of the driver's pod.
pub const DRIVER: &str = "driver";

/// The most that a submission takes, in seconds; a test's own bound is a little longer.
const LONGEST: &str = "380";

/// Who submits.
#[derive(Debug, Clone, Copy)]
pub enum Submitter {
    SparkSubmit,
    Cloakroom,
    /// With a kubeconfig in its home, and without a master.
    CloakroomByKubeconfig,
}

/// An application that is submitted.
pub struct Submission {
    pub submitter: Submitter,
    pub version: &'static str,
    pub job: Job,
    pub namespace: String,
    /// Beyond those that all have.
    pub settings: Vec<(&'static str, String)>,
}

impl Submitter {
    pub fn name(self) -> &'static str {
        match self {
            Self::SparkSubmit => "spark_submit",
            Self::Cloakroom => "cloakroom_submit",
            Self::CloakroomByKubeconfig => "cloakroom_submit_by_kubeconfig",
        }
    }

    /// spark-submit succeeds whatever became of the application.
    fn exit_code(self) -> i32 {
        match self {
            Self::SparkSubmit => 0,
            Self::Cloakroom | Self::CloakroomByKubeconfig => EXIT_CODE,
        }
    }
}

impl Submission {
    /// Submits it, with `place` telling where each of its files is, waits for its end, and checks all that is seen of it:
    /// what the driver and the executors say, the exit codes, the submitter's own words. Returns these.
    pub async fn runs_to_its_end(&self, cluster: &RunningCluster, place: impl Fn(&str) -> String) -> String {
        self.runs_with(cluster, self.job.arguments(place)).await
    }

    /// The same with all that is said of the application.
    pub async fn runs_with(&self, cluster: &RunningCluster, arguments: Vec<String>) -> String {
        let output = self.submit(cluster, arguments).await;
        let told = String::from_utf8_lossy(&[&output.stderr[..], &output.stdout].concat()).into_owned();
        let all = || {
            let logs = cluster.runner.logs(&self.namespace);
            let logs: Vec<String> = logs.iter().map(|(of, log)| format!("== {of}\n{log}")).collect();
            format!("{told}\n{}", logs.join("\n"))
        };
        assert_eq!(output.status.code(), Some(self.submitter.exit_code()), "{}", all());
        let pod = cluster.ended(&self.namespace, DRIVER).await;
        let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
        assert_eq!(ended["exitCode"], EXIT_CODE, "{}", all());
        let log = cluster.runner.log(&self.namespace, DRIVER, "spark-kubernetes-driver");
        assert_eq!(Job::complaint(&log), None, "{}", all());
        // The lines that schedulers look for.
        for line in [format!("pod name: {DRIVER}"), format!("exit code: {EXIT_CODE}")] {
            assert!(told.contains(&line), "no “{line}”: {}", all());
        }
        let executors = format!("{}?labelSelector=spark-role%3Dexecutor", self.pods());
        let api = cluster.plane.api(Account::Admin);
        let are_gone = async || api.get(&executors).await.1["items"] == json!([]);
        until("the executors are gone", are_gone).await;
        told
    }

    /// The path of the application's pods.
    pub fn pods(&self) -> String {
        format!("/api/v1/namespaces/{}/pods", self.namespace)
    }

    async fn submit(&self, cluster: &RunningCluster, arguments: Vec<String>) -> Output {
        let folder = tempfile::tempdir().unwrap();
        // `timeout` hands the signal on that tells it of this process's end.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "timeout", "--kill-after=1", LONGEST]);
        command.env_clear().env("HOME", folder.path());
        command.env("PATH", std::env::var_os("PATH").unwrap()).stdin(Stdio::null());
        match self.submitter {
            Submitter::SparkSubmit => {
                let home = spark_home(self.version);
                command.arg(home.join("bin/spark-submit"));
                command.env("SPARK_HOME", home).env("SPARK_CONF_DIR", folder.path());
                command.env("JAVA_TOOL_OPTIONS", SHORT_LIVED_JAVA);
            }
            Submitter::Cloakroom | Submitter::CloakroomByKubeconfig => {
                command.arg(process::command().get_program()).arg("submit");
                let version = format!("spark.kubernetes.cloakroom.sparkVersion={}", self.version);
                command.args(["--conf", &version]);
            }
        }
        let mut settings = self.common(cluster);
        if matches!(self.submitter, Submitter::CloakroomByKubeconfig) {
            let kubeconfig = cluster.plane.kubeconfig(Account::Admin, cluster.plane.address());
            std::fs::create_dir(folder.path().join(".kube")).unwrap();
            std::fs::write(folder.path().join(".kube/config"), kubeconfig).unwrap();
        } else {
            command.args(["--master", &format!("k8s://https://{}", cluster.plane.address())]);
            settings.extend(credentials(cluster));
        }
        command.args(["--deploy-mode", "cluster"]);
        for (key, value) in settings.iter().chain(&self.settings) {
            command.args(["--conf", &format!("{key}={value}")]);
        }
        command.args(arguments);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        drop(folder);
        output
    }

    /// Two small executors work.
    fn common(&self, cluster: &RunningCluster) -> Vec<(&'static str, String)> {
        vec![
            ("spark.kubernetes.namespace", self.namespace.clone()),
            ("spark.kubernetes.container.image", image(self.version)),
            ("spark.kubernetes.authenticate.driver.serviceAccountName", ACCOUNT.to_owned()),
            ("spark.kubernetes.file.upload.path", format!("file://{}", cluster.shared().display())),
            ("spark.kubernetes.driver.pod.name", DRIVER.to_owned()),
            ("spark.driver.memory", "512m".to_owned()),
            ("spark.executor.memory", "512m".to_owned()),
            ("spark.executor.instances", "2".to_owned()),
            ("spark.ui.enabled", "false".to_owned()),
        ]
    }
}

/// An admin submits.
fn credentials(cluster: &RunningCluster) -> [(&'static str, String); 2] {
    let ca = cluster.plane.ca().unwrap().display().to_string();
    [
        ("spark.kubernetes.authenticate.submission.oauthToken", cluster.plane.token(Account::Admin)),
        ("spark.kubernetes.authenticate.submission.caCertFile", ca),
    ]
}
