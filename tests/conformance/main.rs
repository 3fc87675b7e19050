//! Compares what `cloakroom submit` sends with what the real spark-submit sends.
//!
//! `sets/` has the arguments, and `recordings/` has what Spark sent for them. `record` makes new recordings.

#![expect(clippy::pedantic, clippy::unwrap_used, reason = "tests are read for what they check")]

mod api_server;
mod comparison;
mod comparison_tests;
mod differences;
mod effect;
mod live;
mod machine;
mod normal_form;
mod outcome;
mod properties;
mod record;
mod recordings_tests;
mod replay;
mod sets;

use libtest_mimic::{Arguments, Trial};

fn main() {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some("record") {
        return record::Job::parse(arguments).run();
    }
    let arguments = Arguments::from_args();
    let trials = [comparison_tests::trials(), recordings_tests::trials(), replay::trials(), live::trials()];
    let trials: Vec<Trial> = trials.into_iter().flatten().collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    let is_whole = arguments.filter.is_none() && arguments.skip.is_empty() && !arguments.list;
    if is_whole && !conclusion.has_failed() {
        let unused = replay::unused_differences();
        assert!(unused.is_empty(), "differences.yaml allows what nothing needs:\n{}", unused.join("\n"));
    }
    conclusion.exit();
}
