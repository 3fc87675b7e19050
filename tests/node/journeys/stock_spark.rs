//! Stock spark-submit by one property, by the words of docs/stock-spark.md: laptop and pods reach the server at a port of the
//! node, by https with a private certificate. One job is a task of Airflow.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use cloakroom_testing::documentation::block;
use cloakroom_testing::jobs::{EXIT_CODE, Job};
use cloakroom_testing::needs::path;

use serde_json::{Value, json};

use super::Journey;
use super::airflow::{as_worker, worker};
use super::deploy::{answers, server};
use super::jobs::{arguments, home, log, namespace};
use crate::cluster::Cluster;
use crate::images::{SPARK_HOMES, VERSIONS, spark};
use crate::shell::{At, Ran, laptop, run, until};

/// The other two pairs are in `tests/real/stock_spark.rs`, without pods.
pub const JOURNEY: Journey = Journey("stock_spark_4_3_needs_one_property_for_a_java_job", by_hand);
pub const WITH_AIRFLOW: Journey =
    Journey("stock_spark_3_5_needs_one_property_for_a_python_job_of_airflow", by_airflow);

/// A job, and the version of Spark that runs it.
type Pair = (&'static str, Job);
const BY_HAND: Pair = (VERSIONS[0], Job::Java);
const BY_AIRFLOW: Pair = (VERSIONS[1], Job::Python);

/// The second executor comes when the first one has run all tasks.
const LATE_EXECUTOR: &str = "--conf spark.executor.instances=2 --conf spark.scheduler.minRegisteredResourcesRatio=0.5 \
     --conf spark.kubernetes.allocation.batch.size=1 --conf spark.kubernetes.allocation.batch.delay=5s \
     --conf spark.jobs.executors=2";

const PAGE: &str = "docs/stock-spark.md";
const ADDRESS: &str = "10.99.0.1:31000";

fn namespace_of((version, job): Pair) -> String {
    format!("property-{}-{}", job.name(), version.replace('.', "-"))
}

/// The keys of the namespaces. The server starts anew with them.
fn keys() -> &'static BTreeMap<String, String> {
    static KEYS: OnceLock<BTreeMap<String, String>> = OnceLock::new();
    KEYS.get_or_init(|| {
        server();
        let namespaces = [BY_HAND, BY_AIRFLOW].into_iter().map(namespace_of);
        let make = block(PAGE, "For the admin", "key=");
        let key = |namespace: String| {
            let make = make.replace("'spark ", &format!("'{namespace} "));
            let key = laptop(&format!("{make}\nprintf %s \"$key\"")).stdout;
            (namespace, key)
        };
        let keys = namespaces.map(key).collect();
        // The Secret is there already, with the upload token.
        let to_secret = block(PAGE, "For the admin", "kubectl");
        let to_secret = to_secret.replace("--from-file=", "--from-file=upload-token --from-file=");
        laptop(&format!(
            "{to_secret} --dry-run=client -o yaml | kubectl apply -f -
             kubectl set env deployment/cloakroom -n cloakroom CLOAKROOM_WEBHDFS=true \
                 CLOAKROOM_WEBHDFS_KEY_FILE=/etc/cloakroom/tokens/webhdfs-keys
             kubectl rollout status deployment/cloakroom -n cloakroom --timeout=90s"
        ));
        until("the server answers", answers);
        keys
    })
}

/// A namespace whose submitters have the page's properties, in a file.
fn prepared(pair: Pair, name: &str) -> String {
    let namespace = namespace_of(pair);
    self::namespace(&namespace);
    let property = block(PAGE, "A private certificate", "spark.")
        .replace("HOST:PORT", ADDRESS)
        .replace("NAMESPACE", &namespace)
        .replace("token-KEY", &keys()[&namespace]);
    let plain = std::fs::read_to_string(home().join("plain.conf")).unwrap();
    // All of this folder goes into the driver's config map where it is `SPARK_CONF_DIR`.
    let folder = home().join(&namespace).join("conf");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join(name), format!("{plain}\n{property}\n")).unwrap();
    namespace
}

/// The page's commands for a trust store.
fn trust(namespace: &str) -> String {
    let trust =
        block(PAGE, "A private certificate", "keytool").replace("-n spark", &format!("-n {namespace}"));
    format!("rm -f trust.jks\n{trust}")
}

fn by_hand() {
    let (version, job) = BY_HAND;
    let namespace = prepared(BY_HAND, "defaults.conf");
    let ran = run(At::Laptop, &format!(
        "{trust}
         export SPARK_HOME={home} KUBECONFIG=submitter.kubeconfig
         {home}/bin/spark-submit --master k8s://{api} --deploy-mode cluster --properties-file {namespace}/conf/defaults.conf \
             --conf spark.kubernetes.namespace={namespace} --conf spark.kubernetes.container.image={image} \
             {LATE_EXECUTOR} {arguments}",
        trust = trust(&namespace),
        home = spark_home(version),
        api = Cluster::api_server(),
        image = spark(version),
        arguments = arguments(version, job).join(" "),
    ));
    assert!(ran.stderr.contains(&format!("exit code: {EXIT_CODE}")), "{}", ran.stderr);
    let log = log(&namespace);
    for executor in ["seen by 1: ", "seen by 2: "] {
        assert!(log.contains(executor), "no “{executor}” in {log}");
    }
    has_run(&namespace, job, &log, &ran);
}

fn by_airflow() {
    let (version, job) = BY_AIRFLOW;
    let namespace = prepared(BY_AIRFLOW, "spark-defaults.conf");
    as_worker(&namespace);
    arguments(version, job);
    let mut operator = operator(job.arguments(|file| format!("../jobs-{version}/{file}")));
    operator["conf"] = json!({"spark.kubernetes.container.image": spark(version)});
    std::fs::write(home().join(&namespace).join("operator.json"), operator.to_string()).unwrap();
    let ran = run(
        At::Laptop,
        &format!(
            "{trust}
             {worker}
             export SPARK_HOME={home} SPARK_CONF_DIR=$PWD/conf PATH={home}/bin:$PATH
             $RUN \"$(cat operator.json)\" >&2",
            trust = trust(&namespace),
            worker = worker(&namespace),
            home = spark_home(version),
        ),
    );
    // Spark's own code is 0.
    let failed = format!("Kubernetes spark exit code is: {EXIT_CODE}");
    assert!(ran.code == Some(1) && ran.stderr.contains(&failed), "{}", ran.stderr);
    has_run(&namespace, job, &log(&namespace), &ran);
}

/// What the operator is made with; its names are those of spark-submit's options.
fn operator(arguments: Vec<String>) -> Value {
    let mut operator = json!({"name": "report", "application_args": []});
    let mut words = arguments.into_iter();
    while let Some(word) = words.next() {
        match word.strip_prefix("--") {
            Some(option) => operator[option.replace('-', "_")] = words.next().into(),
            None if operator["application"].is_null() => operator["application"] = word.into(),
            None => operator["application_args"].as_array_mut().unwrap().push(word.into()),
        }
    }
    operator
}

fn spark_home(version: &str) -> String {
    path(SPARK_HOMES).join(format!("spark-{version}")).display().to_string()
}

fn has_run(namespace: &str, job: Job, log: &str, ran: &Ran) {
    assert_eq!(Job::complaint(log), None, "{log}\n{}", ran.stderr);
    let listed = laptop(&format!(
        "kubectl exec -n cloakroom deploy/cloakroom -- cloakroom ls -o json \
             | jq -r '.resources[] | select(.owner.namespace == \"{namespace}\") | .owner.kind + \" \" + .keptBecause'"
    ));
    let expected = "none read-recently\n".repeat(job.files().len());
    assert_eq!(listed.stdout, expected);
    let shown = laptop("kubectl logs -n cloakroom deployment/cloakroom").stdout;
    assert!(!shown.contains("token-") && !shown.contains("spark-upload-"), "{shown}");
    each_is_read_by_the_driver(namespace, job, &shown);
}

/// Executors have their files from the driver, so the server is asked for each as often as a driver asks.
fn each_is_read_by_the_driver(namespace: &str, job: Job, shown: &str) {
    let place = format!("/webhdfs/v1/{namespace}/…/");
    let mut times = BTreeMap::<String, usize>::new();
    for line in shown.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let name = line["span"]["path"].as_str().and_then(|path| path.strip_prefix(&place));
        if let Some(name) = name
            && line["span"]["method"] == "GET"
            && line["status"] == 307
        {
            *times.entry(name.to_owned()).or_default() += 1;
        }
    }
    let expected = job.files().into_iter().map(|name| {
        let is_code = [".jar", ".zip", "module.py"].iter().any(|end| name.ends_with(end));
        (name.to_owned(), if is_code { 2 } else { 1 })
    });
    assert_eq!(times, expected.collect(), "{shown}");
}
