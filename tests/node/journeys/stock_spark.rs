//! Stock spark-submit by one property, by the words of docs/stock-spark.md: laptop and pods reach the server at a port of the
//! node, by https with a private certificate.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use cloakroom_testing::documentation::block;
use cloakroom_testing::jobs::{EXIT_CODE, Job};
use cloakroom_testing::needs::path;

use super::Journey;
use super::deploy::{answers, server};
use super::jobs::{arguments, home, log, namespace};
use crate::cluster::Cluster;
use crate::images::{SPARK_HOMES, VERSIONS, spark};
use crate::shell::{At, Ran, laptop, run, until};

/// The other two pairs are in `tests/real/stock_spark.rs`, without pods.
pub const JOURNEYS: &[Journey] = &[
    Journey("stock_spark_4_3_needs_one_property_for_a_java_job", || job(VERSIONS[0], Job::Java)),
    Journey("stock_spark_3_5_needs_one_property_for_a_python_job", || job(VERSIONS[1], Job::Python)),
];

const PAGE: &str = "docs/stock-spark.md";
const ADDRESS: &str = "10.99.0.1:31000";

fn namespace_of(version: &str, job: Job) -> String {
    format!("property-{}-{}", job.name(), version.replace('.', "-"))
}

/// The keys of the namespaces. The server starts anew with them.
fn keys() -> &'static BTreeMap<String, String> {
    static KEYS: OnceLock<BTreeMap<String, String>> = OnceLock::new();
    KEYS.get_or_init(|| {
        server();
        let jobs = [(VERSIONS[0], Job::Java), (VERSIONS[1], Job::Python)];
        let namespaces = jobs.into_iter().map(|(version, job)| namespace_of(version, job));
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

fn submit(version: &str, namespace: &str, job: Job) -> Ran {
    let trust =
        block(PAGE, "A private certificate", "keytool").replace("-n spark", &format!("-n {namespace}"));
    let home = path(SPARK_HOMES).join(format!("spark-{version}"));
    run(At::Laptop, &format!(
        "rm -f trust.jks
         {trust}
         export SPARK_HOME={home} KUBECONFIG=submitter.kubeconfig
         {home}/bin/spark-submit --master k8s://{api} --deploy-mode cluster --properties-file {namespace}.conf \
             --conf spark.kubernetes.namespace={namespace} --conf spark.kubernetes.container.image={image} {arguments}",
        home = home.display(),
        api = Cluster::api_server(),
        image = spark(version),
        arguments = arguments(version, job).join(" "),
    ))
}

fn job(version: &str, job: Job) {
    let namespace = namespace_of(version, job);
    self::namespace(&namespace);
    let key = &keys()[&namespace];
    let property = block(PAGE, "A private certificate", "spark.")
        .replace("HOST:PORT", ADDRESS)
        .replace("NAMESPACE", &namespace)
        .replace("token-KEY", key);
    let plain = std::fs::read_to_string(home().join("plain.conf")).unwrap();
    std::fs::write(home().join(format!("{namespace}.conf")), format!("{plain}\n{property}\n")).unwrap();
    let ran = submit(version, &namespace, job);
    let log = log(&namespace);
    assert_eq!(Job::complaint(&log), None, "{log}\n{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("exit code: {EXIT_CODE}")), "{}", ran.stderr);
    let listed = laptop(&format!(
        "kubectl exec -n cloakroom deploy/cloakroom -- cloakroom ls -o json \
             | jq -r '.resources[] | select(.owner.namespace == \"{namespace}\") | .owner.kind + \" \" + .keptBecause'"
    ));
    let expected = "none read-recently\n".repeat(job.files().len());
    assert_eq!(listed.stdout, expected);
    let shown = laptop("kubectl logs -n cloakroom deployment/cloakroom").stdout;
    assert!(shown.contains(&format!("/webhdfs/v1/{namespace}/…/")), "{shown}");
    assert!(!shown.contains("token-") && !shown.contains("spark-upload-"), "{shown}");
}
