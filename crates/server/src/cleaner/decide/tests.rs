use proptest::prelude::*;

use super::*;
use cloakroom_core::resource::{Lifetime, OwnerHistory, Unknown};

fn unknowns() -> Vec<Unknown> {
    let unknown =
        |why: &KeepReason| if let KeepReason::OwnerUnknown(unknown) = *why { Some(unknown) } else { None };
    KeepReason::ALL.iter().filter_map(unknown).collect()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Created at 0 with an unused timeout of 1000 s. The policy has 60 s of grace, 500 s of retention, and deletes unused
/// resources after 5000 s.
fn life(last_used_at: Option<i64>, owner_history: OwnerHistory) -> Life {
    let lifetime = Lifetime { unused_timeout: seconds(1000), ttl: None };
    Life { created_at: at(0), lifetime, last_used_at: last_used_at.map(at), owner_history }
}

fn policy() -> Policy {
    Policy {
        max_age: None,
        max_unused: seconds(5000),
        orphan_grace: seconds(60),
        finished_owner_retention: Some(seconds(500)),
        max_deletions_per_sweep: 100,
        stray_age: Duration::ZERO,
    }
}

fn seen() -> OwnerHistory {
    OwnerHistory { seen_at: Some(at(1)), ..OwnerHistory::default() }
}

/// Decides without anything to say since when an owner is unknown, as a server that has run for long.
fn decide(life: &Life, presence: Presence, now: &Readings, policy: &Policy) -> Decision {
    let unknown_for = (presence == Presence::NoObjects).then_some(Duration::MAX);
    super::decide(life, Knowledge { presence, unknown_for }, now, policy)
}

/// Asserts that the resource stays for `why` until `until`, and is then deleted for `reason`.
#[track_caller]
fn assert_goes(
    life: &Life,
    presence: Presence,
    policy: &Policy,
    why: KeepReason,
    until: i64,
    reason: DeletionReason,
) {
    let kept = Decision::Keep(Kept { why, until: Some(at(until)) });
    assert_eq!(decide(life, presence, &Readings::at(at(until - 1)), policy), kept);
    assert_eq!(decide(life, presence, &Readings::at(at(until)), policy), Decision::Delete(reason));
}

#[track_caller]
fn assert_stays(life: &Life, presence: Presence, why: KeepReason) {
    let decision = decide(life, presence, &Readings::at(at(1_000_000)), &policy());
    assert_eq!(decision, Decision::Keep(Kept { why, until: None }));
}

#[test]
fn an_unused_resource_goes_in_time_if_its_owner_is_absent_or_not_asked() {
    let reason = DeletionReason::Unused;
    let unused = life(None, OwnerHistory::default());
    assert_goes(&unused, Presence::NotAsked, &policy(), KeepReason::NotUsedYet, 1000, reason);
    let absent = life(None, OwnerHistory { absent_since: Some(at(10)), ..OwnerHistory::default() });
    assert_goes(&absent, Presence::Absent, &policy(), KeepReason::NotUsedYet, 1000, reason);
}

#[test]
fn a_driver_that_is_replaced_after_the_unused_timeout_has_the_grace() {
    let absent = life(None, OwnerHistory { absent_since: Some(at(2000)), ..seen() });
    assert_goes(&absent, Presence::Absent, &policy(), KeepReason::NotUsedYet, 2060, DeletionReason::Unused);
    let missed_only_now = decide(&life(None, seen()), Presence::Absent, &Readings::at(at(3000)), &policy());
    assert!(matches!(missed_only_now, Decision::Keep(_)), "{missed_only_now:?}");
}

#[test]
fn a_driver_that_waits_for_a_node_keeps_its_jars() {
    assert_stays(&life(None, seen()), Presence::Present, KeepReason::OwnerPresent);
}

#[test]
fn an_orphan_goes_once_the_grace_is_over_since_the_miss_and_the_last_use() {
    let absent = OwnerHistory { absent_since: Some(at(100)), ..seen() };
    let reason = DeletionReason::Orphaned;
    assert_goes(&life(Some(50), absent), Presence::Absent, &policy(), KeepReason::OwnerGone, 160, reason);
    assert_goes(&life(Some(130), absent), Presence::Absent, &policy(), KeepReason::OwnerGone, 190, reason);
}

#[test]
fn an_owner_that_was_missed_only_now_is_not_gone_yet_whatever_the_grace() {
    let impatient = Policy { orphan_grace: Duration::ZERO, ..policy() };
    let decision = decide(&life(Some(50), seen()), Presence::Absent, &Readings::at(at(100)), &impatient);
    assert_eq!(decision, Decision::Keep(Kept { why: KeepReason::OwnerGone, until: None }));
}

#[test]
fn a_resource_used_before_its_owner_came_waits_from_the_last_download_on() {
    let tried = life(Some(700), OwnerHistory { absent_since: Some(at(10)), ..OwnerHistory::default() });
    let reason = DeletionReason::OwnerNeverSeen;
    assert_goes(&tried, Presence::Absent, &policy(), KeepReason::OwnerNotSeenYet, 1700, reason);
}

#[test]
fn finished_pods_count_as_present_for_the_retention() {
    let finished = life(Some(20), OwnerHistory { finished_since: Some(at(100)), ..seen() });
    let reason = DeletionReason::OwnerFinished;
    assert_goes(&finished, Presence::Finished, &policy(), KeepReason::OwnerFinished, 600, reason);
    let forever = Policy { finished_owner_retention: None, ..policy() };
    let decision = decide(&finished, Presence::Finished, &Readings::at(at(1_000_000)), &forever);
    assert_eq!(decision, Decision::Keep(Kept { why: KeepReason::OwnerFinished, until: None }));
    let at_once = Policy { finished_owner_retention: Some(Duration::ZERO), ..policy() };
    assert_goes(&finished, Presence::Finished, &at_once, KeepReason::OwnerFinished, 160, reason);
    let just_used = Life { last_used_at: Some(at(590)), ..finished };
    assert_goes(&just_used, Presence::Finished, &policy(), KeepReason::OwnerFinished, 650, reason);
}

#[test]
fn finished_pods_do_not_shorten_the_unused_timeout() {
    let reason = DeletionReason::OwnerFinished;
    for (finished_since, expected) in [(100, 1000), (700, 1200)] {
        let finished = life(None, OwnerHistory { finished_since: Some(at(finished_since)), ..seen() });
        assert_goes(&finished, Presence::Finished, &policy(), KeepReason::OwnerFinished, expected, reason);
    }
}

#[test]
fn a_resource_whose_owner_is_unknown_stays_unless_it_was_never_used() {
    for unknown in unknowns() {
        let presence = Presence::Unknown(unknown);
        let absent = OwnerHistory { absent_since: Some(at(10)), ..seen() };
        assert_stays(&life(Some(50), absent), presence, KeepReason::OwnerUnknown(unknown));
        let unused = life(None, OwnerHistory::default());
        let reason = DeletionReason::MaxUnusedReached;
        assert_goes(&unused, presence, &policy(), KeepReason::OwnerUnknown(unknown), 5000, reason);
    }
}

#[test]
fn an_unused_resource_stays_unless_its_owner_was_unknown_all_the_time() {
    let unused = life(None, OwnerHistory::default());
    let presence = Presence::Unknown(Unknown::Failing);
    let decide = |now: i64, unknown_for: u64| {
        let owner = Knowledge { presence, unknown_for: Some(seconds(unknown_for)) };
        super::decide(&unused, owner, &Readings::at(at(now)), &policy())
    };
    let kept = |until| {
        Decision::Keep(Kept { why: KeepReason::OwnerUnknown(Unknown::Failing), until: Some(at(until)) })
    };
    assert_eq!(decide(1_000_000, 0), kept(1_005_000));
    assert_eq!(decide(1_000_000, 4999), kept(1_000_001));
    assert_eq!(decide(1_000_000, 5000), Decision::Delete(DeletionReason::MaxUnusedReached));
    // It was uploaded while its owner was unknown already.
    assert_eq!(decide(4000, 9000), kept(5000));
}

#[test]
fn a_used_resource_stays_if_no_cluster_is_asked() {
    assert_stays(&life(Some(50), OwnerHistory::default()), Presence::NotAsked, KeepReason::OwnersNotAsked);
}

#[test]
fn without_objects_it_waits_for_a_reader_and_then_for_the_next_one() {
    let presence = Presence::NoObjects;
    let unread = life(None, OwnerHistory::default());
    let reason = DeletionReason::MaxUnusedReached;
    assert_goes(&unread, presence, &policy(), KeepReason::NotReadYet, 5000, reason);
    let read = life(Some(700), OwnerHistory::default());
    let reason = DeletionReason::NotReadAgain;
    assert_goes(&read, presence, &policy(), KeepReason::ReadRecently, 1700, reason);
    // This server has run for 400 s: the reader may have waited for it.
    let owner = Knowledge { presence, unknown_for: Some(seconds(400)) };
    let decision = super::decide(&read, owner, &Readings::at(at(9000)), &policy());
    assert_eq!(decision, Decision::Keep(Kept { why: KeepReason::ReadRecently, until: Some(at(9600)) }));
}

#[test]
fn ttl_and_max_age_count_although_the_owner_is_present() {
    let mut limited = life(Some(50), seen());
    limited.lifetime.ttl = Some(seconds(300));
    let why = KeepReason::OwnerPresent;
    assert_goes(&limited, Presence::Present, &policy(), why, 300, DeletionReason::TtlReached);
    let strict = Policy { max_age: Some(seconds(200)), ..policy() };
    assert_goes(&limited, Presence::Present, &strict, why, 200, DeletionReason::MaxAgeReached);
}

#[test]
fn a_clock_that_was_set_back_before_the_creation_deletes_nothing() {
    let lifetime = Lifetime { unused_timeout: Duration::ZERO, ttl: Some(Duration::ZERO) };
    let zero = Life { lifetime, ..life(None, OwnerHistory::default()) };
    let policy = Policy { max_age: Some(Duration::ZERO), ..policy() };
    let decision = decide(&zero, Presence::Absent, &Readings::at(at(-1)), &policy);
    assert!(matches!(decision, Decision::Keep(_)), "{decision:?}");
}

fn any_presence() -> impl Strategy<Value = Presence> {
    prop_oneof![
        Just(Presence::Present),
        Just(Presence::Finished),
        Just(Presence::Absent),
        Just(Presence::NotAsked),
        Just(Presence::NoObjects),
        proptest::sample::select(unknowns()).prop_map(Presence::Unknown),
    ]
}

prop_compose! {
    fn any_life()(
        unused in 0_u64..100, ttl in proptest::option::of(0_u64..100),
        used in proptest::option::of(0_i64..100), seen in proptest::option::of(0_i64..100),
        absent in proptest::option::of(0_i64..100), finished in proptest::option::of(0_i64..100),
    ) -> Life {
        let lifetime = Lifetime { unused_timeout: seconds(unused), ttl: ttl.map(seconds) };
        let owner_history =
            OwnerHistory { seen_at: seen.map(at), absent_since: absent.map(at), finished_since: finished.map(at) };
        Life { created_at: at(0), lifetime, last_used_at: used.map(at), owner_history }
    }
}

prop_compose! {
    fn any_policy()(
        max_age in proptest::option::of(0_u64..200), max_unused in 0_u64..200, grace in 0_u64..50,
        retention in proptest::option::of(0_u64..100),
    ) -> Policy {
        Policy {
            max_age: max_age.map(seconds), max_unused: seconds(max_unused), orphan_grace: seconds(grace),
            finished_owner_retention: retention.map(seconds), max_deletions_per_sweep: 100, stray_age: Duration::ZERO,
        }
    }
}

/// Whether the decision follows from time alone, without the owner's presence.
fn is_by_time_alone(decision: Decision) -> bool {
    use DeletionReason::{MaxAgeReached, MaxUnusedReached, TtlReached};
    matches!(decision, Decision::Delete(MaxAgeReached | TtlReached | MaxUnusedReached))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_goes_once_goes_at_any_later_time(
        life in any_life(), presence in any_presence(), policy in any_policy(), now in -10_i64..300, later in 0_i64..300,
    ) {
        if let Decision::Delete(_) = decide(&life, presence, &Readings::at(at(now)), &policy) {
            let later = decide(&life, presence, &Readings::at(at(now + later)), &policy);
            prop_assert!(matches!(later, Decision::Delete(_)));
        }
    }

    // Invariant: an unknown owner deletes nothing, used or not; only time does.
    #[test]
    fn what_is_not_known_deletes_nothing_but_by_time_alone(
        life in any_life(), unknown in proptest::sample::select(unknowns()), policy in any_policy(),
        now in -10_i64..100_000,
    ) {
        let decision = decide(&life, Presence::Unknown(unknown), &Readings::at(at(now)), &policy);
        prop_assert!(matches!(decision, Decision::Keep(_)) || is_by_time_alone(decision));
        if life.is_used() {
            prop_assert!(decision != Decision::Delete(DeletionReason::MaxUnusedReached));
        }
    }

    // Invariant: a resource with a present owner is deleted by `ttl` or age only, also while a queue holds its pod
    // back.
    #[test]
    fn what_has_its_owner_goes_by_ttl_or_age_only(
        life in any_life(), policy in any_policy(), now in -10_i64..100_000,
    ) {
        let decision = decide(&life, Presence::Present, &Readings::at(at(now)), &policy);
        prop_assert!(matches!(decision, Decision::Keep(_)) || is_by_time_alone(decision));
        prop_assert!(decision != Decision::Delete(DeletionReason::MaxUnusedReached));
    }

    // Invariant: no resource is deleted before its agreed time, and one that is due stays due.
    #[test]
    fn what_is_kept_until_a_time_goes_at_that_time_and_not_before(
        life in any_life(), presence in any_presence(), policy in any_policy(), now in 0_i64..300,
    ) {
        if let Decision::Keep(Kept { until: Some(until), .. }) =
            decide(&life, presence, &Readings::at(at(now)), &policy)
        {
            prop_assert!(until > at(now));
            let then = decide(&life, presence, &Readings::at(until), &policy);
            prop_assert!(matches!(then, Decision::Delete(_)));
            let just_before = until.checked_sub(Duration::from_millis(1)).unwrap();
            let before = decide(&life, presence, &Readings::at(just_before), &policy);
            prop_assert!(matches!(before, Decision::Keep(_)));
        }
    }

    #[test]
    fn a_jump_of_the_clock_deletes_nothing_that_its_true_age_would_keep(
        life in any_life(), presence in any_presence(), policy in any_policy(), now in 0_i64..300, jump in 1_i64..100_000,
    ) {
        // Observations are never later than the present.
        let before_now = |time: Option<Timestamp>| time.filter(|time| *time <= at(now));
        let OwnerHistory { seen_at, absent_since, finished_since } = life.owner_history;
        let owner_history = OwnerHistory {
            seen_at: before_now(seen_at), absent_since: before_now(absent_since),
            finished_since: before_now(finished_since),
        };
        let life = Life { last_used_at: before_now(life.last_used_at), owner_history, ..life };
        let true_time = decide(&life, presence, &Readings::at(at(now)), &policy);
        if matches!(true_time, Decision::Keep(_)) {
            let jumped = decide(&life, presence, &Readings::with_jump(at(now + jump), jump), &policy);
            prop_assert!(matches!(jumped, Decision::Keep(_)));
        }
    }
}
