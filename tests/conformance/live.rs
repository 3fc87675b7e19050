//! A spread of the sets, recorded anew: what is kept is what the real spark-submit sends today.

use cloakroom_testing::needs::{Need, path, trial};
use libtest_mimic::Trial;

use crate::comparison::{Rules, compare};
use crate::outcome::Recording;
use crate::record;
use crate::sets::{self, Set, VERSIONS};

const HOMES: Need = Need::Path("CLOAKROOM_TEST_SPARK_HOMES", "a folder with spark-4.3.0 and spark-3.5.9");

pub fn trials() -> Vec<Trial> {
    let sets: Vec<Set> = sets::all().into_iter().filter(|set| set.live).collect();
    let pairs = sets.iter().flat_map(|set| VERSIONS.map(|version| (version, set)));
    let pairs = pairs.filter(|(version, set)| set.is_for(version));
    pairs
        .map(|(version, set)| {
            let set = set.clone();
            let name = format!("live::{version}::{}", set.name);
            trial(&name, &[HOMES, Need::Program("java")], move || is_as_recorded(version, &set))
        })
        .collect()
}

fn is_as_recorded(version: &str, set: &Set) {
    let home = record::home(&path("CLOAKROOM_TEST_SPARK_HOMES"), version);
    let now = record::observe(&home, set, &set.call());
    let kept = Recording::read(version, &set.name).unwrap_or_else(|| panic!("there is no recording"));
    let rules = Rules { unordered: Some(&set.unordered), reads: true };
    let differences = compare(&kept.outcome, &now, &rules);
    let text: Vec<_> = differences.iter().map(ToString::to_string).collect();
    assert!(
        text.is_empty(),
        "spark-submit does something else now (spark: kept, ours: now)\n{}",
        text.join("\n")
    );
}
