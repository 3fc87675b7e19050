//! That sets and recordings belong together, and that each set shows its key.

use std::collections::BTreeSet;

use cloakroom_testing::needs::trial;
use libtest_mimic::Trial;

use crate::comparison::{Rules, compare};
use crate::effect;
use crate::outcome::{self, Recording};
use crate::sets::{self, VERSIONS};

pub fn trials() -> Vec<Trial> {
    vec![
        trial(
            "recordings::every_set_is_recorded_and_every_recording_has_its_set",
            &[],
            every_set_is_recorded_and_every_recording_has_its_set,
        ),
        trial("recordings::what_spark_makes_of_a_key_is_what_its_set_says", &[], effects_are_as_declared),
        trial("recordings::a_recording_does_not_differ_from_itself", &[], equal_themselves),
        trial("recordings::there_are_enough_sets_and_enough_of_them_are_recorded_live", &[], enough),
    ]
}

fn every_set_is_recorded_and_every_recording_has_its_set() {
    for version in VERSIONS {
        let sets = sets::all().into_iter().filter(|set| set.is_for(version));
        let expected: BTreeSet<_> = sets.map(|set| format!("{}.json", set.name)).collect();
        let files = std::fs::read_dir(outcome::folder(version)).unwrap();
        let found: BTreeSet<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        assert_eq!(found, expected, "{version}");
    }
}

fn effects_are_as_declared() {
    let mut wrong = Vec::new();
    for version in VERSIONS {
        for set in sets::all().iter().filter(|set| set.is_for(version)) {
            let Some(recording) = Recording::read(version, &set.name) else { continue };
            if !effect::is_as_declared(set.effect(version), recording.effect) {
                wrong.push(format!("{version} {}: {:?}", set.name, recording.effect));
            }
        }
    }
    assert!(wrong.is_empty(), "seen otherwise than the sets say:\n{}", wrong.join("\n"));
}

fn equal_themselves() {
    for version in VERSIONS {
        for set in sets::all().iter().filter(|set| set.is_for(version)) {
            let Some(recording) = Recording::read(version, &set.name) else { continue };
            let rules = Rules { unordered: Some(&set.unordered), reads: true };
            assert_eq!(compare(&recording.outcome, &recording.outcome, &rules), [], "{version} {}", set.name);
        }
    }
}

fn enough() {
    let sets = sets::all();
    assert!(sets.len() >= 80, "{} sets", sets.len());
    assert!(sets.iter().filter(|set| set.live).count() >= 10);
}
