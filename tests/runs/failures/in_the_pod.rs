//! Failures of containers: the pod is there, and what was made and staged belongs to it.

use std::sync::Arc;

use cloakroom_testing::wait::until;
use libtest_mimic::Trial;
use serde_json::json;

use super::place::{DRIVER, Place};
use super::{NO_CLASS, OUT_OF_MEMORY, WRONG_IMAGE, WRONG_INIT_IMAGE};
use crate::stage::{Stage, VERSIONS, image};

pub fn trials(stage: &Arc<Stage>) -> Vec<Trial> {
    vec![
        stage.trial("failures::an_image_that_cannot_be_pulled_is_said", wrong_image),
        stage.trial(
            "failures::an_image_of_the_init_container_that_cannot_be_pulled_is_said",
            wrong_init_image,
        ),
        stage.trial("failures::a_class_that_is_not_found_is_said", no_class),
        stage.trial("failures::a_driver_that_was_killed_for_its_memory_is_said", out_of_memory),
    ]
}

/// Nothing ends by itself: whoever waits reads it, and stops waiting.
async fn wrong_image(stage: Arc<Stage>) {
    let place = Place::new(stage.world().await, "failure-image").await;
    let image = ("spark.kubernetes.container.image", "apache/spark:4.30".to_owned());
    let running = place.submit(&[image], &["--class", "org.example.Report", "local:///opt/report.jar"]);
    running.says("cannot be pulled").await;
    running.interrupt();
    let ended = running.end().await;
    assert_eq!(ended.code, 130, "{}", ended.told);
    place.assert_shown(WRONG_IMAGE, &ended.told);
    place.assert_no_secret_in(&ended.told).await;
    place.assert_all_goes_with_the_pod().await;
}

async fn wrong_init_image(stage: Arc<Stage>) {
    let place = Place::new(stage.world().await, "failure-init-image").await;
    let image = ("spark.kubernetes.initContainer.image", "cloakroom:0.1".to_owned());
    let running = place.submit(&[place.staging(), image], &["--class", "org.example.Report", "report.jar"]);
    running.says("cannot be pulled").await;
    place.appeared("secrets", "-init-secret").await;
    place.learn_secrets().await;
    // As `--kill` does.
    place.api.delete(&place.object("pods", DRIVER)).await;
    let ended = running.end().await;
    assert_eq!(ended.code, 1, "{}", ended.told);
    place.assert_shown(WRONG_INIT_IMAGE, &ended.told);
    place.assert_no_secret_in(&ended.told).await;
    place.assert_all_goes_with_the_pod().await;
}

async fn no_class(stage: Arc<Stage>) {
    let place = Place::new(stage.world().await, "failure-class").await;
    let image = ("spark.kubernetes.container.image", image(VERSIONS[0]));
    let jars = stage.world().await.jobs(VERSIONS[0]);
    std::fs::copy(jars.join("words.jar"), place.path("report.jar")).unwrap();
    let ended = place.submitted(&[place.staging(), image]).await;
    assert_eq!(ended.code, 101, "{}", ended.told);
    place.assert_shown(NO_CLASS, &ended.told);
    place.assert_no_secret_in(&ended.told).await;
    place.assert_all_goes_with_the_pod().await;
}

async fn out_of_memory(stage: Arc<Stage>) {
    let world = stage.world().await;
    let place = Place::new(world, "failure-memory").await;
    let template = place.template("trap '' TERM; echo ready; while :; do sleep 0.1; done", json!({}));
    let running =
        place.submit(&[place.staging(), template], &["--class", "org.example.Report", "report.jar"]);
    until("the driver runs", async || place.driver_log() == "ready\n").await;
    world.runner.out_of_memory(place.namespace, DRIVER);
    let ended = running.end().await;
    assert_eq!(ended.code, 137, "{}", ended.told);
    place.assert_shown(OUT_OF_MEMORY, &ended.told);
    place.assert_no_secret_in(&ended.told).await;
    place.assert_all_goes_with_the_pod().await;
}
