//! Failures of real drivers: Spark starts, and may not do, or has no room for, what it has to do.

use std::sync::Arc;

use cloakroom_testing::jobs::Job;
use libtest_mimic::Trial;

use super::before_the_pod::limit;
use super::place::Place;
use super::running::Ended;
use super::{NO_ROOM_FOR_EXECUTORS, POWERLESS};
use crate::stage::{Stage, VERSIONS, World, image};

pub fn trials(stage: &Arc<Stage>) -> Vec<Trial> {
    vec![
        stage.trial("failures::a_driver_whose_account_may_not_make_executors_is_said_twice", powerless),
        stage.trial("failures::a_quota_without_room_for_any_executor_is_named", no_room),
    ]
}

/// Submits a job that would succeed.
async fn submitted(place: &Place<'_>, world: &World, settings: &[(&str, String)]) -> Ended {
    let image = ("spark.kubernetes.container.image", image(VERSIONS[0]));
    let settings = [&[place.staging(), image], settings].concat();
    let jobs = world.jobs(VERSIONS[0]);
    let arguments = Job::Java.arguments(|file| jobs.join(file).display().to_string());
    place.submit(&settings, &arguments.iter().map(String::as_str).collect::<Vec<_>>()).end().await
}

async fn powerless(stage: Arc<Stage>) {
    let world = stage.world().await;
    let place = Place::new(world, "failure-powerless").await;
    let account = ("spark.kubernetes.authenticate.driver.serviceAccountName", "default".to_owned());
    let ended = submitted(&place, world, &[account]).await;
    assert_eq!(ended.code, 1, "{}", ended.told);
    place.assert_shown(POWERLESS, &ended.told);
    place.assert_no_secret_in(&ended.told).await;
    place.assert_all_goes_with_the_pod().await;
}

async fn no_room(stage: Arc<Stage>) {
    let world = stage.world().await;
    let place = Place::new(world, "failure-no-room-left").await;
    limit(&place, "requests.memory", "1Gi", "0").await;
    let ended = submitted(&place, world, &[]).await;
    assert_eq!(ended.code, 11, "{}", ended.told);
    place.assert_shown(NO_ROOM_FOR_EXECUTORS, &ended.told);
    place.assert_no_secret_in(&ended.told).await;
    place.assert_all_goes_with_the_pod().await;
}
