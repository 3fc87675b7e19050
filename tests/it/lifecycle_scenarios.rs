//! The lifecycle of resources, on the fake API server (tests/real runs the same on a real one).

use cloakroom_testing::api_server::FakeApiServer;
use cloakroom_testing::scenarios::{kinds, outages, pods};

macro_rules! scenarios {
    ($($module:ident::$name:ident),+ $(,)?) => {
        $(#[tokio::test]
        async fn $name() {
            $module::$name(&FakeApiServer::start()).await;
        })+
    };
}

scenarios!(
    pods::a_resource_goes_after_the_grace_and_not_before,
    pods::a_resource_goes_with_its_owners_namespace,
    pods::a_finished_pod_keeps_its_resource_for_the_retention,
    pods::an_owner_may_come_after_a_trial_download,
    pods::a_gated_pod_keeps_its_resource,
    kinds::an_owner_may_be_of_any_kind,
    kinds::a_kind_that_the_cluster_does_not_have_is_refused,
    outages::without_rights_nothing_goes,
    outages::while_the_api_server_is_down_nothing_goes,
    outages::a_restart_deletes_nothing_that_a_pending_pod_waits_for,
    outages::an_api_server_may_be_down_at_the_start,
    outages::a_watch_that_expired_begins_anew,
    outages::an_owner_that_a_dead_watch_does_not_tell_of_keeps_its_resource,
);
