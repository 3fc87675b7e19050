//! Failures between the init-container and the server.

use std::sync::Arc;

use cloakroom_testing::cluster::text;
use cloakroom_testing::port::ReservedPort;
use libtest_mimic::Trial;
use serde_json::json;

use super::page::Block;
use super::place::Place;
use super::running::Ended;
use super::tap::Tap;
use super::{NOT_REACHED, OTHER_SECRET, REPLACED, REPLACED_EMPTY};
use crate::stage::Stage;

const INTERNAL_URI: &str = "spark.kubernetes.resourceStagingServer.internal.uri";
const TIMEOUT: &str = "spark.kubernetes.mountdependencies.mountTimeout";

pub fn trials(stage: &Arc<Stage>) -> Vec<Trial> {
    vec![
        stage.trial("failures::a_server_that_the_pod_cannot_reach_is_said", not_reached),
        stage.trial("failures::a_secret_of_another_application_is_said", other_secret),
        stage.trial("failures::a_server_that_is_back_with_its_data_goes_on_with_the_download", replaced),
        stage.trial("failures::a_server_that_is_back_without_its_data_is_said", replaced_empty),
    ]
}

async fn failed(place: &Place<'_>, ended: &Ended, block: Block) {
    assert_eq!(ended.code, 1, "{}", ended.told);
    place.assert_shown(block, &ended.told);
    place.assert_no_secret_in(&ended.told).await;
    place.assert_all_goes_with_the_pod().await;
}

async fn not_reached(stage: Arc<Stage>) {
    let place = Place::new(stage.world().await, "failure-reach").await;
    let nobody = ReservedPort::new();
    let internal = (INTERNAL_URI, format!("http://{}", nobody.address()));
    let timeout = (TIMEOUT, "2s".to_owned());
    let mut ended = place.submitted(&[place.staging(), internal, timeout]).await;
    ended.told = ended.told.replace(&nobody.address().to_string(), "cloakroom.spark:10000");
    failed(&place, &ended, NOT_REACHED).await;
}

/// Of two applications of one name, say. The pod waits for a volume until it has happened.
async fn other_secret(stage: Arc<Stage>) {
    let place = Place::new(stage.world().await, "failure-secret").await;
    let gate = json!({"name": "gate", "configMap": {"name": "gate"}});
    let template = place.template("true", json!({"volumes": [gate]}));
    let running =
        place.submit(&[place.staging(), template], &["--class", "org.example.Report", "report.jar"]);
    let mut secret = place.appeared("secrets", "-init-secret").await;
    place.learn_secrets().await;
    let path = place.object("secrets", &text(&secret["metadata"]["name"]));
    assert_eq!(place.api.delete(&path).await.0, 200);
    let kept =
        json!({"name": secret["metadata"]["name"], "ownerReferences": secret["metadata"]["ownerReferences"]});
    secret["metadata"] = kept;
    secret["data"]["downloadSubmittedJarsSecret"] =
        "c29tZWJvZHktZWxzZXMtc2VjcmV0LWZvci1hbm90aGVyLWFwcA==".into();
    let (status, answer) = place.api.post(&place.object("secrets", ""), &secret).await;
    assert_eq!(status, 201, "{answer}");
    place.api.post(&place.object("configmaps", ""), &json!({"metadata": {"name": "gate"}})).await;
    let ended = running.end().await;
    place.api.delete(&place.object("configmaps", "gate")).await;
    failed(&place, &ended, OTHER_SECRET).await;
}

/// Killed in the middle of the download, and started again on what data there is then.
async fn replaced_by(place: &mut Place<'_>, data: &str) -> (Ended, Tap) {
    let tap = Tap::before(place.server_address());
    let template = place.template("cksum < /var/spark-data/spark-jars/report.jar", json!({}));
    let settings = [place.staging(), (INTERNAL_URI, tap.url()), template];
    let running = place.submit(&settings, &["--class", "org.example.Report", "report.jar"]);
    tap.holds().await;
    place.kill_server();
    place.serve(data, &[]);
    tap.let_go();
    let mut ended = running.end().await;
    ended.told = ended.told.replace(&tap.url(), "http://cloakroom.spark:10000");
    (ended, tap)
}

async fn replaced(stage: Arc<Stage>) {
    let mut place = Place::new(stage.world().await, "failure-back").await;
    let (ended, tap) = replaced_by(&mut place, "server").await;
    assert_eq!(ended.code, 0, "{}", ended.told);
    let (passed_bytes, size_bytes) = (tap.passed_bytes(), 3 << 20);
    assert!(passed_bytes < size_bytes + size_bytes / 4, "{passed_bytes} bytes came: it began anew");
    let sent = std::process::Command::new("cksum")
        .stdin(std::fs::File::open(place.path("report.jar")).unwrap())
        .output()
        .unwrap();
    assert_eq!(place.driver_log().as_bytes(), sent.stdout);
    place.assert_shown(REPLACED, &place.init_log());
    place.assert_no_secret_in(&ended.told).await;
    place.assert_all_goes_with_the_pod().await;
}

async fn replaced_empty(stage: Arc<Stage>) {
    let mut place = Place::new(stage.world().await, "failure-empty").await;
    let (ended, _) = replaced_by(&mut place, "another-server").await;
    failed(&place, &ended, REPLACED_EMPTY).await;
}
