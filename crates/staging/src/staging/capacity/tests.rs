use futures_util::FutureExt as _;

use super::hold::STEP_BYTES;
use super::overdue::Departures;
use super::*;
use crate::ledger::{Account, SqliteLedger};
use crate::staging::{Share, UploadError};

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

/// A capacity with a ledger in which nothing is stored.
async fn capacity(limits: Limits) -> Arc<Capacity> {
    let folder = tempfile::tempdir().unwrap();
    let ledger = SqliteLedger::open(&folder.path().join("ledger.db")).await.unwrap();
    Arc::new(Capacity::new(limits, Arc::new(ledger)))
}

fn id() -> ResourceId {
    ResourceId::generate(&mut rand::rng())
}

fn beginning(namespace: &str, announced: Option<u64>) -> Beginning {
    let holder = Some(Holder::namespace(namespace));
    Beginning { id: id(), holder, announced, at: Duration::ZERO }
}

trait Refused {
    fn refusal(self) -> NoRoom;
}

impl<T> Refused for Result<T, Shortage> {
    fn refusal(self) -> NoRoom {
        self.err().unwrap().no_room
    }
}

#[tokio::test]
async fn bytes_that_are_promised_but_not_written_are_not_promised_again() {
    let capacity = capacity(limits(100)).await;
    let begin = |bytes, free| capacity.begin(beginning("new", Some(bytes)), Some(free));
    let first = begin(500, 1000).ok().unwrap();
    assert_eq!(begin(401, 1000).refusal(), NoRoom::Disk { free: 500, keep: 100 });
    first.written(500);
    let second = begin(401, 501).ok().unwrap();
    assert_eq!(second.grow(1, Some(501)).refusal(), NoRoom::Disk { free: 100, keep: 100 });
    second.grow(1, Some(502)).unwrap();
    assert_eq!(second.reserved(), 402);
}

#[tokio::test]
async fn an_upload_of_unknown_length_reserves_in_steps() {
    let capacity = capacity(limits(0)).await;
    let hold = capacity.begin(beginning("new", None), None).ok().unwrap();
    assert_eq!(hold.missing_for(1), STEP_BYTES);
    hold.grow(STEP_BYTES, None).unwrap();
    assert_eq!(hold.missing_for(STEP_BYTES), 0);
    hold.written(STEP_BYTES - 1);
    assert_eq!(hold.missing_for(2), STEP_BYTES);
}

/// A capacity in which each holder may have 25 of 100 uploads, 250 of 1,000 resources, and a quarter of the room.
async fn shared(max_total_size: Option<u64>) -> Arc<Capacity> {
    let mut limits = limits(GIB);
    limits.share = Some("25%".parse::<Share>().unwrap());
    (limits.capacity.max_resource_size, limits.capacity.max_total_size) = (GIB, max_total_size);
    limits.capacity.least_charge = 7;
    capacity(limits).await
}

#[tokio::test]
async fn an_upload_is_charged_shares_first_and_then_what_all_have() {
    let capacity = shared(Some(8 * GIB)).await;
    let holder = Holder::namespace("demo");
    let charged = async |holder, bytes| {
        let charges = capacity.charges(holder, bytes, Some(100 * GIB)).await.unwrap();
        charges.into_iter().map(|charge| (charge.account, charge.amount, charge.limit)).collect::<Vec<_>>()
    };
    let of_all = |bytes| [(Account::Resources, 1, Some(1000)), (Account::Bytes, bytes, Some(8 * GIB))];
    let of_holder = [
        (Account::ResourcesOf(holder.clone()), 1, Some(250)),
        (Account::BytesOf(holder.clone()), 500, Some(2 * GIB)),
    ];
    assert_eq!(charged(Some(&holder), 500).await, [of_holder, of_all(500)].concat());
    assert_eq!(charged(None, 5).await, of_all(7), "it counts for something");
}

#[tokio::test]
async fn without_a_limit_the_disk_is_the_room_and_one_bundle_always_fits_a_share() {
    let capacity = shared(None).await;
    let share = "25%".parse().unwrap();
    // The disk has 9 GiB free, and 1 GiB must stay free: a share is 2 GiB, however much of it is written already.
    let first = capacity.begin(beginning("greedy", Some(2 * GIB)), Some(9 * GIB)).ok().unwrap();
    assert_eq!(capacity.part_of_room(share, 2 * GIB, Some(9 * GIB)), Some(2 * GIB));
    first.written(GIB);
    assert_eq!(capacity.part_of_room(share, 2 * GIB, Some(8 * GIB)), Some(2 * GIB));
    // There are 2 GiB in all, but a share is never below one bundle.
    assert_eq!(capacity.part_of_room(share, 0, Some(3 * GIB)), Some(GIB));
    assert_eq!(capacity.part_of_room(share, 0, None), None);
}

#[tokio::test]
async fn a_holder_has_its_share_of_uploads_and_others_theirs() {
    let capacity = shared(None).await;
    let begin = |namespace| capacity.begin(beginning(namespace, Some(0)), None);
    let uploads: Vec<Hold> = (0..25).map(|_| begin("greedy").ok().unwrap()).collect();
    let refused = NoRoom::UploadsOf { holder: Holder::namespace("greedy"), limit: 25 };
    assert_eq!(begin("greedy").refusal(), refused);
    assert!(begin("honest").is_ok());
    drop(uploads);
    assert!(begin("greedy").is_ok());
}

#[tokio::test]
async fn an_upload_of_a_user_takes_a_place_of_its_namespace_once_that_is_known() {
    let capacity = shared(None).await;
    let user = Beginning { holder: Some(Holder::user("jo")), ..beginning("", Some(0)) };
    let hold = capacity.begin(user, None).ok().unwrap();
    let full: Vec<_> =
        (0..25).map(|_| capacity.begin(beginning("full", Some(0)), None).ok().unwrap()).collect();
    let to = |namespace: &str| hold.pass_to(Some(Holder::namespace(namespace)));
    let refused = NoRoom::UploadsOf { holder: Holder::namespace("full"), limit: 25 };
    assert_eq!(to("full").refusal(), refused);
    assert_eq!(hold.holder(), Some(Holder::user("jo")));
    assert_eq!(to("empty").unwrap(), Some(Holder::user("jo")));
    drop(full);
    assert_eq!(to("full").unwrap(), Some(Holder::namespace("empty")));
}

/// Six minutes after it began, an upload of no bytes is overdue.
const LATER: Duration = Duration::from_mins(6);

/// Stands for the handler of an upload, which drops what it holds when it is told to end.
fn obedient(hold: Hold) -> tokio::task::JoinHandle<()> {
    let end = hold.end();
    tokio::spawn(async move {
        end.cancelled().await;
        drop(hold);
    })
}

fn begun(capacity: &Arc<Capacity>, at: Duration, bytes: u64) -> Hold {
    capacity.begin(Beginning { at, ..beginning("new", Some(bytes)) }, None).ok().unwrap()
}

/// A shortage of the bytes that all uploads share.
fn missing(missing: u64) -> Shortage {
    Shortage { no_room: NoRoom::Total { limit: 110, taken: 110 }, missing }
}

#[tokio::test]
async fn overdue_uploads_end_when_another_one_needs_their_room_the_worst_ones_first() {
    let capacity = capacity(limits(0)).await;
    let begin = |at, bytes| obedient(begun(&capacity, Duration::from_secs(at), bytes));
    let (worst, bad, fresh) = (begin(0, 40), begin(10, 40), begin(300, 20));
    let needy = id();
    assert!(capacity.end_overdue(needy, Duration::from_secs(299), missing(20)).is_err());
    assert_eq!(capacity.uploads(), 3);
    capacity.wait_for(capacity.end_overdue(needy, LATER, missing(20)).unwrap()).await.unwrap();
    worst.await.unwrap();
    assert!(!bad.is_finished() && !fresh.is_finished());
}

#[tokio::test]
async fn no_upload_ends_in_vain() {
    let capacity = capacity(limits(0)).await;
    let _overdue = obedient(begun(&capacity, Duration::ZERO, 50));
    let _fresh = begun(&capacity, LATER, 50);
    assert!(capacity.end_overdue(id(), LATER, missing(51)).is_err());
    assert_eq!(capacity.uploads(), 2);
}

#[tokio::test]
async fn a_used_up_share_ends_no_upload_of_another_holder() {
    let capacity = shared(None).await;
    let begin = |namespace: &str| capacity.begin(beginning(namespace, Some(0)), None);
    let honest = obedient(begin("honest").ok().unwrap());
    let fresh = || Beginning { at: LATER, ..beginning("greedy", Some(0)) };
    let _fresh: Vec<Hold> = (0..25).map(|_| capacity.begin(fresh(), None).ok().unwrap()).collect();
    let shortage = begin("greedy").err().unwrap();
    assert!(capacity.end_overdue(id(), LATER, shortage).is_err());
    let others: Vec<_> = (0..24).map(|_| obedient(begin("honest").ok().unwrap())).collect();
    let shortage = begin("honest").err().unwrap();
    capacity.wait_for(capacity.end_overdue(id(), LATER, shortage).unwrap()).await.unwrap();
    assert_eq!(usize::from(honest.is_finished()) + others.iter().filter(|it| it.is_finished()).count(), 1);
}

#[tokio::test]
async fn an_upload_that_is_told_to_end_ends_at_once_and_ends_no_other() {
    let capacity = capacity(limits(0)).await;
    let begin = |bytes| begun(&capacity, Duration::ZERO, bytes);
    // All three are overdue. The last one stays although it is told to end.
    let (one, other, stubborn) = (begin(30), begin(30), begin(40));
    let grow =
        |hold: &Hold| -> Result<Departures, UploadError> { capacity.end_overdue(hold.id, LATER, missing(1)) };
    let waiting = grow(&one).unwrap();
    let first_to_end = if other.end().is_cancelled() { &other } else { &stubborn };
    assert!(matches!(grow(first_to_end), Err(UploadError::Overdue { .. })));
    assert!(!one.end().is_cancelled(), "it ended the one that ended it");
    // Now the shortage needs all others, and the waiting upload learns it while it waits.
    let _all = capacity.end_overdue(id(), LATER, missing(100)).unwrap();
    let waited = capacity.wait_for(waiting).now_or_never();
    assert!(matches!(waited, Some(Err(UploadError::Overdue { .. }))), "{waited:?}");
    drop((one, other, stubborn));
}

#[tokio::test]
async fn uploads_that_are_told_to_end_already_make_room_before_others_are() {
    let capacity = capacity(limits(0)).await;
    let (worst, ending) =
        (begun(&capacity, Duration::ZERO, 40), begun(&capacity, Duration::from_secs(10), 60));
    ending.end().cancel();
    capacity.end_overdue(id(), LATER, missing(30)).unwrap();
    assert!(!worst.end().is_cancelled());
}
