//! The scenarios of submissions on a real API server.
//!
//! What a test needs beyond Rust it finds, or it is skipped with a line on stderr that says what is missing. With
//! `CLOAKROOM_TEST_REQUIRE=all`, as in CI, what is missing is a failure.

#![expect(clippy::unwrap_used, reason = "tests are read for what they check")]

mod submissions;
mod submitter;

use std::sync::OnceLock;

use cloakroom_cluster::Timeouts;
use cloakroom_submit::create::Undo;
use cloakroom_submit::jobs::{SubmissionId, kill, status};
use cloakroom_testing::cluster::{Account, Cluster as _, POD};
use cloakroom_testing::control_plane::{ASSETS, ControlPlane};
use cloakroom_testing::needs::{Need, trial};
use cloakroom_testing::wait::until;
use libtest_mimic::{Arguments, Trial};
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

use submitter::{DRIVER, Submitter, pod_group, submission};

const NEED: Need =
    Need::Path(ASSETS, "a folder with etcd and kube-apiserver (tests/programs/build-control-plane)");

/// One control plane for all of them.
static PLANE: OnceCell<ControlPlane> = OnceCell::const_new();

fn main() {
    let conclusion = libtest_mimic::run(&Arguments::from_args(), trials());
    if let Some(plane) = PLANE.get() {
        runtime().block_on(plane.end());
    }
    conclusion.exit();
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::new().unwrap())
}

async fn plane() -> &'static ControlPlane {
    // It would hold up the first pods of a namespace until a controller has made its default account.
    PLANE.get_or_init(async || ControlPlane::start(&["ServiceAccount"]).await).await
}

macro_rules! trials {
    ($($test:path),+ $(,)?) => {
        vec![$(trial(stringify!($test), &[NEED], || runtime().block_on(async { $test(plane().await).await })),)+]
    };
}

fn trials() -> Vec<Trial> {
    trials![
        the_role_of_the_submitter_is_enough,
        a_field_that_the_api_server_does_not_know_is_told,
        submissions::what_is_made_belongs_to_the_driver_pod,
        submissions::a_submission_that_fails_leaves_only_what_was_there_before,
        submissions::a_pod_that_is_not_valid_is_refused_in_the_api_servers_words,
        submissions::an_application_is_followed_to_its_end,
        submissions::drivers_are_killed_by_the_beginning_of_their_names,
    ]
}

/// Server-side apply is more to RBAC than its verb.
async fn the_role_of_the_submitter_is_enough(plane: &ControlPlane) {
    let token = plane.token_with_a_shipped_role("spark-submitter", "pods").await;
    let (api, path) = (plane.api_with_token(&token), POD.path(Some("spark")));
    let submitter = Submitter::with(plane, &token, Timeouts::default());
    let mut planned = submission("spark");
    let selector = json!({"matchLabels": {"spark-role": "executor"}});
    planned.after_pod.extend([
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}),
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "x"},
            "spec": {"podSelector": selector},
        }),
    ]);
    submitter.create(&planned).await.unwrap();
    let id = SubmissionId::parse("spark:my-app-*", "default").unwrap();
    let log = submitter.lines.log();
    status(&submitter.server, "k8s://here", &id, &log).await.unwrap();
    kill(&submitter.server, "k8s://here", &id, None, &log).await.unwrap();
    until("the driver is gone", async || api.get(&format!("{path}/{DRIVER}")).await.0 == 404).await;
    planned.after_pod.push(pod_group());
    let error = submitter.create(&planned).await.unwrap_err();
    assert_eq!(error.undo, Undo::Removed(vec![format!("pod {DRIVER}")]), "{error}");
}

/// Spark passes such a field on, and the API server drops it: only its header `Warning` tells of it.
async fn a_field_that_the_api_server_does_not_know_is_told(plane: &ControlPlane) {
    let (namespace, submitter) = ("submission-warned", Submitter::new(plane));
    plane.api(Account::Admin).create_namespace(namespace).await;
    let mut planned = submission(namespace);
    planned.pod["spec"]["nodeSelectr"] = json!({"a": "b"});
    submitter.create(&planned).await.unwrap();
    let told = submitter.lines.with("The API server warns about the driver pod: ");
    assert_eq!(told.len(), 1, "{:?}", submitter.lines.all());
    assert!(told[0].ends_with("unknown field \"spec.nodeSelectr\""), "{told:?}");
}
