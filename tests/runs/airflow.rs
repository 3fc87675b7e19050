//! What Airflow makes of it: the real provider's operator starts a link to this program, under a real API server.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use cloakroom_testing::cluster::{Account, Api, Cluster as _, text};
use cloakroom_testing::documentation::block;
use cloakroom_testing::needs::{Need, path};
use cloakroom_testing::process;
use cloakroom_testing::wait::until;
use libtest_mimic::Trial;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::failures::running::{Ended, Running};
use crate::shared::{ACCOUNT, MACHINE, RunningCluster, SharedCluster};

/// Names a Python environment with Airflow and its providers for Spark and Kubernetes (`.ci/run` makes one).
const AIRFLOW: &str = "CLOAKROOM_TEST_AIRFLOW";

const CONTAINER: &str = "spark-kubernetes-driver";

/// Ends when it is told to, and not within the second in which it is told: the times that Kubernetes gives have whole ones.
const WAITS: &str = "trap 'sleep 2; exit 143' TERM; echo ready; while :; do sleep 0.1; done";

pub fn trials(shared: &Arc<SharedCluster>) -> Vec<Trial> {
    let need = || vec![Need::Below(AIRFLOW, "bin/python".to_owned())];
    let mut trials = vec![
        shared.trial_that_needs("airflow::an_application_that_succeeds_is_a_success", need(), succeeds),
        shared.trial_that_needs("airflow::the_exit_code_of_an_application_is_the_tasks", need(), fails),
        shared.trial_that_needs("airflow::a_driver_without_memory_is_a_failure", need(), out_of_memory),
        shared.trial_that_needs("airflow::a_driver_that_is_deleted_is_a_failure", need(), deleted),
    ];
    for (name, is_tracked) in [("waited_for", false), ("tracked", true)] {
        let name = format!("airflow::a_task_that_is_killed_takes_a_driver_along_that_is_{name}");
        trials.push(shared.trial_that_needs(&name, need(), move |shared| killed(shared, is_tracked)));
    }
    for (name, code) in [("success", 0), ("failure", 3)] {
        let name = format!("airflow::a_driver_that_is_not_waited_for_is_tracked_to_its_{name}");
        trials.push(shared.trial_that_needs(&name, need(), move |shared| tracked(shared, code)));
    }
    trials
}

/// A worker of Airflow: a namespace, and a folder with the link on its path.
struct Worker<'a> {
    cluster: &'a RunningCluster,
    namespace: String,
    api: Api,
    folder: TempDir,
}

impl<'a> Worker<'a> {
    async fn new(cluster: &'a RunningCluster, namespace: &str) -> Self {
        let api = cluster.namespace(namespace).await;
        let worker =
            Self { cluster, namespace: namespace.to_owned(), api, folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(worker.path("bin")).unwrap();
        for name in ["spark-submit", "spark3-submit"] {
            symlink(process::command().get_program(), worker.path("bin").join(name)).unwrap();
        }
        let kubeconfig = cluster.plane.kubeconfig(Account::Admin, cluster.plane.address());
        std::fs::write(worker.path("kubeconfig"), kubeconfig).unwrap();
        worker
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts a task whose driver runs a shell script, with more that its operator is made with.
    fn starts(&self, script: &str, more: &Value) -> Running {
        let template = json!({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [
            {"name": CONTAINER, "command": ["sh", "-c", script]},
        ]}});
        std::fs::write(self.path("driver.yaml"), template.to_string()).unwrap();
        let mut operator = json!({
            "application": "local:///opt/report.jar", "java_class": "org.example.Report", "name": "report",
            "conf": {
                "spark.kubernetes.container.image": MACHINE,
                "spark.kubernetes.authenticate.driver.serviceAccountName": ACCOUNT,
                "spark.kubernetes.driver.podTemplateFile": self.path("driver.yaml"),
                "spark.driver.memory": "512m",
            },
        });
        for (name, value) in more.as_object().unwrap() {
            operator[name] = value.clone();
        }
        let page = block("docs/airflow.md", "The connection", "export AIRFLOW_CONN_SPARK_K8S=");
        let connection = page.split('\'').nth(1).unwrap();
        let address = self.cluster.plane.address().to_string();
        let connection = connection.replace("APISERVER:6443", &address);
        let connection = connection.replace("\"spark\"}}", &format!("\"{}\"}}}}", self.namespace));
        let mut command = Command::new(path(AIRFLOW).join("bin/python"));
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runs/airflow/task.py"));
        command.arg(operator.to_string()).env_clear().stdin(Stdio::null()).current_dir(self.folder.path());
        command.env("HOME", self.folder.path()).env("AIRFLOW_HOME", self.path("airflow"));
        command.env("PATH", format!("{}:/usr/bin:/bin", self.path("bin").display()));
        command.env("AIRFLOW_CONN_SPARK_K8S", connection);
        command.env("KUBECONFIG", self.path("kubeconfig"));
        command.env("AIRFLOW__KUBERNETES_EXECUTOR__IN_CLUSTER", "False");
        command.env("AIRFLOW__KUBERNETES_EXECUTOR__CONFIG_FILE", self.path("kubeconfig"));
        Running::start(command)
    }

    async fn driver(&self) -> Option<String> {
        let pods = format!("/api/v1/namespaces/{}/pods", self.namespace);
        let (_, list) = self.api.get(&pods).await;
        list["items"].as_array()?.first().map(|pod| text(&pod["metadata"]["name"]))
    }

    /// Waits until the driver runs, and gives its name.
    async fn running_driver(&self) -> String {
        let is_ready = async || match self.driver().await {
            Some(driver) => self.cluster.runner.log(&self.namespace, &driver, CONTAINER) == "ready\n",
            None => false,
        };
        until("the driver runs", is_ready).await;
        self.driver().await.unwrap()
    }

    async fn until_the_driver_is_gone(&self) {
        until("the driver is gone", async || self.driver().await.is_none()).await;
    }
}

/// That the provider found the driver by what was said.
fn assert_identified(ended: &Ended, driver: &str) {
    let found = format!("Identified spark driver pod: {driver}");
    assert!(ended.told.contains(&found), "no “{found}”: {}", ended.told);
}

async fn succeeds(shared: Arc<SharedCluster>) {
    let worker = Worker::new(shared.cluster().await, "airflow-success").await;
    let ended = worker.starts("exit 0", &json!({"spark_binary": "spark3-submit"})).end().await;
    assert_eq!(ended.code, 0, "{}", ended.told);
    assert_identified(&ended, &worker.driver().await.unwrap());
    assert!(ended.told.contains("Identified spark application id: spark-"), "{}", ended.told);
}

async fn fails(shared: Arc<SharedCluster>) {
    let worker = Worker::new(shared.cluster().await, "airflow-failure").await;
    let ended = worker.starts("exit 3", &json!({})).end().await;
    assert_eq!(ended.code, 1, "{}", ended.told);
    assert!(ended.told.contains("Error code is: 3. Kubernetes spark exit code is: 3"), "{}", ended.told);
    assert!(ended.told.contains("SparkException: Application failed: its container"), "{}", ended.told);
}

async fn out_of_memory(shared: Arc<SharedCluster>) {
    let cluster = shared.cluster().await;
    let worker = Worker::new(cluster, "airflow-memory").await;
    let running = worker.starts(WAITS, &json!({}));
    cluster.runner.out_of_memory(&worker.namespace, &worker.running_driver().await);
    let ended = running.end().await;
    assert_eq!(ended.code, 1, "{}", ended.told);
    assert!(ended.told.contains("Error code is: 137. Kubernetes spark exit code is: 137"), "{}", ended.told);
}

async fn deleted(shared: Arc<SharedCluster>) {
    let worker = Worker::new(shared.cluster().await, "airflow-deleted").await;
    let running = worker.starts(WAITS, &json!({}));
    let driver = worker.running_driver().await;
    worker.api.delete(&format!("/api/v1/namespaces/{}/pods/{driver}", worker.namespace)).await;
    let ended = running.end().await;
    assert_eq!(ended.code, 1, "{}", ended.told);
    assert!(ended.told.contains("AirflowException: Cannot execute: "), "{}", ended.told);
    assert!(ended.told.contains("deleted before the application had ended"), "{}", ended.told);
}

/// Outside of the namespace `spark` the provider finds the driver by the line with its name alone.
async fn tracked(shared: Arc<SharedCluster>, code: u8) {
    let worker = Worker::new(shared.cluster().await, &format!("airflow-tracked-{code}")).await;
    let running = worker.starts(&format!("exit {code}"), &json!({"track_driver_via_k8s_api": true}));
    running.says("Identified spark driver pod: report-").await;
    let driver = worker.driver().await;
    let ended = running.end().await;
    assert_identified(&ended, &driver.unwrap());
    if code == 0 {
        assert_eq!(ended.code, 0, "{}", ended.told);
        // The provider clears it up.
        worker.until_the_driver_is_gone().await;
    } else {
        assert_eq!(ended.code, 1, "{}", ended.told);
        let failed = format!("failed (phase=Failed exit_code={code} reason=Error)");
        assert!(ended.told.contains(&failed), "{}", ended.told);
    }
}

async fn killed(shared: Arc<SharedCluster>, is_tracked: bool) {
    let worker = Worker::new(shared.cluster().await, &format!("airflow-killed-{is_tracked}")).await;
    let running = worker.starts(WAITS, &json!({"track_driver_via_k8s_api": is_tracked}));
    let driver = worker.running_driver().await;
    running.says(&format!("Identified spark driver pod: {driver}")).await;
    running.signal("TERM");
    let ended = running.end().await;
    assert_eq!(ended.code, 143, "{}", ended.told);
    assert!(ended.told.contains(&format!("Deleted driver pod {driver}")), "{}", ended.told);
    worker.until_the_driver_is_gone().await;
}
