//! Real Spark runs applications under a real API server. Its pods are processes of this machine.
//!
//! If a test lacks something beyond Rust, it is skipped, and a line on stderr says what is missing. With
//! `CLOAKROOM_TEST_REQUIRE=all`, as in CI, it fails instead.

#![expect(clippy::pedantic, clippy::unwrap_used, reason = "tests are read for what they check")]

mod applications;
mod executors;
mod handed_over;
mod operator;
mod pods;
mod shared;
mod sight;
mod submission;
mod submitted;
mod web;

use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};

use shared::SharedCluster;

fn main() {
    let arguments = Arguments::from_args();
    let shared = Arc::new(SharedCluster::new());
    let trials: Vec<Trial> = [
        pods::trials(&shared),
        applications::trials(&shared),
        submitted::trials(&shared),
        handed_over::trials(&shared),
        executors::trials(&shared),
        web::trials(&shared),
    ]
    .into_iter()
    .flatten()
    .collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    Arc::into_inner(shared).unwrap().end();
    conclusion.exit();
}
