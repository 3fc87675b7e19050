//! The journeys, in the order in which they run.

mod airflow;
mod bucket;
mod chart;
mod deploy;
mod external;
mod failures;
mod folders;
mod jobs;
mod lifecycle;
mod operator;
mod reach;
mod release;
mod remote;
mod replacement;
mod secrets;
mod stock_spark;
mod transfers;

use std::panic;
use std::time::Instant;

use cloakroom_testing::needs::{Need, trial};
use libtest_mimic::Trial;

use crate::shell::{self, At};
use crate::world;

/// All journeys.
pub fn trials() -> Vec<Trial> {
    let of_the_page = Trial::test("every_block_of_the_page_of_failures_is_looked_at", || {
        failures::every_block_is_looked_at();
        Ok(())
    });
    let journeys = [
        deploy::JOURNEYS,
        reach::JOURNEYS,
        &[deploy::AT_A_NODE],
        transfers::JOURNEYS,
        jobs::JOURNEYS,
        external::JOURNEYS,
        &[stock_spark::JOURNEY],
        remote::JOURNEYS,
        failures::JOURNEYS,
        replacement::JOURNEYS,
        lifecycle::JOURNEYS,
        &[folders::JOURNEY],
    ]
    .concat()
    .into_iter()
    .map(|journey| journey.trial(&world::needs()))
    .chain(operator::JOURNEYS.iter().map(|journey| journey.trial(&operator::needs())))
    .chain([bucket::JOURNEY.trial(&bucket::needs()), chart::JOURNEY.trial(&release::needs())])
    .chain([stock_spark::WITH_AIRFLOW, airflow::JOURNEY].map(|journey| journey.trial(&airflow::needs())));
    std::iter::once(of_the_page).chain(journeys).collect()
}

/// What a user does, and how it is called.
#[derive(Clone, Copy)]
pub struct Journey(&'static str, fn());

impl Journey {
    fn trial(self, needs: &[Need]) -> Trial {
        let Self(name, test) = self;
        trial(name, needs, move || {
            let began = Instant::now();
            let outcome = panic::catch_unwind(test);
            if let Err(failure) = outcome {
                eprintln!("node: {name} failed; the cluster at that time:\n{}", cluster_state());
                panic::resume_unwind(failure);
            }
            secrets::are_nowhere();
            eprintln!("node: {name} took {:.1} s", began.elapsed().as_secs_f64());
        })
    }
}

/// What an admin would look at first after a failure.
fn cluster_state() -> String {
    let ran = shell::run(
        At::Node,
        "kubectl get nodes -o jsonpath='{range .items[*].status.conditions[*]}{.type}={.status} {.message}{\"\\n\"}{end}'
         kubectl get pods --all-namespaces -o wide
         kubectl get events --all-namespaces --field-selector type=Warning --sort-by .lastTimestamp | tail -n 20
         df -h .",
    );
    ran.stdout + &ran.stderr
}
