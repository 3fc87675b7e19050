//! What Airflow makes of it: the real provider's operator starts a link to this program, as a worker on the laptop does.

use cloakroom_testing::documentation::block;
use cloakroom_testing::needs::{Need, path};
use serde_json::json;

use super::deploy::server;
use super::jobs::{home, with_roles};
use super::{Journey, secrets};
use crate::cluster::NODE_ADDRESS;
use crate::images::BUSYBOX;
use crate::shell::{At, Ran, laptop, run, side_by_side, until};
use crate::world;

pub const JOURNEY: Journey = Journey("each_way_in_which_a_task_of_airflow_ends_is_that_of_its_driver", tasks);

/// Names a Python environment with Airflow and its providers for Spark and Kubernetes (`.ci/run` makes one).
const AIRFLOW: &str = "CLOAKROOM_TEST_AIRFLOW";

/// The file of tests/node/example that runs one task.
const TASK: &str = "project/tests/node/example/airflow_task.py";

/// Ends when it is told to, and not within the second in which it is told: the times that Kubernetes gives have whole ones.
const WAITS: &str = "trap 'sleep 2; exit 143' TERM; echo ready; while :; do sleep 0.1; done";

pub fn needs() -> Vec<Need> {
    let mut needs = world::needs();
    needs.push(Need::Below(AIRFLOW, "bin/python".to_owned()));
    needs
}

/// A task, in a namespace of its own.
struct Task {
    namespace: &'static str,
    /// What the driver runs.
    script: &'static str,
    /// More that the operator is made with.
    more: &'static str,
    /// Done once `$driver` runs and the provider knows it. The task is the process `$task`.
    then: &'static str,
    code: i32,
    says: &'static [&'static str],
}

const NO_MORE: &str = "{}";
const OTHER_LINK: &str = r#"{"spark_binary": "spark3-submit"}"#;
const TRACKED: &str = r#"{"track_driver_via_k8s_api": true}"#;

const DELETE: &str = "kubectl delete $driver --wait=false";
const KILL: &str = "kill -TERM $task";

const KNOWN: &str = "Identified spark driver pod: report-";
const ID: &str = "Identified spark application id: spark-";
const FAILED: &[&str] = &[
    "Error code is: 3. Kubernetes spark exit code is: 3",
    "SparkException: Application failed: its container",
];
const OUT_OF_MEMORY: &[&str] = &["Error code is: 137. Kubernetes spark exit code is: 137", "OOMKilled"];
const GONE: &[&str] = &["AirflowException: Cannot execute: ", "deleted before the application had ended"];
const TRACKED_FAILED: &[&str] = &[KNOWN, "failed (phase=Failed exit_code=3 reason=Error)"];
const DELETED: &[&str] = &["Deleted driver pod report-"];

const TASKS: [Task; 8] = [
    task("airflow-success", "exit 0", OTHER_LINK, "", 0, &[KNOWN, ID]),
    task("airflow-failure", "exit 3", NO_MORE, "", 1, FAILED),
    task("airflow-memory", "exec tail /dev/zero", NO_MORE, "", 1, OUT_OF_MEMORY),
    task("airflow-deleted", WAITS, NO_MORE, DELETE, 1, GONE),
    task("airflow-killed", WAITS, NO_MORE, KILL, 143, DELETED),
    task("airflow-tracked-success", "exit 0", TRACKED, "", 0, &[KNOWN]),
    task("airflow-tracked-failure", "exit 3", TRACKED, "", 1, TRACKED_FAILED),
    task("airflow-tracked-killed", WAITS, TRACKED, KILL, 143, DELETED),
];

const fn task(
    namespace: &'static str,
    script: &'static str,
    more: &'static str,
    then: &'static str,
    code: i32,
    says: &'static [&'static str],
) -> Task {
    Task { namespace, script, more, then, code, says }
}

/// Side by side, by the accounts of the manifests. Outside of the namespace `spark` the provider finds a driver by the line with its
/// name alone.
fn tasks() {
    server();
    laptop(
        "mkdir links; for name in spark-submit spark3-submit; do ln -s $(command -v cloakroom) links/$name; done",
    );
    for Task { namespace, .. } in &TASKS {
        with_roles(namespace);
        as_worker(namespace);
    }
    side_by_side(&TASKS, |task| task.namespace, Task::ends);
}

impl Task {
    fn ends(&self) {
        let ran = self.run();
        let told = ran.stdout.as_str();
        secrets::keep(self.namespace, told);
        assert_eq!(ran.code, Some(self.code), "{told}{}", ran.stderr);
        for words in self.says {
            assert!(told.contains(words), "no “{words}” in {told}");
        }
        let drivers = format!("kubectl get pods -n {} -o name", self.namespace);
        // The provider removes the driver of a task that was killed, and one that it tracked to its success.
        if !self.then.is_empty() || (self.more == TRACKED && self.code == 0) {
            until("the driver is gone", || laptop(&drivers).stdout.is_empty());
        } else {
            let driver = laptop(&drivers).stdout.trim().replace("pod/", "");
            let known = format!("Identified spark driver pod: {driver}");
            assert!(told.contains(&known), "no “{known}” in {told}");
        }
    }

    fn run(&self) -> Ran {
        let folder = home().join(self.namespace);
        let template = json!({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [
            {"name": "spark-kubernetes-driver", "command": ["sh", "-c", self.script]},
        ]}});
        std::fs::write(folder.join("driver.yaml"), template.to_string()).unwrap();
        let mut operator = json!({
            "application": "local:///opt/report.jar", "java_class": "org.example.Report", "name": "report",
            "conf": {
                "spark.kubernetes.container.image": BUSYBOX,
                "spark.kubernetes.authenticate.driver.serviceAccountName": "spark",
                "spark.kubernetes.driver.podTemplateFile": folder.join("driver.yaml"),
                "spark.driver.memory": "512m",
            },
        });
        let more: serde_json::Value = serde_json::from_str(self.more).unwrap();
        operator.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        std::fs::write(folder.join("operator.json"), operator.to_string()).unwrap();
        let meanwhile = match self.then {
            "" => String::new(),
            then => format!(
                "until driver=$(kubectl get pods -o name) && test $(kubectl logs $driver || true) = ready; do sleep 0.2; done
                 until grep -q \"{KNOWN}\" told; do sleep 0.2; kill -0 $task; done
                 {then}"
            ),
        };
        run(
            At::Laptop,
            &format!(
                "export PATH=$PWD/links:$PATH
                 {worker}
                 $RUN \"$(cat operator.json)\" >told 2>&1 & task=$!
                 kubectl() {{ command kubectl --kubeconfig ../../admin.kubeconfig -n {namespace} \"$@\"; }}
                 {{
                     :
                     {meanwhile}
                 }} >&2
                 wait $task && code=0 || code=$?
                 cat told
                 exit $code",
                namespace = self.namespace,
                worker = worker(self.namespace),
            ),
        )
    }
}

/// The environment of a worker, in the folder of a namespace. `$RUN` runs the task that its argument describes.
pub fn worker(namespace: &str) -> String {
    let connection = block("docs/airflow.md", "The connection", "export AIRFLOW_CONN_SPARK_K8S=")
        .replace("APISERVER", NODE_ADDRESS)
        .replace("\"spark\"}}", &format!("\"{namespace}\"}}}}"));
    format!(
        "RUN=\"{python} $PWD/{TASK}\"
         cd {namespace}
         export HOME=$PWD AIRFLOW_HOME=$PWD/airflow KUBECONFIG=$PWD/kubeconfig
         export AIRFLOW__KUBERNETES_EXECUTOR__IN_CLUSTER=False AIRFLOW__KUBERNETES_EXECUTOR__CONFIG_FILE=$KUBECONFIG
         {connection}",
        python = path(AIRFLOW).join("bin/python").display(),
    )
}

/// The account of the submitter, which is made with its namespace, becomes the worker's.
pub fn as_worker(namespace: &str) {
    std::fs::rename(home().join("submitter.kubeconfig"), home().join(namespace).join("kubeconfig")).unwrap();
}
