//! The journeys, in the order in which they run.

mod chart;
mod deploy;
mod external;
mod failures;
mod jobs;
mod lifecycle;
mod operator;
mod replacement;
mod secrets;
mod transfers;

use std::time::Instant;

use cloakroom_testing::needs::{Need, trial};
use libtest_mimic::Trial;

use crate::world;

/// All journeys.
pub fn trials() -> Vec<Trial> {
    [
        deploy::JOURNEYS,
        transfers::JOURNEYS,
        jobs::JOURNEYS,
        external::JOURNEYS,
        failures::JOURNEYS,
        replacement::JOURNEYS,
        lifecycle::JOURNEYS,
    ]
    .concat()
    .into_iter()
    .map(|journey| journey.trial(&world::needs()))
    .chain(operator::JOURNEYS.iter().map(|journey| journey.trial(&operator::needs())))
    .chain([chart::JOURNEY.trial(&chart::needs())])
    .collect()
}

/// What a user does, and how it is called.
#[derive(Clone, Copy)]
pub struct Journey(&'static str, fn());

impl Journey {
    fn trial(self, needs: &[Need]) -> Trial {
        let Self(name, test) = self;
        trial(name, needs, move || {
            let began = Instant::now();
            test();
            secrets::are_nowhere();
            eprintln!("node: {name} took {:.1} s", began.elapsed().as_secs_f64());
        })
    }
}
