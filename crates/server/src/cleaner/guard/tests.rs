use super::*;

const MINUTE: Duration = Duration::from_mins(1);

/// Namespaces, each with so many owners, of which so many vanished, and so many are unknown.
fn found(namespaces: &[(&str, usize, usize, usize)]) -> BTreeMap<String, Census> {
    let numbers = |range: std::ops::Range<usize>| range.map(|number| number as u64).collect();
    let census = |known, vanished, unknown| Census {
        known: numbers(0..known),
        vanished: numbers(0..vanished),
        unknown: numbers(vanished..vanished + unknown),
    };
    let named = namespaces.iter();
    named
        .map(|(name, known, vanished, unknown)| ((*name).to_owned(), census(*known, *vanished, *unknown)))
        .collect()
}

fn judge(guard: &mut Guard, namespaces: &[(&str, usize, usize, usize)], now: Duration) -> Allowances {
    guard.judge(&found(namespaces), &Released::Nothing, now)
}

// Invariant: if most owners of a namespace vanish at once, that namespace waits, and no other one.
#[test]
fn a_namespace_that_loses_most_owners_waits_an_hour_and_goes_in_slices() {
    let mut guard = Guard::default();
    let lost = [("etl", 10, 6, 0), ("ml", 10, 1, 0)];
    for (minute, allowed) in [(0, Allowance::Nothing), (59, Allowance::Nothing), (60, Allowance::Slices)] {
        let allowances = judge(&mut guard, &lost, MINUTE * (1 + minute));
        assert_eq!(allowances.of("etl"), allowed, "after {minute} minutes");
        assert_eq!([allowances.of("ml"), allowances.of("new")], [Allowance::All; 2], "others do not wait");
    }
    assert_eq!(judge(&mut guard, &[("etl", 10, 5, 0)], MINUTE * 62).of("etl"), Allowance::All);
}

#[test]
fn few_owners_or_half_of_them_are_never_held_back() {
    let mut guard = Guard::default();
    assert_eq!(judge(&mut guard, &[("etl", 9, 9, 0), ("ml", 10, 5, 0)], MINUTE).of("etl"), Allowance::All);
    assert_eq!(judge(&mut guard, &[("etl", 9, 9, 0), ("ml", 10, 5, 0)], MINUTE).of("ml"), Allowance::All);
}

#[test]
fn a_finding_that_went_away_must_last_an_hour_again() {
    let mut guard = Guard::default();
    let mut after =
        |minutes: u32, vanished| judge(&mut guard, &[("etl", 20, vanished, 0)], MINUTE * minutes).of("etl");
    assert_eq!(after(1, 11), Allowance::Nothing);
    assert_eq!(after(30, 0), Allowance::All);
    assert_eq!(after(70, 11), Allowance::Nothing);
    assert_eq!(after(131, 11), Allowance::Slices);
}

#[test]
fn owners_that_become_unknown_neither_end_the_hour_nor_let_anything_go() {
    let mut guard = Guard::default();
    let mut after = |minutes: u32, vanished, unknown| {
        judge(&mut guard, &[("etl", 20, vanished, unknown)], MINUTE * minutes).of("etl")
    };
    assert_eq!(after(1, 20, 0), Allowance::Nothing);
    assert_eq!(after(30, 1, 19), Allowance::Nothing);
    assert_eq!(after(61, 20, 0), Allowance::Slices);
    assert_eq!(after(62, 1, 19), Allowance::Nothing);
}

#[test]
fn all_namespaces_wait_if_most_of_them_lose_most_of_their_owners() {
    let mut guard = Guard::default();
    let lost = [("a", 3, 2, 0), ("b", 3, 3, 0), ("c", 3, 0, 0), ("small", 2, 2, 0)];
    let allowances = judge(&mut guard, &lost, MINUTE);
    assert_eq!(["a", "c", "small", "new"].map(|name| allowances.of(name)), [Allowance::Nothing; 4]);
    assert_eq!(judge(&mut guard, &lost, MINUTE * 61).of("small"), Allowance::Slices);
    let two = [("a", 3, 3, 0), ("b", 3, 3, 0)];
    assert_eq!(judge(&mut Guard::default(), &two, MINUTE).of("a"), Allowance::All, "two say nothing");
    let half = [("a", 3, 3, 0), ("b", 3, 3, 0), ("c", 3, 1, 0), ("d", 9, 4, 0)];
    assert_eq!(judge(&mut Guard::default(), &half, MINUTE).of("a"), Allowance::All, "half is not most");
}

#[test]
fn an_admin_ends_the_hour_of_a_namespace_or_of_all() {
    let lost = [("a", 10, 10, 0), ("b", 10, 10, 0), ("c", 10, 10, 0)];
    let namespaces = found(&lost);
    let mut guard = Guard::default();
    judge(&mut guard, &lost, MINUTE);
    let released = Released::Namespace("a".to_owned());
    let allowances = guard.judge(&namespaces, &released, MINUTE * 2);
    assert_eq!([allowances.of("a"), allowances.of("b")], [Allowance::All, Allowance::Nothing]);
    // It holds as long as the finding does: one sweep may have no time for all.
    let allowances = judge(&mut guard, &lost, MINUTE * 3);
    assert_eq!([allowances.of("a"), allowances.of("b")], [Allowance::All, Allowance::Nothing]);
    let allowances = guard.judge(&namespaces, &Released::All, MINUTE * 4);
    assert_eq!(["a", "b"].map(|name| allowances.of(name)), [Allowance::All; 2]);
    assert_eq!(judge(&mut guard, &lost, MINUTE * 5).of("b"), Allowance::All);
    // What is found again after that waits again.
    assert_eq!(judge(&mut guard, &[("a", 10, 0, 0)], MINUTE * 6).of("a"), Allowance::All);
    assert_eq!(judge(&mut guard, &lost, MINUTE * 7).of("a"), Allowance::Nothing);
}
