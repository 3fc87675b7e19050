//! The fake API server speaks as the real one does, to `cloakroom`'s own client library too, and fails as it is told.
#![expect(clippy::unwrap_used, reason = "tests are read for what they check")]

mod faults;
mod kube_client;

use cloakroom_testing::api_server::FakeApiServer;
use cloakroom_testing::scenarios::probes;

macro_rules! probes {
    ($($name:ident),+ $(,)?) => {
        $(#[tokio::test]
        async fn $name() {
            probes::$name(&FakeApiServer::start()).await;
        })+
    };
}

// tests/real runs the same on the real one.
probes!(
    lists_are_of_what_the_selectors_ask_for,
    watches_tell_every_change_since_a_version,
    a_forgotten_version_is_a_410,
    rights_are_asked_for,
    reviews_say_who_it_is_and_what_they_may,
    objects_come_and_go,
    discovery_names_the_kinds,
);
