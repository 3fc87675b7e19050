//! What was staged for a stock spark-submit reaches drivers and executors.

use cloakroom_testing::documentation::block;
use cloakroom_testing::jobs::{EXIT_CODE, Job};
use cloakroom_testing::needs::path;

use super::Journey;
use super::deploy::{SERVER, server};
use super::jobs::{arguments, log, namespace, newest_driver, ticket_of};
use super::transfers::goes_after_the_grace;
use crate::cluster::{Cluster, NODE_ADDRESS};
use crate::example::COUNTED;
use crate::images::{SPARK_HOMES, VERSIONS, spark};
use crate::shell::{At, Ran, laptop, run};

pub const JOURNEYS: &[Journey] = &[
    Journey("a_stock_spark_submit_4_3_uses_what_was_staged", || spark_submit(VERSIONS[0], Job::Java)),
    Journey("a_stock_spark_submit_4_3_uses_a_staged_script", || spark_submit(VERSIONS[0], Job::Python)),
    Journey("a_stock_spark_submit_3_5_uses_what_was_staged", || spark_submit(VERSIONS[1], Job::Java)),
    Journey("the_lines_of_the_clients_page_hand_files_over", of_the_page),
];

/// The class of a job, its files and what is said of them, and the code that it ends with.
fn parts(version: &str, job: Job) -> (String, String) {
    let mut own = arguments(version, job);
    assert_eq!(own.pop(), Some(EXIT_CODE.to_string()));
    let class =
        if matches!(job, Job::Java) { own.drain(..2).collect::<Vec<_>>().join(" ") } else { String::new() };
    (class, own.join(" "))
}

/// `cloakroom stage --for …`, by the account that has the stager's role only.
pub fn stage(namespace: &str, whom: &str, own: &str) -> String {
    format!(
        "KUBECONFIG=stager.kubeconfig cloakroom stage --for {whom} --server {SERVER} --ca-file tls.crt --token-file upload-token \
             --namespace {namespace} \
             --conf spark.kubernetes.resourceStagingServer.internal.uri=https://cloakroom.cloakroom:10000 {own}"
    )
}

/// The real spark-submit, with what the shell makes of `given`.
fn submit(version: &str, given: &str) -> Ran {
    let home = path(SPARK_HOMES).join(format!("spark-{version}"));
    run(At::Laptop, &format!(
        "export SPARK_HOME={home} KUBECONFIG=submitter.kubeconfig
         eval \"{home}/bin/spark-submit --master k8s://{api} --deploy-mode cluster --properties-file plain.conf \
             --conf spark.kubernetes.container.image={image} {given} {EXIT_CODE}\"",
        home = home.display(),
        api = Cluster::api_server(),
        image = spark(version),
    ))
}

/// As docs/clients.md has it. The next run finds what this one left.
fn spark_submit(version: &str, job: Job) {
    let namespace = format!("stock-{}-{}", job.name(), version.replace('.', "-"));
    self::namespace(&namespace);
    let (class, own) = parts(version, job);
    let printed =
        laptop(&stage(&namespace, "spark-submit", &format!("--conf spark.driver.memory=512m {own}"))).stdout;
    let ran = submit(version, &format!("{class} {}", printed.trim_end().replace("\\\n", "")));
    ran.ok();
    assert_eq!(Job::complaint(&log(&namespace)), None, "{}", log(&namespace));
    ticket_of(&namespace);
    goes_after_the_grace("driver.json", &format!("kubectl delete pod -n {namespace} driver"));
    let again = laptop(&stage(&namespace, "spark-submit", &format!("--conf spark.driver.memory=512m {own}")));
    assert!(again.stderr.contains("removed from namespace"), "{}", again.stderr);
    let secrets = laptop(&format!("kubectl get secrets -n {namespace} -o name | grep -c init-secret")).stdout;
    assert_eq!(secrets.trim(), "1");
}

/// The environment and the script of docs/clients.md, by the admin, in the README's namespace.
fn of_the_page() {
    server();
    let of_the_page =
        |beginning| block("docs/clients.md", "For spark-submit and for the Spark operator", beginning);
    let script = format!("{}\n{}", of_the_page("export CLOAKROOM_SERVER="), of_the_page("args=$("));
    let home = path(SPARK_HOMES).join(format!("spark-{}", VERSIONS[0]));
    let script = script.replace("NODE", NODE_ADDRESS).replace("APISERVER", NODE_ADDRESS);
    laptop(&format!("export SPARK_HOME={home} PATH={home}/bin:$PATH\n{script}", home = home.display()));
    let log = newest_driver("spark");
    assert!(log.contains(COUNTED), "{log}");
}
