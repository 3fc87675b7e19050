use std::time::Duration;

use super::reservation::STEP_BYTES;
use super::*;
use crate::ready::Account;
use crate::rules::Share;

const GIB: u64 = 1 << 30;

fn limits(min_free_space: u64) -> Limits {
    Limits {
        capacity: CapacityLimits {
            max_resource_size: u64::MAX,
            max_total_size: None,
            min_free_space,
            least_charge: 0,
        },
        max_resources: 1000,
        owner_memory_bytes: u64::MAX,
        max_concurrent_uploads: 100,
        max_concurrent_downloads: 100,
        share: None,
        deletion_wait: Duration::from_mins(10),
        max_age: None,
    }
}

fn capacity(limits: Limits) -> Arc<Capacity> {
    Arc::new(Capacity::new(limits, Arc::default()))
}

fn beginning(namespace: &str, announced: Option<u64>) -> Beginning {
    let holder = Some(Holder::namespace(namespace));
    Beginning { id: ResourceId::generate(&mut rand::rng()), holder, announced }
}

#[test]
fn bytes_that_are_promised_but_not_written_are_not_promised_again() {
    let capacity = capacity(limits(100));
    let begin = |bytes, free| capacity.begin(beginning("new", Some(bytes)), Some(free));
    let first = begin(500, 1000).ok().unwrap();
    assert_eq!(begin(401, 1000).err().unwrap(), NoRoom::Disk { free: 500, keep: 100 });
    first.written(500);
    let second = begin(401, 501).ok().unwrap();
    assert_eq!(second.grow(1, Some(501)).err().unwrap(), NoRoom::Disk { free: 100, keep: 100 });
    second.grow(1, Some(502)).unwrap();
    assert_eq!(second.reserved(), 402);
}

#[test]
fn an_upload_of_unknown_length_reserves_in_steps() {
    let capacity = capacity(limits(0));
    let reservation = capacity.begin(beginning("new", None), None).ok().unwrap();
    assert_eq!(reservation.missing_for(1), STEP_BYTES);
    reservation.grow(STEP_BYTES, None).unwrap();
    assert_eq!(reservation.missing_for(STEP_BYTES), 0);
    reservation.written(STEP_BYTES - 1);
    assert_eq!(reservation.missing_for(2), STEP_BYTES);
}

/// A capacity in which each holder may have 25 of 100 uploads, 250 of 1,000 resources, and a quarter of the room.
fn shared(max_total_size: Option<u64>) -> Arc<Capacity> {
    let mut limits = limits(GIB);
    limits.share = Some("25%".parse::<Share>().unwrap());
    (limits.capacity.max_resource_size, limits.capacity.max_total_size) = (GIB, max_total_size);
    limits.capacity.least_charge = 7;
    capacity(limits)
}

#[test]
fn an_upload_is_charged_shares_first_and_then_what_all_have() {
    let capacity = shared(Some(8 * GIB));
    let holder = Holder::namespace("demo");
    let charged = |holder, bytes| {
        let charges = capacity.charges(holder, bytes, Some(100 * GIB));
        charges.into_iter().map(|charge| (charge.account, charge.amount, charge.limit)).collect::<Vec<_>>()
    };
    let of_all = |bytes| [(Account::Resources, 1, Some(1000)), (Account::Bytes, bytes, Some(8 * GIB))];
    let of_holder = [
        (Account::ResourcesOf(holder.clone()), 1, Some(250)),
        (Account::BytesOf(holder.clone()), 500, Some(2 * GIB)),
    ];
    assert_eq!(charged(Some(&holder), 500), [of_holder, of_all(500)].concat());
    assert_eq!(charged(None, 5), of_all(7), "it counts for something");
}

#[test]
fn the_disk_is_the_room_without_a_limit_and_a_share_fits_one_bundle() {
    let capacity = shared(None);
    let share = "25%".parse().unwrap();
    // The disk has 9 GiB free, and 1 GiB must stay free: a share is 2 GiB, however much of it is written already.
    let first = capacity.begin(beginning("greedy", Some(2 * GIB)), Some(9 * GIB)).ok().unwrap();
    assert_eq!(capacity.room_of_share(share, 2 * GIB, Some(9 * GIB)), Some(2 * GIB));
    first.written(GIB);
    assert_eq!(capacity.room_of_share(share, 2 * GIB, Some(8 * GIB)), Some(2 * GIB));
    // There are 2 GiB in all, but a share is never below one bundle.
    assert_eq!(capacity.room_of_share(share, 0, Some(3 * GIB)), Some(GIB));
    assert_eq!(capacity.room_of_share(share, 0, None), None);
}

#[test]
fn a_holder_has_its_share_of_uploads_and_others_theirs() {
    let capacity = shared(None);
    let begin = |namespace| capacity.begin(beginning(namespace, Some(0)), None);
    let uploads: Vec<Reservation> = (0..25).map(|_| begin("greedy").ok().unwrap()).collect();
    let refused = NoRoom::UploadsOf { holder: Holder::namespace("greedy"), limit: 25 };
    assert_eq!(begin("greedy").err().unwrap(), refused);
    assert!(begin("honest").is_ok());
    drop(uploads);
    assert!(begin("greedy").is_ok());
}

#[test]
fn an_upload_of_a_user_takes_a_place_of_its_namespace_once_that_is_known() {
    let capacity = shared(None);
    let user = Beginning { holder: Some(Holder::user("jo")), ..beginning("", Some(0)) };
    let reservation = capacity.begin(user, None).ok().unwrap();
    let full: Vec<_> =
        (0..25).map(|_| capacity.begin(beginning("full", Some(0)), None).ok().unwrap()).collect();
    let to = |namespace: &str| reservation.pass_to(&Holder::namespace(namespace), None);
    let refused = NoRoom::UploadsOf { holder: Holder::namespace("full"), limit: 25 };
    assert_eq!(to("full").err().unwrap(), refused);
    assert_eq!(reservation.holder(), Some(Holder::user("jo")));
    to("empty").unwrap();
    assert_eq!(reservation.holder(), Some(Holder::namespace("empty")));
    drop(full);
    to("full").unwrap();
    assert_eq!(reservation.holder(), Some(Holder::namespace("full")));
}
