//! The same arguments through `cloakroom submit`: what it sends is what Spark was recorded to send.

use std::sync::{Arc, OnceLock};

use cloakroom_testing::needs::trial;
use libtest_mimic::Trial;

use crate::comparison::{ABSENT, Difference, Rules, compare};
use crate::differences::{self, Allowed};
use crate::effect;
use crate::machine::{self, Program, Run};
use crate::outcome::{ObservedEffect, Outcome, Recording};
use crate::sets::{self, Call, Set, VERSIONS};

/// The file beside this one.
const DIFFERENCES: &str = include_str!("differences.yaml");

/// What the lines of the block begin with that spark-submit prints for each change of a pod.
const BLOCK: [&str; 2] = ["\t ", "\t\t "];

/// What a line of the log begins with.
const LEVELS: [&str; 3] = ["INFO ", "WARN ", "ERROR "];

pub fn trials() -> Vec<Trial> {
    let sets = sets::all();
    let pairs = sets.iter().flat_map(|set| VERSIONS.map(|version| (version, set)));
    let pairs = pairs.filter(|(version, set)| set.is_for(version));
    let trials = pairs.map(|(version, set)| {
        let set = Arc::new(set.clone());
        trial(&format!("{version}::{}", set.name), &[], move || is_conformant(version, &set))
    });
    trials.collect()
}

/// Differences that are allowed and that nothing needed; for the end of a run of all sets.
pub fn unused_differences() -> Vec<String> {
    differences::unused(allowed())
}

fn allowed() -> &'static [Allowed] {
    static ALLOWED: OnceLock<Vec<Allowed>> = OnceLock::new();
    ALLOWED.get_or_init(|| differences::read(DIFFERENCES))
}

// Invariant: a submission sends what spark-submit sends: one trial for each set of `tests/conformance`.
fn is_conformant(version: &str, set: &Set) {
    let kept = Recording::read(version, &set.name).unwrap_or_else(|| panic!("there is no recording"));
    let (run, outcome) = submit(version, set, &set.call());
    let rules = Rules { unordered: Some(&set.unordered), reads: set.is_about_submissions() };
    let mut differences = compare(&kept.outcome, &outcome, &rules);
    differences.extend(said(set, &kept.outcome, &outcome));
    differences.extend(effect_of_key(version, set, &kept, &outcome));
    let differences = differences::not_allowed(allowed(), version, &set.name, differences);
    let mut complaints: Vec<_> = differences.iter().map(ToString::to_string).collect();
    complaints.extend(leaks(set, &run));
    assert!(complaints.is_empty(), "\n{}\n--- cloakroom said:\n{}", complaints.join("\n"), run.1);
}

/// stdout and stderr, and the outcome.
fn submit(version: &str, set: &Set, call: &Call) -> ((String, String), Outcome) {
    let run: Run = machine::run(&Program::Cloakroom(version), call);
    let output = (run.stdout.clone(), run.stderr.clone());
    (output, Outcome::new(run, set))
}

/// Without its key the set must come to something else, as it does in Spark. What is refused here and not by Spark is at
/// least not refused without its key.
fn effect_of_key(version: &str, set: &Set, kept: &Recording, with: &Outcome) -> Option<Difference> {
    let (_, without) = submit(version, set, &set.without_key()?);
    let ours = effect::observe(set, with, &without);
    let is_stricter = with.is_refused() && !kept.outcome.is_refused();
    let of_spark = if is_stricter { ObservedEffect::Verdict } else { kept.effect };
    (ours != of_spark).then(|| Difference {
        at: format!("effect of {}", set.covers),
        spark: format!("{of_spark:?}"),
        ours: format!("{ours:?}"),
    })
}

fn leaks(set: &Set, run: &(String, String)) -> Option<String> {
    let (stdout, stderr) = run;
    let is_in_output = |secret: &&String| stdout.contains(*secret) || stderr.contains(*secret);
    set.secrets.iter().any(|secret| is_in_output(&secret)).then(|| "a secret is in the output".to_owned())
}

/// Where spark-submit succeeds, `--kill` and `--status` say what it says; while an application is waited for, every line of
/// the blocks that it prints is there.
fn said(set: &Set, spark: &Outcome, ours: &Outcome) -> Vec<Difference> {
    if spark.is_refused() != ours.is_refused() {
        return Vec::new();
    }
    let is_answer = |line: &str| {
        let is_log = LEVELS.iter().any(|level| line.starts_with(level));
        set.is_about_submissions() && spark.exit == 0 && !is_log
    };
    let is_relevant = |line: &&String| is_answer(line) || BLOCK.iter().any(|start| line.starts_with(start));
    let is_said = |line: &str| ours.said.iter().any(|other| other.trim_end() == line.trim_end());
    let missing = spark.said.iter().filter(is_relevant).filter(|line| !is_said(line));
    let difference = |line: &String| Difference {
        at: "said".to_owned(),
        spark: line.trim_end().to_owned(),
        ours: ABSENT.to_owned(),
    };
    missing.map(difference).collect()
}
