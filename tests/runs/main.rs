//! Real Spark runs applications under a real API server. Its pods are processes of this machine.
//!
//! If a test lacks something beyond Rust, it is skipped, and a line on stderr says what is missing. With
//! `CLOAKROOM_TESTS_REQUIRE=all`, as in CI, it fails instead.

#![expect(clippy::pedantic, clippy::unwrap_used, reason = "tests are read for what they check")]

mod airflow;
mod applications;
mod executors;
mod failures;
mod handed_over;
mod in_front;
mod operator;
mod pages;
mod pods;
mod sight;
mod stage;
mod submission;
mod submitted;
mod web;

use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};

use stage::Stage;

fn main() {
    let arguments = Arguments::from_args();
    let stage = Arc::new(Stage::new());
    let trials: Vec<Trial> = [
        pods::trials(&stage),
        applications::trials(&stage),
        submitted::trials(&stage),
        handed_over::trials(&stage),
        failures::trials(&stage),
        airflow::trials(&stage),
        in_front::trials(&stage),
        executors::trials(&stage),
        web::trials(&stage),
        pages::trials(&stage),
    ]
    .into_iter()
    .flatten()
    .collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    Arc::into_inner(stage).unwrap().end();
    conclusion.exit();
}
