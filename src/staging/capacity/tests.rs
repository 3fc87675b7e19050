use futures_util::FutureExt as _;

use super::hold::STEP_BYTES;
use super::overdue::Departures;
use super::*;
use crate::staging::{Share, StageError};

const GIB: u64 = 1 << 30;

fn limits(max_total_size: Option<u64>, min_free_space: u64) -> Limits {
    Limits {
        capacity: CapacityLimits {
            max_resource_size: u64::MAX,
            max_total_size,
            min_free_space,
            least_charge: 0,
        },
        max_resources: 1000,
        owner_memory_bytes: usize::MAX,
        max_concurrent_uploads: 100,
        max_concurrent_downloads: 100,
        share: None,
    }
}

/// With 10 bytes stored for a namespace `old`.
fn capacity(limits: Limits) -> Arc<Capacity> {
    let stored = Stored { resources: 1, bytes: 10 };
    Arc::new(Capacity::new(limits, &BTreeMap::from([("old".to_owned(), stored)])))
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

impl<T: std::fmt::Debug> Refused for Result<T, Shortage> {
    fn refusal(self) -> NoRoom {
        self.unwrap_err().no_room
    }
}

impl Capacity {
    fn begun(self: &Arc<Self>, beginning: Beginning, free_on_disk: Option<u64>) -> Result<Hold, Shortage> {
        self.begin(&mut self.account(), beginning, free_on_disk)
    }
}

impl Hold {
    fn grown(&self, bytes: u64, free_on_disk: Option<u64>) -> Result<(), Shortage> {
        self.grow(&mut self.capacity.account(), bytes, free_on_disk)
    }

    fn passed_to(&self, holder: &Holder, free_on_disk: Option<u64>) -> Result<(), Shortage> {
        self.pass_to(&mut self.capacity.account(), holder, free_on_disk)
    }
}

#[test]
fn what_is_stored_and_what_is_promised_count_together() {
    let capacity = capacity(limits(Some(100), 0));
    let begin = |bytes| capacity.begun(beginning("new", Some(bytes)), None);
    let first = begin(60).unwrap();
    assert_eq!(begin(31).refusal(), NoRoom::Total { limit: 100, taken: 70 });
    begin(30).unwrap();
    first.stored(50);
    assert_eq!((capacity.stored_bytes(), capacity.uploads()), (60, 0));
    begin(40).unwrap();
    capacity.removed("new", 50);
    begin(90).unwrap();
}

#[test]
fn bytes_that_are_promised_but_not_written_are_not_promised_again() {
    let capacity = capacity(limits(None, 100));
    let begin = |bytes, free| capacity.begun(beginning("new", Some(bytes)), Some(free));
    let first = begin(500, 1000).unwrap();
    assert_eq!(begin(401, 1000).refusal(), NoRoom::Disk { free: 500, keep: 100 });
    first.written(500);
    begin(401, 501).unwrap();
}

#[test]
fn the_truth_is_taken_over_only_if_nothing_changed_meanwhile() {
    let capacity = capacity(limits(Some(100), 0));
    let begin = |bytes| capacity.begun(beginning("new", Some(bytes)), None);
    let truth = || BTreeMap::from([("old".to_owned(), Stored { resources: 9, bytes: 90 })]);
    let before = capacity.quiet().unwrap();
    let settling = capacity.settling();
    assert!(capacity.quiet().is_none());
    capacity.correct(before, &truth());
    drop(settling);
    capacity.correct(before, &truth());
    begin(90).unwrap();
    capacity.correct(capacity.quiet().unwrap(), &truth());
    assert_eq!(begin(11).refusal(), NoRoom::Total { limit: 100, taken: 90 });
}

#[test]
fn an_upload_of_unknown_length_reserves_in_steps() {
    let capacity = capacity(limits(None, 0));
    let hold = capacity.begun(beginning("new", None), None).unwrap();
    assert_eq!(hold.missing_for(1), STEP_BYTES);
    hold.grown(STEP_BYTES, None).unwrap();
    assert_eq!(hold.missing_for(STEP_BYTES), 0);
    hold.written(STEP_BYTES - 1);
    assert_eq!(hold.missing_for(2), STEP_BYTES);
}

#[test]
fn resources_are_bounded_by_number_and_each_counts_for_something() {
    let mut limits = limits(Some(100), 0);
    (limits.max_resources, limits.capacity.least_charge) = (3, 40);
    let capacity = capacity(limits);
    let begin = |bytes| capacity.begun(beginning("new", bytes), None);
    begin(Some(0)).unwrap().stored(0);
    assert_eq!(capacity.stored_bytes(), 50);
    assert_eq!(begin(Some(51)).refusal(), NoRoom::Total { limit: 100, taken: 50 });
    let last = begin(None).unwrap();
    assert_eq!(begin(Some(0)).refusal(), NoRoom::Resources { limit: 3 });
    drop(last);
    capacity.removed("new", 0);
    assert_eq!(capacity.stored_bytes(), 10);
}

/// Each holder may have 25 of 100 uploads, 250 of 1,000 resources, and a quarter of the room.
fn shared(max_total_size: Option<u64>) -> Arc<Capacity> {
    let mut limits = limits(max_total_size, GIB);
    limits.share = Some("25%".parse::<Share>().unwrap());
    limits.capacity.max_resource_size = GIB;
    capacity(limits)
}

#[test]
fn a_holder_has_its_share_of_the_room_and_others_theirs() {
    let capacity = shared(Some(8 * GIB));
    let begin = |namespace, bytes| capacity.begun(beginning(namespace, Some(bytes)), None);
    begin("greedy", GIB).unwrap().stored(GIB);
    let second = begin("greedy", GIB).unwrap();
    let (holder, limit) = (Holder::namespace("greedy"), 2 * GIB);
    let refused = NoRoom::RoomOf { holder, limit, taken: 2 * GIB };
    assert_eq!(begin("greedy", 1).refusal(), refused);
    begin("honest", GIB).unwrap();
    drop(second);
    begin("greedy", GIB).unwrap();
    capacity.removed("greedy", GIB);
    begin("greedy", 2 * GIB).unwrap();
}

#[test]
fn without_a_limit_the_disk_is_the_room_and_one_bundle_always_fits_a_share() {
    let capacity = shared(None);
    let begin = |namespace, bytes, free| capacity.begun(beginning(namespace, Some(bytes)), Some(free));
    // 9 GiB free, of which one is to be left: a share is 2 GiB, whatever of it is written already.
    let first = begin("greedy", 2 * GIB, 9 * GIB).unwrap();
    let refused = |limit| NoRoom::RoomOf { holder: Holder::namespace("greedy"), limit, taken: 2 * GIB };
    first.written(GIB);
    assert_eq!(begin("greedy", 3, 8 * GIB).refusal(), refused(2 * GIB + 2));
    // 2 GiB in all: a share is never below one bundle.
    begin("honest", GIB, 3 * GIB).unwrap();
    assert_eq!(begin("greedy", 1, 3 * GIB).refusal(), refused(GIB));
}

#[test]
fn a_holder_has_its_share_of_uploads_and_of_resources() {
    let capacity = shared(Some(u64::MAX));
    let begin = |namespace| capacity.begun(beginning(namespace, Some(0)), None);
    let uploads: Vec<Hold> = (0..25).map(|_| begin("greedy").unwrap()).collect();
    let holder = || Holder::namespace("greedy");
    assert_eq!(begin("greedy").refusal(), NoRoom::UploadsOf { holder: holder(), limit: 25 });
    begin("honest").unwrap();
    drop(uploads);
    for _ in 0..250 {
        begin("greedy").unwrap().stored(0);
    }
    assert_eq!(begin("greedy").refusal(), NoRoom::ResourcesOf { holder: holder(), limit: 250 });
    begin("honest").unwrap();
    capacity.removed("greedy", 0);
    begin("greedy").unwrap();
}

#[test]
fn what_a_user_began_counts_for_the_namespace_once_that_is_known() {
    let capacity = shared(Some(8 * GIB));
    let user = Beginning { holder: Some(Holder::user("jo")), ..beginning("", Some(GIB)) };
    let hold = capacity.begun(user, None).unwrap();
    begin_all(&capacity, "full", 2);
    let refused = hold.passed_to(&Holder::namespace("full"), None).refusal();
    let (holder, limit) = (Holder::namespace("full"), 2 * GIB);
    assert_eq!(refused, NoRoom::RoomOf { holder, limit, taken: 2 * GIB });
    hold.passed_to(&Holder::namespace("empty"), None).unwrap();
    hold.stored(GIB);
    begin_all(&capacity, "empty", 1);
    assert!(capacity.begun(beginning("empty", Some(1)), None).is_err());
}

fn begin_all(capacity: &Arc<Capacity>, namespace: &str, bundles: usize) {
    for _ in 0..bundles {
        capacity.begun(beginning(namespace, Some(GIB)), None).unwrap().stored(GIB);
    }
}

#[test]
fn shares_hold_from_the_start_by_what_the_ledger_knows() {
    let stored = BTreeMap::from([("greedy".to_owned(), Stored { resources: 250, bytes: 0 })]);
    let capacity = Arc::new(Capacity::new(shared(None).limits, &stored));
    assert!(capacity.begun(beginning("greedy", Some(0)), None).is_err());
    capacity.begun(beginning("honest", Some(0)), None).unwrap();
}

/// Six minutes later, an upload of nothing is overdue.
const LATER: Duration = Duration::from_mins(6);

/// Plays the handler of an upload, which gives up what it holds when it is told to.
fn obedient(hold: Hold) -> tokio::task::JoinHandle<()> {
    let end = hold.end();
    tokio::spawn(async move {
        end.cancelled().await;
        drop(hold);
    })
}

/// What an upload gets that would begin now.
fn asks(capacity: &Arc<Capacity>, beginning: &Beginning, now: Duration) -> Result<Room<Hold>, StageError> {
    capacity.take_room(beginning.id, now, |account| capacity.begin(account, beginning.clone(), None))
}

/// The uploads that it waits for.
fn departures<T: std::fmt::Debug>(asked: Result<Room<T>, StageError>) -> Departures {
    match asked {
        Ok(Room::Coming(departures)) => departures,
        other => panic!("nothing was ended: {other:?}"),
    }
}

#[tokio::test]
async fn overdue_uploads_end_when_another_one_needs_their_room_the_worst_ones_first() {
    let capacity = capacity(limits(Some(110), 0));
    let begin = |at, bytes| {
        let at = Duration::from_secs(at);
        obedient(capacity.begun(Beginning { at, ..beginning("new", Some(bytes)) }, None).unwrap())
    };
    let (worst, bad, fresh) = (begin(0, 40), begin(10, 40), begin(300, 20));
    let needy = beginning("new", Some(30));
    assert!(asks(&capacity, &needy, Duration::from_secs(299)).is_err());
    assert_eq!(capacity.uploads(), 3);
    capacity.wait_for(departures(asks(&capacity, &needy, LATER))).await.unwrap();
    worst.await.unwrap();
    capacity.begun(needy, None).unwrap();
    assert!(!bad.is_finished() && !fresh.is_finished());
}

#[tokio::test]
async fn no_upload_ends_in_vain() {
    let capacity = capacity(limits(Some(110), 0));
    let _overdue = obedient(capacity.begun(beginning("new", Some(50)), None).unwrap());
    let _fresh = capacity.begun(Beginning { at: LATER, ..beginning("new", Some(50)) }, None).unwrap();
    let needy = beginning("new", Some(51));
    assert!(asks(&capacity, &needy, LATER).is_err());
    assert_eq!(capacity.uploads(), 2);
}

#[tokio::test]
async fn a_used_up_share_ends_no_upload_of_another_holder() {
    let capacity = shared(Some(u64::MAX));
    let begin = |namespace: &str| capacity.begun(beginning(namespace, Some(0)), None);
    let honest = obedient(begin("honest").unwrap());
    let _fresh: Vec<Hold> = (0..25)
        .map(|_| capacity.begun(Beginning { at: LATER, ..beginning("greedy", Some(0)) }, None).unwrap())
        .collect();
    assert!(asks(&capacity, &beginning("greedy", Some(0)), LATER).is_err());
    let others: Vec<_> = (0..24).map(|_| obedient(begin("honest").unwrap())).collect();
    let coming = departures(asks(&capacity, &beginning("honest", Some(0)), LATER));
    capacity.wait_for(coming).await.unwrap();
    assert_eq!(usize::from(honest.is_finished()) + others.iter().filter(|it| it.is_finished()).count(), 1);
}

#[tokio::test]
async fn an_upload_that_is_told_to_end_ends_at_once_and_ends_no_other() {
    let capacity = capacity(limits(Some(110), 0));
    let begin = |bytes| capacity.begun(beginning("new", Some(bytes)), None).unwrap();
    // All three are overdue; the last one does not go although it is told to.
    let (one, other, stubborn) = (begin(30), begin(30), begin(40));
    let grow = |hold: &Hold| capacity.take_room(hold.id, LATER, |account| hold.grow(account, 1, None));
    let waiting = departures(grow(&one));
    let first_to_end = if other.end().is_cancelled() { &other } else { &stubborn };
    assert!(matches!(grow(first_to_end), Err(StageError::Overdue { .. })));
    assert!(!one.end().is_cancelled(), "it ended the one that ended it");
    // What is missing now takes all others, and the one that waits is told so where it waits.
    let needy = beginning("new", Some(100));
    let _all = departures(asks(&capacity, &needy, LATER));
    let waited = capacity.wait_for(waiting).now_or_never();
    assert!(matches!(waited, Some(Err(StageError::Overdue { .. }))), "{waited:?}");
    drop((one, other, stubborn));
}

#[tokio::test]
async fn uploads_that_are_told_to_end_already_make_room_before_others_are() {
    let capacity = capacity(limits(Some(110), 0));
    let begin = |at, bytes| {
        let at = Duration::from_secs(at);
        capacity.begun(Beginning { at, ..beginning("new", Some(bytes)) }, None).unwrap()
    };
    let (worst, ending) = (begin(0, 40), begin(10, 60));
    ending.end().cancel();
    departures(asks(&capacity, &beginning("new", Some(30)), LATER));
    assert!(!worst.end().is_cancelled());
}
