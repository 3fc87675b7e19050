//! Submissions on the fake API server (`real.rs` runs the same on a real one).

use cloakroom_testing::api_server::FakeApiServer;
use cloakroom_testing::cluster::{CLAIM, CONFIG_MAP, SERVICE};

use crate::submissions;

macro_rules! scenarios {
    ($($name:ident),+ $(,)?) => {
        $(#[tokio::test]
        async fn $name() {
            let server = FakeApiServer::start();
            for kind in [SERVICE, CLAIM, CONFIG_MAP] {
                server.define(kind);
            }
            submissions::$name(&server).await;
        })+
    };
}

scenarios!(
    what_is_made_belongs_to_the_driver_pod,
    a_submission_that_fails_leaves_only_what_was_there_before,
    a_pod_that_is_not_valid_is_refused_in_the_api_servers_words,
    an_application_is_followed_to_its_end,
    drivers_are_killed_by_the_beginning_of_their_names,
);
