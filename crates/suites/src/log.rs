//! Every sentence of the documentation of `LogStore`.

use bytes::Bytes;
use cloakroom_storage::log::{LogError, LogStore, Position, WriterStamp, WriterState};
use cloakroom_storage::stamp::Installation;
use cloakroom_storage::store::StoreError;
use cloakroom_testing::noise::noise;

use crate::stores::StoreData;
use crate::{Rule, rules};

pub const RULES: &[Rule<StoreData>] = rules!(
    the_stamp_of_a_writer_is_replaced_only_by_those_who_have_seen_it,
    of_two_that_replace_a_stamp_at_once_one_succeeds,
    a_group_reads_back_and_may_be_written_again,
    groups_are_removed_up_to_a_place_with_those_of_earlier_epochs,
    copies_are_listed_in_order_and_read_back,
    room_is_made_of_the_reserve_and_then_of_all_copies_but_the_newest,
);

/// How often two race, and how often with faults on the way.
const ROUNDS: u64 = 100;
const FAULTY_ROUNDS: u64 = 20;

/// How often a caller repeats what may not have been done.
const MOST_TIMES: usize = 5;

async fn until_done(call: impl AsyncFn() -> Result<(), LogError>) {
    for _ in 0..MOST_TIMES {
        match call().await {
            Err(LogError::Store(StoreError::Unavailable(_))) => {}
            done => return done.unwrap(),
        }
    }
    panic!("{MOST_TIMES} times in vain");
}

fn log(store: &StoreData) -> &dyn LogStore {
    &**store.log.as_ref().unwrap()
}

fn at(epoch: u64, number: u64) -> Position {
    Position { epoch, number }
}

fn stamp(epoch: u64) -> WriterStamp {
    let installation = Installation::generate(&mut rand::rng());
    WriterStamp { epoch, ..WriterStamp::claim(None, installation, &mut rand::rng()) }
}

async fn the_stamp_of_a_writer_is_replaced_only_by_those_who_have_seen_it(store: &StoreData) {
    let log = log(store);
    assert_eq!(log.stamp().await.unwrap(), None);
    let (first, other) = (stamp(1), stamp(1));
    assert!(!log.replace_stamp(Some(other), first).await.unwrap(), "there is none");
    assert!(log.replace_stamp(None, first).await.unwrap());
    assert!(!log.replace_stamp(None, other).await.unwrap());
    assert!(!log.replace_stamp(Some(other), stamp(2)).await.unwrap());
    assert_eq!(log.stamp().await.unwrap(), Some(first));
    let next = first.next(at(1, u64::MAX), WriterState::Stopped);
    assert!(log.replace_stamp(Some(first), next).await.unwrap());
    assert_eq!(log.stamp().await.unwrap(), Some(next));
}

async fn of_two_that_replace_a_stamp_at_once_one_succeeds(store: &StoreData) {
    let log = log(store);
    let mut seen = None;
    let rounds = if store.faults.is_some() { FAULTY_ROUNDS } else { ROUNDS };
    for epoch in 1..=rounds {
        let (one, other) = (stamp(epoch), stamp(epoch));
        let (is_one, is_other) = tokio::join!(log.replace_stamp(seen, one), log.replace_stamp(seen, other));
        let (is_one, is_other) = (is_one.unwrap(), is_other.unwrap());
        assert!(is_one != is_other, "round {epoch}: {is_one}, {is_other}");
        seen = Some(if is_one { one } else { other });
        assert_eq!(log.stamp().await.unwrap(), seen, "round {epoch}");
    }
}

async fn a_group_reads_back_and_may_be_written_again(store: &StoreData) {
    let log = log(store);
    let group = Bytes::from_static(b"{}\n{}\n");
    assert_eq!(log.group(at(1, 1)).await.unwrap(), None);
    for _ in 0..2 {
        until_done(async || log.write_group(at(1, 1), group.clone()).await).await;
        assert_eq!(log.group(at(1, 1)).await.unwrap(), Some(group.clone()));
    }
    assert_eq!(log.group(at(1, 2)).await.unwrap(), None);
    let large = Bytes::from(noise(2 << 20));
    until_done(async || log.write_group(at(2, 1), large.clone()).await).await;
    assert!(log.group(at(2, 1)).await.unwrap() == Some(large));
}

async fn groups_are_removed_up_to_a_place_with_those_of_earlier_epochs(store: &StoreData) {
    let log = log(store);
    log.remove_groups(at(1, 1)).await.unwrap();
    let all = [at(1, 30), at(2, 9), at(2, 10), at(2, 11), at(3, 1)];
    for place in all {
        until_done(async || log.write_group(place, Bytes::from(place.to_string())).await).await;
    }
    log.remove_groups(at(2, 10)).await.unwrap();
    for place in all {
        let expected = (place > at(2, 10)).then(|| Bytes::from(place.to_string()));
        assert_eq!(log.group(place).await.unwrap(), expected, "{place}");
    }
}

async fn copies_are_listed_in_order_and_read_back(store: &StoreData) {
    let (log, folder) = (log(store), tempfile::tempdir().unwrap());
    assert_eq!(log.copies().await.unwrap(), []);
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    // A bucket takes one in parts, and the others in a single request.
    for (place, length) in [(at(2, 10), 12 << 20), (at(2, 9), 1), (at(10, 0), 4096)] {
        std::fs::write(&from, noise(length)).unwrap();
        until_done(async || log.write_copy(place, &from).await).await;
        log.read_copy(place, &to).await.unwrap();
        assert!(std::fs::read(&to).unwrap() == std::fs::read(&from).unwrap());
        assert!(log.read_copy(place, &to).await.is_err(), "there is a file");
        std::fs::remove_file(&to).unwrap();
    }
    let places = async || log.copies().await.unwrap().iter().map(|copy| copy.at).collect::<Vec<_>>();
    assert_eq!(places().await, [at(2, 9), at(2, 10), at(10, 0)]);
    for _ in 0..2 {
        log.remove_copy(at(2, 10)).await.unwrap();
    }
    assert_eq!(places().await, [at(2, 9), at(10, 0)]);
    assert!(log.read_copy(at(2, 10), &to).await.is_err());
}

async fn room_is_made_of_the_reserve_and_then_of_all_copies_but_the_newest(store: &StoreData) {
    let (log, folder) = (log(store), tempfile::tempdir().unwrap());
    assert!(!log.make_room().await.unwrap(), "there is nothing");
    let file = folder.path().join("copy");
    std::fs::write(&file, "copy").unwrap();
    for place in [at(1, 0), at(1, 7), at(2, 0)] {
        until_done(async || log.write_copy(place, &file).await).await;
    }
    for _ in 0..2 {
        log.keep_reserve().await.unwrap();
    }
    for left in [3, 2, 1] {
        assert!(log.make_room().await.unwrap());
        assert_eq!(log.copies().await.unwrap().len(), left);
    }
    assert!(!log.make_room().await.unwrap());
    assert_eq!(log.copies().await.unwrap()[0].at, at(2, 0));
}
