//! The differences that are wanted: single fields, with both values and the reason.

use std::sync::atomic::{AtomicBool, Ordering};

use serde::Deserialize;

use crate::comparison::Difference;

/// A difference that does not fail a test. `*` in `sets`, `at`, `spark` and `ours` stands for any text.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allowed {
    sets: String,
    /// Of Spark; all if it is not given.
    version: Option<String>,
    at: String,
    spark: String,
    ours: String,
    reason: String,
    #[serde(skip)]
    was_used: AtomicBool,
}

impl Allowed {
    fn allows(&self, version: &str, set: &str, difference: &Difference) -> bool {
        self.version.as_deref().is_none_or(|only| only == version)
            && matches(&self.sets, set)
            && matches(&self.at, &difference.at)
            && matches(&self.spark, &difference.spark)
            && matches(&self.ours, &difference.ours)
    }
}

pub fn read(text: &str) -> Vec<Allowed> {
    let all: Vec<Allowed> = serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(all.iter().all(|allowed| !allowed.reason.trim().is_empty()), "a difference without a reason");
    all
}

/// What is left when everything that is allowed is taken away; what allowed something is marked as used.
pub fn not_allowed(
    allowed: &[Allowed],
    version: &str,
    set: &str,
    differences: Vec<Difference>,
) -> Vec<Difference> {
    let is_allowed = |difference: &Difference| {
        let matching: Vec<_> = allowed.iter().filter(|one| one.allows(version, set, difference)).collect();
        for one in &matching {
            one.was_used.store(true, Ordering::Relaxed);
        }
        !matching.is_empty()
    };
    differences.into_iter().filter(|difference| !is_allowed(difference)).collect()
}

/// Entries that never allowed anything.
pub fn unused(allowed: &[Allowed]) -> Vec<String> {
    let unused = allowed.iter().filter(|one| !one.was_used.load(Ordering::Relaxed));
    unused.map(|one| format!("{} at {}: {}", one.sets, one.at, one.reason)).collect()
}

/// Whether the text is the pattern, in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(start) else { return false };
    text.char_indices().map(|(at, _)| at).chain([text.len()]).any(|at| matches(rest, &text[at..]))
}
