//! Failures of containers: the pod is there, and what was made and staged belongs to it.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};

use cloakroom_testing::documentation::output::Output;
use cloakroom_testing::front::{Front, Turn};
use cloakroom_testing::jobs::Job;
use serde_json::json;

use super::super::jobs::arguments;
use super::case::{Case, REPORT, STAGED};
use super::{Failure, shown};
use crate::cluster::NODE_ADDRESS;
use crate::images::VERSIONS;
use crate::shell::{laptop, until};

const REPLACED: &str = "The server is replaced during the download";

/// Where no server listens. The page has a name in its place.
const NOWHERE: &str = "http://10.99.0.1:1";

const OF_THE_PAGE: &str = "http://cloakroom.spark:10000";

pub const FAILURES: &[Failure] = &[
    ("failure-image", &[shown("The image cannot be pulled", 0)], wrong_image),
    ("failure-init-image", &[shown("The image cannot be pulled", 1)], wrong_init_image),
    ("failure-reach", &[shown("The init-container cannot reach the server", 0)], not_reached),
    ("failure-secret", &[shown("The secret is another application's", 0)], other_secret),
    ("failure-back", &[shown(REPLACED, 0)], replaced),
    ("failure-empty", &[shown(REPLACED, 1)], replaced_empty),
    ("failure-class", &[shown("The main class is not found", 0)], no_class),
    ("failure-memory", &[shown("The driver is killed for its memory", 0)], out_of_memory),
    ("failure-powerless", &[shown("The driver's service account may not make executors", 0)], powerless),
    ("failure-no-executors", &[shown("The quota is exceeded", 2)], no_executors),
];

fn fails(case: &Case, arguments: &str, meanwhile: &str, code: i32) -> String {
    let (ended, told) = case.submit(arguments, meanwhile);
    assert_eq!(ended, code, "{told}");
    told
}

/// Nothing ends by itself: whoever waits reads it, and stops waiting.
fn wrong_image(case: &Case, shown: &[Output]) {
    let arguments = "--conf spark.kubernetes.container.image=apache/spark:4.30 --class org.example.Report local:///opt/report.jar";
    let told = fails(case, arguments, "says 'cannot be pulled'; kill -INT $submit", 130);
    case.is_shown(shown[0], &told);
}

/// As `--kill` does. The secret goes with the pod.
fn wrong_init_image(case: &Case, shown: &[Output]) {
    case.serve("data", "--upload-auth none");
    let arguments = format!("{STAGED} --conf spark.kubernetes.initContainer.image=cloakroom:0.1 {REPORT}");
    let meanwhile = format!(
        "says 'cannot be pulled'
         kubectl get secrets -n {0} -o json | jq -r '.items[].data[] | @base64d' >init.secret
         kubectl delete pod -n {0} report-driver",
        case.name
    );
    let told = fails(case, &arguments, &meanwhile, 1);
    case.is_shown(shown[0], &told);
}

fn not_reached(case: &Case, shown: &[Output]) {
    case.serve("data", "--upload-auth none");
    let time = "--conf spark.kubernetes.mountdependencies.mountTimeout=2s";
    let told = fails(case, &format!("{STAGED} {} {time} {REPORT}", internal(NOWHERE)), "", 1);
    case.is_shown(shown[0], &told.replace(NOWHERE, OF_THE_PAGE));
}

fn internal(url: &str) -> String {
    format!("--conf spark.kubernetes.resourceStagingServer.internal.uri={url}")
}

/// Of two applications of one name, say. No node takes the pod until it has happened.
fn other_secret(case: &Case, shown: &[Output]) {
    case.serve("data", "--upload-auth none");
    let template = case.template("true", json!({"schedulingGates": [{"name": "test/gate"}]}));
    let meanwhile = format!(
        "until kubectl get secrets -n {0} -o name | grep init-secret; do sleep 0.1; done
         kubectl get secrets -n {0} -o json | jq '.items[] | select(.metadata.name | endswith(\"-init-secret\"))' >init.json
         jq -r '.data[] | @base64d' init.json >init.secret
         kubectl delete -f init.json
         jq 'del(.metadata.uid, .metadata.resourceVersion)
             | .data.downloadSubmittedJarsSecret = \"c29tZWJvZHktZWxzZXMtc2VjcmV0LWZvci1hbm90aGVyLWFwcA==\"' init.json |
             kubectl create -f -
         kubectl patch pod -n {0} report-driver --type json -p '[{{\"op\": \"remove\", \"path\": \"/spec/schedulingGates\"}}]'",
        case.name
    );
    let told = fails(case, &format!("{STAGED} {template} {REPORT}"), &meanwhile, 1);
    case.is_shown(shown[0], &told);
}

/// Killed in the middle of the download, and started again on what data there is then.
fn replaced_by(case: &Case, data: &str, code: i32) -> (String, Front) {
    case.serve("data", "--upload-auth none");
    let is_first = AtomicBool::new(true);
    let hold = move |line: &str| {
        let is_held = line.starts_with("GET /api/v1/resources/") && is_first.swap(false, Ordering::Relaxed);
        if is_held { Turn::Hold { after: 1 << 20 } } else { Turn::Pass }
    };
    let front = Front::on(NODE_ADDRESS.parse::<Ipv4Addr>().unwrap(), case.address(), hold);
    let template = case.template("sha256sum </var/spark-data/spark-jars/report.jar", json!({}));
    let arguments = format!("{STAGED} {} {template} {REPORT}", internal(&front.url()));
    let told = std::thread::scope(|scope| {
        let submitting = scope.spawn(|| fails(case, &arguments, "", code));
        until("a download is held", || front.is_holding());
        case.kill_server();
        case.serve(data, "--upload-auth none");
        front.let_go();
        submitting.join().unwrap()
    });
    (told.replace(&front.url(), OF_THE_PAGE), front)
}

fn replaced(case: &Case, shown: &[Output]) {
    let (_, front) = replaced_by(case, "data", 0);
    let (passed_bytes, size_bytes) = (front.passed_bytes(), 3 << 20);
    assert!(passed_bytes < size_bytes + size_bytes / 4, "{passed_bytes} bytes came: it began anew");
    let log = |container: &str| {
        laptop(&format!("kubectl logs -n {} report-driver -c {container}", case.name)).stdout
    };
    case.is_shown(shown[0], &log("spark-init"));
    let sent = laptop(&format!("sha256sum <{}/report.jar", case.name)).stdout;
    assert_eq!(log("spark-kubernetes-driver"), sent);
}

fn replaced_empty(case: &Case, shown: &[Output]) {
    let (told, _) = replaced_by(case, "other-data", 1);
    case.is_shown(shown[0], &told);
}

/// The options and files of a job that would succeed.
fn job() -> String {
    arguments(VERSIONS[0], Job::Java).join(" ").replace("jobs-", "../jobs-")
}

fn no_class(case: &Case, shown: &[Output]) {
    case.serve("data", "--upload-auth none");
    let jar = job().split(' ').rev().nth(1).unwrap().to_owned();
    std::fs::copy(case.path(&jar), case.path("report.jar")).unwrap();
    let told = fails(case, &format!("{STAGED} {REPORT}"), "", 101);
    case.is_shown(shown[0], &told);
}

fn out_of_memory(case: &Case, shown: &[Output]) {
    case.serve("data", "--upload-auth none");
    let told = fails(case, &format!("{STAGED} ../project/tests/node/example/greedy.py"), "", 137);
    case.is_shown(shown[0], &told);
}

fn powerless(case: &Case, shown: &[Output]) {
    case.serve("data", "--upload-auth none");
    let account = "--conf spark.kubernetes.authenticate.driver.serviceAccountName=default";
    let told = fails(case, &format!("{STAGED} {account} {}", job()), "", 1);
    case.is_shown(shown[0], &told);
}

fn no_executors(case: &Case, shown: &[Output]) {
    case.serve("data", "--upload-auth none");
    case.limit("requests.memory", "1Gi", "0");
    let told = fails(case, &format!("{STAGED} {}", job()), "", 11);
    case.is_shown(shown[0], &told);
}
