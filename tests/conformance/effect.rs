//! What a key does: two outcomes of one program, with the key and without it.

use crate::comparison::{Rules, compare};
use crate::outcome::{ObservedEffect, Outcome};
use crate::sets::{Effect, Set};

pub fn observe(set: &Set, with: &Outcome, without: &Outcome) -> ObservedEffect {
    if with.exit != without.exit || with.is_refused() != without.is_refused() {
        return ObservedEffect::Verdict;
    }
    let rules = Rules { unordered: Some(&set.unordered), reads: true };
    let mut differences = compare(without, with, &rules);
    // Of a driver with credentials of its own it is not asked, and nothing else is different.
    differences.retain(|difference| difference.at != "POST localsubjectaccessreviews");
    if differences.is_empty() {
        ObservedEffect::Nothing
    } else if differences.iter().all(|difference| difference.at.contains(".data.spark.properties")) {
        ObservedEffect::Properties
    } else {
        ObservedEffect::Objects
    }
}

/// Whether a set says of its key what was seen.
pub fn is_as_declared(declared: Effect, observed: ObservedEffect) -> bool {
    match observed {
        ObservedEffect::Verdict | ObservedEffect::Objects | ObservedEffect::None => declared == Effect::Acts,
        ObservedEffect::Properties => declared == Effect::Properties,
        ObservedEffect::Nothing => declared == Effect::Nothing,
    }
}
