use std::net::IpAddr;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio_util::task::TaskTracker;

use super::*;

fn host(last: u8) -> Host {
    IpAddr::from([10, 0, 0, last]).into()
}

fn single(last: u8) -> Visitor {
    Visitor { host: host(last), is_single: true }
}

async fn in_time(held_back: impl Future<Output = bool>) -> bool {
    let given_way = tokio::time::timeout(Duration::from_secs(30), held_back).await;
    given_way.expect("it does not give way")
}

fn left(slots: &[Slot]) -> Vec<bool> {
    slots.iter().map(|slot| slot.leave.is_cancelled()).collect()
}

fn taken(slots: &Slots, hosts: &[u8]) -> Vec<Slot> {
    hosts.iter().map(|last| slots.take(single(*last)).unwrap()).collect()
}

#[tokio::test]
async fn the_host_that_has_most_gives_up_its_oldest_idle_connection() {
    let slots = Slots::new(6, Occupancy::default());
    let mut all = taken(&slots, &[1, 2, 2, 1, 2, 3]);
    assert!(slots.take(single(4)).is_none());
    slots.make_room_for(&[host(4)]);
    assert_eq!(left(&all), [false, true, false, false, false, false]);
    slots.make_room_for(&[host(4)]);
    assert_eq!(left(&all).iter().filter(|left| **left).count(), 1, "one leaves for each that waits");
    drop(all.remove(1));
    slots.freed().now_or_never().unwrap();
    assert!(slots.take(single(4)).is_some());
}

#[tokio::test]
async fn a_connection_with_a_transfer_keeps_its_place() {
    let (slots, work) = (Slots::new(3, Occupancy::default()), TaskTracker::new());
    let all = taken(&slots, &[1, 1, 1]);
    let _first = all[0].activity.begin(work.token());
    slots.make_room_for(&[host(2)]);
    assert_eq!(left(&all), [false, true, false]);
}

#[tokio::test]
async fn a_host_that_has_most_takes_from_itself_and_from_no_other() {
    let slots = Slots::new(4, Occupancy::default());
    let mut all = taken(&slots, &[1, 1, 1, 2]);
    slots.make_room_for(&[host(1)]);
    assert_eq!(left(&all), [true, false, false, false]);
    drop(all.remove(0));
    all.push(slots.take(single(1)).unwrap());
    let work = TaskTracker::new();
    let _busy = [0, 1, 3].map(|at| all[at].activity.begin(work.token()));
    slots.make_room_for(&[host(1)]);
    assert_eq!(left(&all), [false; 4]);
}

#[tokio::test]
async fn a_held_back_refusal_gives_way_first_and_counts_until_its_time_to_send() {
    let (slots, work) = (Slots::new(4, Occupancy::default()), TaskTracker::new());
    let mut all = taken(&slots, &[1, 1, 1, 2]);
    let _refused = all[2].activity.begin(work.token());
    let until = Instant::now() + Duration::from_hours(1);
    let refused = all.remove(2);
    let mut held_back = Box::pin(refused.hold_back(until));
    assert!(held_back.as_mut().now_or_never().is_none());
    slots.make_room_for(&[host(3)]);
    assert!(!in_time(held_back).await, "the refusal was sent");
    assert_eq!(left(&all), [false; 3]);
    drop(refused);
    let third = slots.take(single(3)).unwrap();
    // With three places, the one that ended early included, the host still has most.
    slots.make_room_for(&[host(2)]);
    assert_eq!(left(&all), [true, false, false]);
    drop(all.remove(0));
    drop(third);
    let more = taken(&slots, &[2, 2]);
    lock(&slots.taken).make_room_for(host(3), until + Duration::from_secs(1));
    assert_eq!((left(&all), left(&more)), (vec![false, true], vec![false, false]), "its time is over");
}

#[tokio::test]
async fn an_idle_connection_of_a_proxy_keeps_its_place_but_not_a_refused_one() {
    let (slots, work) = (Slots::new(3, Occupancy::default()), TaskTracker::new());
    let proxy = Visitor { is_single: false, ..single(1) };
    let all: Vec<Slot> = (0..3).map(|_| slots.take(proxy).unwrap()).collect();
    slots.make_room_for(&[host(2)]);
    assert_eq!(left(&all), [false; 3]);
    let _refused = all[1].activity.begin(work.token());
    let mut held_back = Box::pin(all[1].hold_back(Instant::now() + Duration::from_mins(1)));
    assert!(held_back.as_mut().now_or_never().is_none());
    slots.make_room_for(&[host(2)]);
    assert!(!in_time(held_back).await);
}

#[tokio::test]
async fn a_refusal_is_sent_at_its_time_if_nobody_needs_the_place() {
    let slots = Slots::new(1, Occupancy::default());
    let slot = slots.take(single(1)).unwrap();
    assert!(slot.hold_back(Instant::now() + Duration::from_millis(20)).await);
    let _work = slot.activity.begin(TaskTracker::new().token());
    slots.make_room_for(&[host(2)]);
    assert!(!slot.leave.is_cancelled(), "it is not held back any more");
}

#[tokio::test]
async fn hosts_that_are_gone_take_no_memory() {
    let slots = Slots::new(4, Occupancy::default());
    drop(taken(&slots, &[1, 2, 2]));
    assert!(lock(&slots.taken).hosts.is_empty());
    assert_eq!(slots.count(), 0);
}
