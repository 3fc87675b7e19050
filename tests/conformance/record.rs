//! Recording: the real spark-submit is called with every set, with its key and without it, and what it sends is kept.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::effect;
use crate::machine::{self, Program};
use crate::outcome::{ObservedEffect, Outcome, Recording};
use crate::sets::{self, Call, Set, VERSIONS};

/// What is to be recorded.
pub struct Job {
    homes: PathBuf,
    jobs: usize,
    only: String,
    /// Leave recordings alone that are there.
    missing: bool,
}

impl Job {
    /// From `--homes FOLDER [--jobs N] [--only PART-OF-A-NAME] [--missing]`.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Self {
        let mut job = Self { homes: PathBuf::new(), jobs: 2, only: String::new(), missing: false };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().unwrap_or_else(|| panic!("{argument} needs a value"));
            match argument.as_str() {
                "--homes" => job.homes = value().into(),
                "--jobs" => job.jobs = value().parse().unwrap(),
                "--only" => job.only = value(),
                "--missing" => job.missing = true,
                other => panic!("no such argument: {other}"),
            }
        }
        assert!(job.homes.is_absolute(), "--homes must name the folder of the distributions, absolutely");
        job
    }

    pub fn run(&self) {
        let todo = Mutex::new(self.todo());
        let without = Mutex::new(HashMap::new());
        std::thread::scope(|scope| {
            for _ in 0..self.jobs {
                scope.spawn(|| {
                    loop {
                        let Some((version, set)) = todo.lock().unwrap().pop_front() else { break };
                        record(&home(&self.homes, version), version, &set, &without);
                    }
                });
            }
        });
    }

    fn todo(&self) -> VecDeque<(&'static str, Set)> {
        let sets = sets::all();
        let wanted = sets.iter().filter(|set| set.name.contains(&self.only));
        let pairs = wanted.flat_map(|set| VERSIONS.map(|version| (version, set.clone())));
        let pairs = pairs.filter(|(version, set)| set.is_for(version));
        pairs
            .filter(|(version, set)| !self.missing || Recording::read(version, &set.name).is_none())
            .collect()
    }
}

/// Where a distribution is.
pub fn home(homes: &Path, version: &str) -> PathBuf {
    homes.join(format!("spark-{version}"))
}

/// What the real spark-submit does.
pub fn observe(home: &Path, set: &Set, call: &Call) -> Outcome {
    Outcome::new(machine::run(&Program::Spark(home), call), set)
}

fn record(home: &Path, version: &str, set: &Set, known: &Mutex<HashMap<String, Outcome>>) {
    let outcome = observe(home, set, &set.call());
    let mut seen = ObservedEffect::None;
    if let Some(call) = set.without_key() {
        let key = format!("{version} {call:?} {:?}", set.unordered);
        let found = known.lock().unwrap().get(&key).cloned();
        let without = found.unwrap_or_else(|| observe(home, set, &call));
        seen = effect::observe(set, &outcome, &without);
        known.lock().unwrap().insert(key, without);
    }
    let as_declared = effect::is_as_declared(set.effect(version), seen);
    let remark = if as_declared { "" } else { " (NOT AS DECLARED)" };
    eprintln!(
        "{version} {}: exit {}, {} calls, {seen:?}{remark}",
        set.name,
        outcome.exit,
        outcome.calls.len()
    );
    Recording { effect: seen, outcome }.write(version, &set.name);
}
