//! Failures of real drivers: Spark starts, and may not do, or has no room for, what it has to do.

use std::sync::Arc;

use cloakroom_testing::jobs::Job;
use libtest_mimic::Trial;

use super::before_the_pod::limit;
use super::running::Ended;
use super::tested::TestNamespace;
use super::{NO_ROOM_FOR_EXECUTORS, POWERLESS};
use crate::shared::{RunningCluster, SharedCluster, VERSIONS, image};

pub fn trials(shared: &Arc<SharedCluster>) -> Vec<Trial> {
    vec![
        shared.trial("failures::a_driver_whose_account_may_not_make_executors_is_said_twice", powerless),
        shared.trial("failures::a_quota_without_room_for_any_executor_is_named", no_room),
    ]
}

/// Submits a job that would succeed.
async fn submitted(
    tested: &TestNamespace<'_>,
    cluster: &RunningCluster,
    settings: &[(&str, String)],
) -> Ended {
    let image = ("spark.kubernetes.container.image", image(VERSIONS[0]));
    let settings = [&[tested.staging(), image], settings].concat();
    let jobs = cluster.jobs(VERSIONS[0]);
    let arguments = Job::Java.arguments(|file| jobs.join(file).display().to_string());
    tested.submit(&settings, &arguments.iter().map(String::as_str).collect::<Vec<_>>()).end().await
}

async fn powerless(shared: Arc<SharedCluster>) {
    let cluster = shared.cluster().await;
    let tested = TestNamespace::new(cluster, "failure-powerless").await;
    let account = ("spark.kubernetes.authenticate.driver.serviceAccountName", "default".to_owned());
    let ended = submitted(&tested, cluster, &[account]).await;
    assert_eq!(ended.code, 1, "{}", ended.told);
    tested.assert_shown(POWERLESS, &ended.told);
    tested.assert_no_secret_in(&ended.told).await;
    tested.assert_all_goes_with_the_pod().await;
}

async fn no_room(shared: Arc<SharedCluster>) {
    let cluster = shared.cluster().await;
    let tested = TestNamespace::new(cluster, "failure-no-room-left").await;
    limit(&tested, "requests.memory", "1Gi", "0").await;
    let ended = submitted(&tested, cluster, &[]).await;
    assert_eq!(ended.code, 11, "{}", ended.told);
    tested.assert_shown(NO_ROOM_FOR_EXECUTORS, &ended.told);
    tested.assert_no_secret_in(&ended.told).await;
    tested.assert_all_goes_with_the_pod().await;
}
