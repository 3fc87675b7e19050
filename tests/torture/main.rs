//! An abusive tenant beside an honest one: with a real API server, and the real binary within the limits of its
//! manifest.
//!
//! If a test lacks something beyond Rust, it is skipped, and a line on stderr says what is missing. With
//! `CLOAKROOM_TEST_REQUIRE=all`, as in CI, it fails instead. The long form is in [`long`].

#![expect(clippy::pedantic, clippy::unwrap_used, reason = "tests are read for what they check")]

mod abuser;
mod abuses;
mod connection;
mod figures;
mod honest;
mod long;
mod reach;
mod round;
mod secrets;
mod short;
mod tenants;

use std::sync::OnceLock;

use libtest_mimic::{Arguments, Trial};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::Runtime;

use cloakroom_testing::control_group::ControlGroup;
use cloakroom_testing::needs::{Need, trial};
use cloakroom_testing::s3_gateway::S3Gateway;
use tenants::TwoTenants;

fn main() {
    let mut arguments = Arguments::from_args();
    // Each test uses the whole machine.
    arguments.test_threads = Some(1);
    // Enough for all connections of the abuser. The server's own limit is lower.
    let most = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most });
    let trials = [short::trials(), long::trials()].into_iter().flatten().collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    if let Some(tenants) = SCENE.get() {
        runtime().block_on(tenants.end());
    }
    conclusion.exit();
}

/// A test with the needs of this tier.
fn torture(name: &str, test: impl FnOnce() + Send + 'static) -> Trial {
    let mut needs = vec![
        Need::Path(
            cloakroom_testing::control_plane::ASSETS,
            "a folder with etcd and kube-apiserver (tests/programs/build-control-plane)",
        ),
        Need::Working("a control group for memory", ControlGroup::can_be_made),
    ];
    needs.extend(S3Gateway::needs());
    trial(name, &needs, test)
}

/// The runtime of the honest tenant, of probes, and of the tests themselves.
fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::new().unwrap())
}

/// One cluster for all tests.
static SCENE: tokio::sync::OnceCell<TwoTenants> = tokio::sync::OnceCell::const_new();

async fn tenants() -> &'static TwoTenants {
    SCENE.get_or_init(TwoTenants::start).await
}
