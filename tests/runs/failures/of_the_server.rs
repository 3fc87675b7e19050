//! Failures between the init-container and the server.

use std::sync::Arc;

use cloakroom_testing::cluster::text;
use cloakroom_testing::port::ReservedPort;
use libtest_mimic::Trial;
use serde_json::json;

use super::page::Block;
use super::running::Ended;
use super::tap::Tap;
use super::tested::TestNamespace;
use super::{NOT_REACHED, OTHER_SECRET, REPLACED, REPLACED_EMPTY};
use crate::shared::SharedCluster;

const INTERNAL_URI: &str = "spark.kubernetes.resourceStagingServer.internal.uri";
const TIMEOUT: &str = "spark.kubernetes.mountdependencies.mountTimeout";

pub fn trials(shared: &Arc<SharedCluster>) -> Vec<Trial> {
    vec![
        shared.trial("failures::a_server_that_the_pod_cannot_reach_is_said", not_reached),
        shared.trial("failures::a_secret_of_another_application_is_said", other_secret),
        shared.trial("failures::a_server_that_is_back_with_its_data_goes_on_with_the_download", replaced),
        shared.trial("failures::a_server_that_is_back_without_its_data_is_said", replaced_empty),
    ]
}

async fn failed(tested: &TestNamespace<'_>, ended: &Ended, block: Block) {
    assert_eq!(ended.code, 1, "{}", ended.told);
    tested.assert_shown(block, &ended.told);
    tested.assert_no_secret_in(&ended.told).await;
    tested.assert_all_goes_with_the_pod().await;
}

async fn not_reached(shared: Arc<SharedCluster>) {
    let tested = TestNamespace::new(shared.cluster().await, "failure-reach").await;
    let nobody = ReservedPort::new();
    let internal = (INTERNAL_URI, format!("http://{}", nobody.address()));
    let timeout = (TIMEOUT, "2s".to_owned());
    let mut ended = tested.submitted(&[tested.staging(), internal, timeout]).await;
    ended.told = ended.told.replace(&nobody.address().to_string(), "cloakroom.spark:10000");
    failed(&tested, &ended, NOT_REACHED).await;
}

/// Of two applications of one name, say. The pod waits for a volume until it has happened.
async fn other_secret(shared: Arc<SharedCluster>) {
    let tested = TestNamespace::new(shared.cluster().await, "failure-secret").await;
    let gate = json!({"name": "gate", "configMap": {"name": "gate"}});
    let template = tested.template("true", json!({"volumes": [gate]}));
    let running =
        tested.submit(&[tested.staging(), template], &["--class", "org.example.Report", "report.jar"]);
    let mut secret = tested.appeared("secrets", "-init-secret").await;
    tested.learn_secrets().await;
    let path = tested.object("secrets", &text(&secret["metadata"]["name"]));
    assert_eq!(tested.api.delete(&path).await.0, 200);
    let kept =
        json!({"name": secret["metadata"]["name"], "ownerReferences": secret["metadata"]["ownerReferences"]});
    secret["metadata"] = kept;
    secret["data"]["downloadSubmittedJarsSecret"] =
        "c29tZWJvZHktZWxzZXMtc2VjcmV0LWZvci1hbm90aGVyLWFwcA==".into();
    let (status, answer) = tested.api.post(&tested.object("secrets", ""), &secret).await;
    assert_eq!(status, 201, "{answer}");
    tested.api.post(&tested.object("configmaps", ""), &json!({"metadata": {"name": "gate"}})).await;
    let ended = running.end().await;
    tested.api.delete(&tested.object("configmaps", "gate")).await;
    failed(&tested, &ended, OTHER_SECRET).await;
}

/// Killed in the middle of the download, and started again on what data there is then.
async fn replaced_by(tested: &mut TestNamespace<'_>, data: &str) -> (Ended, Tap) {
    let tap = Tap::before(tested.server_address());
    let template = tested.template("cksum < /var/spark-data/spark-jars/report.jar", json!({}));
    let settings = [tested.staging(), (INTERNAL_URI, tap.url()), template];
    let running = tested.submit(&settings, &["--class", "org.example.Report", "report.jar"]);
    tap.holds().await;
    tested.kill_server();
    tested.serve(data, &[]);
    tap.let_go();
    let mut ended = running.end().await;
    ended.told = ended.told.replace(&tap.url(), "http://cloakroom.spark:10000");
    (ended, tap)
}

async fn replaced(shared: Arc<SharedCluster>) {
    let mut tested = TestNamespace::new(shared.cluster().await, "failure-back").await;
    let (ended, tap) = replaced_by(&mut tested, "server").await;
    assert_eq!(ended.code, 0, "{}", ended.told);
    let (passed_bytes, size_bytes) = (tap.passed_bytes(), 3 << 20);
    assert!(passed_bytes < size_bytes + size_bytes / 4, "{passed_bytes} bytes came: it began anew");
    let sent = std::process::Command::new("cksum")
        .stdin(std::fs::File::open(tested.path("report.jar")).unwrap())
        .output()
        .unwrap();
    assert_eq!(tested.driver_log().as_bytes(), sent.stdout);
    tested.assert_shown(REPLACED, &tested.init_log());
    tested.assert_no_secret_in(&ended.told).await;
    tested.assert_all_goes_with_the_pod().await;
}

async fn replaced_empty(shared: Arc<SharedCluster>) {
    let mut tested = TestNamespace::new(shared.cluster().await, "failure-empty").await;
    let (ended, _) = replaced_by(&mut tested, "another-server").await;
    failed(&tested, &ended, REPLACED_EMPTY).await;
}
