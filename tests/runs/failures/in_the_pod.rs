//! Failures of containers: the pod is there, and what was made and staged belongs to it.

use std::sync::Arc;

use cloakroom_testing::wait::until;
use libtest_mimic::Trial;
use serde_json::json;

use super::tested::{DRIVER, TestNamespace};
use super::{NO_CLASS, OUT_OF_MEMORY, WRONG_IMAGE, WRONG_INIT_IMAGE};
use crate::shared::{SharedCluster, VERSIONS, image};

pub fn trials(shared: &Arc<SharedCluster>) -> Vec<Trial> {
    vec![
        shared.trial("failures::an_image_that_cannot_be_pulled_is_said", wrong_image),
        shared.trial(
            "failures::an_image_of_the_init_container_that_cannot_be_pulled_is_said",
            wrong_init_image,
        ),
        shared.trial("failures::a_class_that_is_not_found_is_said", no_class),
        shared.trial("failures::a_driver_that_was_killed_for_its_memory_is_said", out_of_memory),
    ]
}

/// Nothing ends by itself: whoever waits reads it, and stops waiting.
async fn wrong_image(shared: Arc<SharedCluster>) {
    let tested = TestNamespace::new(shared.cluster().await, "failure-image").await;
    let image = ("spark.kubernetes.container.image", "apache/spark:4.30".to_owned());
    let running = tested.submit(&[image], &["--class", "org.example.Report", "local:///opt/report.jar"]);
    running.says("cannot be pulled").await;
    running.interrupt();
    let ended = running.end().await;
    assert_eq!(ended.code, 130, "{}", ended.told);
    tested.assert_shown(WRONG_IMAGE, &ended.told);
    tested.assert_no_secret_in(&ended.told).await;
    tested.assert_all_goes_with_the_pod().await;
}

async fn wrong_init_image(shared: Arc<SharedCluster>) {
    let tested = TestNamespace::new(shared.cluster().await, "failure-init-image").await;
    let image = ("spark.kubernetes.initContainer.image", "cloakroom:0.1".to_owned());
    let running = tested.submit(&[tested.staging(), image], &["--class", "org.example.Report", "report.jar"]);
    running.says("cannot be pulled").await;
    tested.appeared("secrets", "-init-secret").await;
    tested.learn_secrets().await;
    // As `--kill` does.
    tested.api.delete(&tested.object("pods", DRIVER)).await;
    let ended = running.end().await;
    assert_eq!(ended.code, 1, "{}", ended.told);
    tested.assert_shown(WRONG_INIT_IMAGE, &ended.told);
    tested.assert_no_secret_in(&ended.told).await;
    tested.assert_all_goes_with_the_pod().await;
}

async fn no_class(shared: Arc<SharedCluster>) {
    let tested = TestNamespace::new(shared.cluster().await, "failure-class").await;
    let image = ("spark.kubernetes.container.image", image(VERSIONS[0]));
    let jars = shared.cluster().await.jobs(VERSIONS[0]);
    std::fs::copy(jars.join("words.jar"), tested.path("report.jar")).unwrap();
    let ended = tested.submitted(&[tested.staging(), image]).await;
    assert_eq!(ended.code, 101, "{}", ended.told);
    tested.assert_shown(NO_CLASS, &ended.told);
    tested.assert_no_secret_in(&ended.told).await;
    tested.assert_all_goes_with_the_pod().await;
}

async fn out_of_memory(shared: Arc<SharedCluster>) {
    let cluster = shared.cluster().await;
    let tested = TestNamespace::new(cluster, "failure-memory").await;
    let template = tested.template("trap '' TERM; echo ready; while :; do sleep 0.1; done", json!({}));
    let running =
        tested.submit(&[tested.staging(), template], &["--class", "org.example.Report", "report.jar"]);
    until("the driver runs", async || tested.driver_log() == "ready\n").await;
    cluster.runner.out_of_memory(tested.namespace, DRIVER);
    let ended = running.end().await;
    assert_eq!(ended.code, 137, "{}", ended.told);
    tested.assert_shown(OUT_OF_MEMORY, &ended.told);
    tested.assert_no_secret_in(&ended.told).await;
    tested.assert_all_goes_with_the_pod().await;
}
