//! What was staged for a stock spark-submit and for the Spark operator reaches drivers and executors.

use super::Journey;
use super::deploy::SERVER;
use super::jobs::{arguments, home, log, namespace, ticket_of};
use super::transfers::goes_after_the_grace;
use crate::cluster::Cluster;
use crate::images::{SPARK_HOMES, VERSIONS, spark};
use crate::jobs::{EXIT_CODE, Job};
use crate::needs::path;
use crate::operator::as_the_operator;
use crate::shell::{At, Ran, laptop, run};

pub const JOURNEYS: &[Journey] = &[
    Journey("a_stock_spark_submit_4_3_uses_what_was_staged", || spark_submit(VERSIONS[0], Job::Java)),
    Journey("a_stock_spark_submit_4_3_uses_a_staged_script", || spark_submit(VERSIONS[0], Job::Python)),
    Journey("a_stock_spark_submit_3_5_uses_what_was_staged", || spark_submit(VERSIONS[1], Job::Java)),
    Journey("the_pods_of_the_spark_operator_use_what_was_staged", spark_operator),
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
fn stage(namespace: &str, whom: &str, own: &str) -> String {
    format!(
        "KUBECONFIG=stager.kubeconfig cloakroom stage --for {whom} --server {SERVER} --ca-file tls.crt --token-file upload-token \
             --namespace {namespace} --conf spark.driver.memory=512m \
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
    let printed = laptop(&stage(&namespace, "spark-submit", &own)).stdout;
    let ran = submit(version, &format!("{class} {}", printed.replace("\\\n", "")));
    let log = log(&namespace);
    assert_eq!(Job::complaint(&log), None, "{log}\n{}\n{}", ran.stderr, ran.stdout);
    ran.ok();
    ticket_of(&namespace);
    goes_after_the_grace("driver.json", &format!("kubectl delete pod -n {namespace} driver"));
    let again = laptop(&stage(&namespace, "spark-submit", &own));
    assert!(again.stderr.contains("removed from namespace"), "{}", again.stderr);
    let secrets = laptop(&format!("kubectl get secrets -n {namespace} -o name | grep -c init-secret")).stdout;
    assert_eq!(secrets.trim(), "1");
}

/// The operator's own kind, as much of it as its owner needs.
const KIND: &str = r#"{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "sparkapplications.sparkoperator.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubeflow/spark-operator/pull/1298"}},
    "spec": {"group": "sparkoperator.k8s.io", "scope": "Namespaced",
        "names": {"kind": "SparkApplication", "plural": "sparkapplications", "singular": "sparkapplication"},
        "versions": [{"name": "v1beta2", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}"#;

/// The operator hands the fields on to its spark-submit; the application is the owner.
fn spark_operator() {
    let (namespace, version, job) = ("operator", VERSIONS[1], Job::Python);
    self::namespace(namespace);
    let application = r#"{"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "metadata": {"name": "words"}}"#;
    laptop(&format!(
        "kubectl apply -f - <<'END'\n{KIND}\nEND
         kubectl wait --for=condition=Established crd/sparkapplications.sparkoperator.k8s.io --timeout=60s
         kubectl apply -n {namespace} -f - <<'END'\n{application}\nEND"
    ));
    let (class, own) = parts(version, job);
    let printed = laptop(&stage(namespace, "spark-operator --name words", &own)).stdout;
    let given = as_the_operator(&printed, &home());
    let given: Vec<String> = given.iter().map(|word| format!("'{word}'")).collect();
    let ran = submit(version, &format!("{class} {}", given.join(" ")));
    let log = log(namespace);
    assert_eq!(Job::complaint(&log), None, "{log}\n{}\n{}", ran.stderr, ran.stdout);
    ran.ok();
    ticket_of(namespace);
    goes_after_the_grace("driver.json", &format!("kubectl delete sparkapplication -n {namespace} words"));
}
