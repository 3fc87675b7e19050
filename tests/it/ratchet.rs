//! Numbers that grow only with a reason, and that stay small once they are: each file of them is compared with what is counted.

use std::collections::BTreeMap;
use std::path::Path;

/// Complains if something is larger than its number in this file of the project, or smaller by more than `slack`.
#[track_caller]
pub fn holds(file: &str, counted: &BTreeMap<String, usize>, slack: usize) {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let numbers: BTreeMap<&str, usize> = text
        .lines()
        .map(|line| line.split_once('\t').unwrap())
        .map(|(name, number)| (name, number.parse().unwrap()))
        .collect();
    let is_right = counted.iter().all(|(name, found)| {
        numbers.get(&**name).is_some_and(|most| found <= most && found + slack >= *most)
    });
    let table: String = counted.iter().map(|(name, found)| format!("{name}\t{found}\n")).collect();
    assert!(
        is_right && counted.len() == numbers.len(),
        "{file}: raise a number only with a reason:\n{table}"
    );
}
