//! The Kubeflow Spark Operator itself, built from its sources, runs applications whose files `cloakroom stage -f` has merged in.
//!
//! It is a process of the laptop with an admin's rights, and without its webhook: the merged application needs none.

use std::path::Path;

use cloakroom_testing::documentation::block;
use cloakroom_testing::jobs::Job;
use cloakroom_testing::needs::{Need, path};

use super::Journey;
use super::deploy::server;
use super::external::stage;
use super::jobs::{arguments, home, namespace, ticket_of};
use super::transfers::goes_after_the_grace;
use crate::cluster::{Cluster, NODE_ADDRESS};
use crate::example::COUNTED;
use crate::images::{SPARK_HOMES, VERSIONS, spark};
use crate::shell::{At, Background, laptop, run, start, until};
use crate::world;

pub const JOURNEYS: &[Journey] = &[
    Journey("the_application_of_the_operators_page_runs", of_the_page),
    Journey("the_operator_runs_an_application_by_a_link_to_cloakroom", by_a_link),
];

/// Names the folder of tests/operator/build.
const OPERATOR: &str = "CLOAKROOM_TEST_SPARK_OPERATOR";

/// What the node and the operator need.
pub fn needs() -> Vec<Need> {
    let mut needs = world::needs();
    needs.push(Need::Below(OPERATOR, "spark-operator".to_owned()));
    needs
}

/// An operator for one namespace. Asked to end when dropped.
struct Operator {
    namespace: String,
    _process: Background,
}

impl Operator {
    /// Starts it with the `bin/spark-submit` below a folder.
    fn start(namespace: &str, spark_home: &Path) -> Self {
        let api_server = Cluster::api_server();
        let (host, port) = api_server.trim_start_matches("https://").rsplit_once(':').unwrap();
        // The shell that starts it becomes it, and its id is the operator's.
        let process = start(&format!(
            "export SPARK_HOME={} KUBERNETES_SERVICE_HOST={host} KUBERNETES_SERVICE_PORT={port}
             echo $$ >{namespace}.pid
             exec {}/spark-operator controller start --namespaces {namespace} --health-probe-bind-address 127.0.0.1:0 \
                 >{namespace}.log 2>&1",
            spark_home.display(),
            path(OPERATOR).display(),
        ));
        Self { namespace: namespace.to_owned(), _process: process }
    }

    /// Waits until it has brought the application to an end, and gives the driver's log.
    fn runs(&self, application: &str) -> String {
        let namespace = &self.namespace;
        let state = || {
            let path = "jsonpath={.status.applicationState.state}";
            run(At::Laptop, &format!("kubectl get sparkapplication -n {namespace} {application} -o {path}"))
                .stdout
        };
        until("the application has ended", || {
            let state = state();
            assert!(!state.contains("FAILED"), "{state}: {}", self.log());
            state == "COMPLETED"
        });
        laptop(&format!("kubectl logs -n {namespace} {application}-driver -c spark-kubernetes-driver")).stdout
    }

    fn log(&self) -> String {
        std::fs::read_to_string(home().join(format!("{}.log", self.namespace))).unwrap_or_default()
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        run(At::Laptop, &format!("kill $(cat {}.pid)", self.namespace));
    }
}

fn definitions() {
    laptop(&format!(
        "kubectl apply --server-side --force-conflicts -f {}/definitions",
        path(OPERATOR).display()
    ));
    // `kubectl wait` fails for as long as a definition has no conditions yet.
    until("the kind is served", || {
        run(At::Laptop, "kubectl get sparkapplications -n default").code == Some(0)
    });
}

/// The application and the command of docs/spark-operator.md, in the README's namespace: what is not there yet owns nothing.
fn of_the_page() {
    server();
    definitions();
    let of_the_page = |beginning| block("docs/spark-operator.md", "Stage and apply", beginning);
    std::fs::write(home().join("app.yaml"), of_the_page("apiVersion:")).unwrap();
    let staged = laptop(&of_the_page("export").replace("NODE", NODE_ADDRESS));
    let (_, removal) = staged.stderr.split_once("remove them with “").unwrap();
    let removal = removal.split('”').next().unwrap();
    let operator = Operator::start("spark", &path(SPARK_HOMES).join(format!("spark-{}", VERSIONS[0])));
    let log = operator.runs("words");
    assert!(log.contains(COUNTED), "{log}");
    laptop("kubectl delete sparkapplication -n spark words");
    let removed = laptop(removal).stdout;
    assert_eq!(removed.lines().count(), 2, "{removed}");
}

/// An application that is there already owns its objects, which go with it.
fn by_a_link() {
    let (namespace, version) = ("operator-link", VERSIONS[1]);
    self::namespace(namespace);
    definitions();
    std::fs::write(home().join("python.yaml"), application(namespace, version)).unwrap();
    let stage = stage(namespace, "spark-operator", "-f python.yaml");
    let staged = laptop(&format!("kubectl apply -f python.yaml; {stage} | kubectl apply -f -"));
    assert!(staged.stderr.contains("they belong to the SparkApplication"), "{}", staged.stderr);
    laptop("mkdir -p link/bin && ln -s $(command -v cloakroom) link/bin/spark-submit");
    let log = Operator::start(namespace, &home().join("link")).runs("words");
    assert_eq!(Job::complaint(&log), None, "{log}");
    ticket_of(namespace);
    goes_after_the_grace("driver.json", &format!("kubectl delete sparkapplication -n {namespace} words"));
    until("config map and secret have gone with the application", || {
        let objects = format!("kubectl get secret,configmap -n {namespace} -l cloakroom-application -o name");
        run(At::Laptop, &objects).stdout.is_empty()
    });
}

/// The Python job, with the paths of the laptop.
fn application(namespace: &str, version: &str) -> String {
    let own = arguments(version, Job::Python);
    let [_, py_files, _, files, _, archives, main, _] = own.as_slice() else { panic!("{own:?}") };
    let image = spark(version);
    format!(
        "apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata: {{name: words, namespace: {namespace}}}
spec:
  type: Python
  mode: cluster
  sparkVersion: {version}
  image: {image}
  mainApplicationFile: {main}
  arguments: ['0']
  deps: {{pyFiles: [{py_files}], files: [{files}], archives: ['{archives}']}}
  sparkConf: {{spark.ui.enabled: 'false', spark.kubernetes.cloakroom.sparkVersion: {version}}}
  restartPolicy: {{type: Never}}
  driver: {{memory: 512m, serviceAccount: spark}}
  executor: {{instances: 1, memory: 512m}}
"
    )
}
