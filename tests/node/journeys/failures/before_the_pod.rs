//! Failures that come before the pod is there for good: nothing is left of anything.

use cloakroom_testing::documentation::output::Output;
use serde_json::json;

use super::case::{Case, REPORT, STAGED};
use super::{Failure, shown};
use crate::images::{BUSYBOX, CLOAKROOM};
use crate::shell::laptop;

const NOT_FROM_HERE: &str = "The server cannot be reached from here";
const REFUSED: &str = "The upload is refused";
const QUOTA: &str = "The quota is exceeded";

const TRUSTED: &str = "--conf spark.ssl.kubernetes.resourceStagingServer.enabled=true \
     --conf spark.ssl.kubernetes.resourceStagingServer.clientCertPem=ca.pem";

/// What an upload token, right or wrong, has in it.
const SECRET_MARK: &str = "a-token-that-nobody-may-see";

pub const FAILURES: &[Failure] = &[
    ("failure-no-server", &[shown("No staging server", 0), shown("No staging server", 1)], no_server),
    ("failure-no-connection", &[shown(NOT_FROM_HERE, 0), shown(NOT_FROM_HERE, 1)], no_connection),
    ("failure-no-trust", &[shown("The server's certificate is not trusted", 0)], no_trust),
    ("failure-too-large", &[shown(REFUSED, 0)], |case, shown| {
        refused(case, "--max-resource-size 1MiB", shown)
    }),
    ("failure-no-room", &[shown(REFUSED, 1)], |case, shown| refused(case, "--max-total-size 1MiB", shown)),
    ("failure-no-disk", &[shown(REFUSED, 2)], |case, shown| refused(case, "--min-free-space 1024TiB", shown)),
    ("failure-no-token", &[shown(REFUSED, 3), shown(REFUSED, 4)], no_token),
    ("failure-no-right", &[shown(REFUSED, 5)], no_right),
    ("failure-much-memory", &[shown(QUOTA, 0)], much_memory),
    ("failure-many-maps", &[shown(QUOTA, 1)], many_maps),
    ("failure-no-account", &[shown("The driver's service account may not make executors", 1)], no_account),
];

/// Without the Service that the deployed server has.
fn no_server(case: &Case, shown: &[Output]) {
    std::fs::create_dir(case.path("lib")).unwrap();
    std::fs::write(case.path("lib/dep.jar"), "a jar").unwrap();
    laptop(
        "kubectl get service cloakroom -n cloakroom -o json | jq 'del(.metadata.uid, .metadata.resourceVersion)' >service.json
         kubectl delete service cloakroom -n cloakroom",
    );
    let jars = case.submit("--jars lib/dep.jar --class org.example.Report report.jar", "");
    let application = case.submit(REPORT, "");
    laptop("kubectl apply -f service.json");
    for ((code, told), block) in [jars, application].into_iter().zip(shown) {
        assert_eq!(code, 1, "{told}");
        case.is_shown(*block, &told);
        case.nothing_is_left();
    }
}

fn no_connection(case: &Case, shown: &[Output]) {
    let named = format!("--conf spark.kubernetes.initContainer.image={CLOAKROOM}");
    for (more, block) in ["", &named].into_iter().zip(shown) {
        let time = "--conf spark.kubernetes.cloakroom.retryTimeout=2s";
        let (code, told) = case.submit(&format!("{STAGED} {time} {more} {REPORT}"), "");
        assert_eq!(code, 1, "{told}");
        // The page shows the time that it takes without the setting.
        case.is_shown(*block, &told.replace("up to 2s", "up to 30s").replace("for 2s", "for 30s"));
        case.nothing_is_left();
    }
}

fn no_trust(case: &Case, shown: &[Output]) {
    let staged = case.serve_https("--upload-auth none");
    case.refused(&format!("{staged} {REPORT}"), shown[0]);
}

fn refused(case: &Case, flags: &str, shown: &[Output]) {
    case.serve("data", &format!("--upload-auth none {flags}"));
    case.refused(&format!("{STAGED} {REPORT}"), shown[0]);
}

fn no_token(case: &Case, shown: &[Output]) {
    std::fs::write(case.path("right.secret"), format!("{SECRET_MARK}-the-right-one\n")).unwrap();
    std::fs::write(case.path("wrong.secret"), format!("{SECRET_MARK}-another-one\n")).unwrap();
    let flags = "--upload-auth token --upload-token-file right.secret";
    case.serve("data", flags);
    case.refused(&format!("{STAGED} {REPORT}"), shown[0]);
    case.kill_server();
    let staged = case.serve_https(flags);
    case.refused(&format!("{staged} {TRUSTED} {} {REPORT}", token("wrong.secret")), shown[1]);
}

fn token(file: &str) -> String {
    format!("--conf spark.kubernetes.cloakroom.uploadTokenFile={file}")
}

/// The server asks the API server about the token of an account that may do nothing here.
fn no_right(case: &Case, shown: &[Output]) {
    let name = case.name;
    laptop(&format!(
        "kubectl create token default -n {name} --audience cloakroom.cloakroom >{name}/default.secret; echo >>{name}/default.secret"
    ));
    let staged = case.serve_https("--upload-auth kubernetes");
    case.refused(&format!("{staged} {TRUSTED} {} {REPORT}", token("default.secret")), shown[0]);
}

/// A pod that no node takes has a part of the quota.
fn much_memory(case: &Case, shown: &[Output]) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other"},
        "spec": {"nodeSelector": {"none": "such"}, "containers": [
            {"name": "main", "image": BUSYBOX, "resources": {"requests": {"memory": "1536Mi"}}},
        ]},
    });
    laptop(&format!("kubectl apply -n {} -f - <<'END'\n{pod}\nEND", case.name));
    case.limit("requests.memory", "2Gi", "1536Mi");
    case.serve("data", "--upload-auth none");
    case.refused(&format!("{STAGED} {REPORT}"), shown[0]);
}

fn many_maps(case: &Case, shown: &[Output]) {
    let name = case.name;
    laptop(&format!("for map in 1 2 3 4 5 6 7 8 9; do kubectl create configmap other-$map -n {name}; done"));
    case.limit("configmaps", "10", "10");
    case.serve("data", "--upload-auth none");
    case.refused(&format!("{STAGED} {REPORT}"), shown[0]);
}

fn no_account(case: &Case, shown: &[Output]) {
    case.serve("data", "--upload-auth none");
    let account = "--conf spark.kubernetes.authenticate.driver.serviceAccountName=runner";
    case.refused(&format!("{STAGED} {account} {REPORT}"), shown[0]);
}
