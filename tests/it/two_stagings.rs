//! Two servers on one ledger and one store, as replicas will be: one is held up between two steps for longer than a lease lasts,
//! and the other one sweeps meanwhile. Nothing acknowledged is lost, nothing is left, and the late one fails in plain words.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use cloakroom_core::metrics::Metrics;
use cloakroom_core::resource::{DeletionReason, Lifetime, Owner, OwnerKind, Ready, Resource};
use cloakroom_server::cleaner::{Policy, Sweeper};
use cloakroom_server::owners::NoCluster;
use cloakroom_staging::ledger::{Authority, LEASE_RENEWAL, LEASE_TIME, Ledger, SqliteLedger};
use cloakroom_staging::store::{DataDirectory, DiskStore, MemoryStore, Storage, StoreError};
use cloakroom_staging::{AccessError, Download, NewUpload, Recovered, Staged, Staging, Terms, UploadError};
use cloakroom_testing::clock::ManualClock;
use cloakroom_testing::wait::until;
use futures_util::TryStreamExt as _;
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::support::app::Options;
use crate::support::faults::{Faults, FaultyLedger, FaultyStore, Side, Step, Stop};

const BUNDLE: &[u8] = b"jars that must not get lost";
const SIDES: [Side; 2] = [Side::Before, Side::After];
const UNUSED_TIMEOUT: Duration = Duration::from_mins(30);

/// What both work on.
struct House {
    clock: Arc<ManualClock>,
    ledger: Arc<dyn Ledger>,
    storage: Storage,
    _folder: TempDir,
}

/// One of the two.
struct Server {
    staging: Staging,
    faults: Faults,
}

#[derive(Debug, Clone, Copy)]
enum Store {
    Disk,
    Memory,
}

const STORES: [Store; 2] = [Store::Disk, Store::Memory];

impl House {
    async fn new(store: Store) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::new());
        let directory = DataDirectory::open(folder.path()).unwrap();
        let ledger = SqliteLedger::open_by(&directory.ledger(), Arc::clone(&clock) as _).await.unwrap();
        let storage = match store {
            Store::Disk => Storage::on_disk(Arc::new(DiskStore::new(directory))),
            Store::Memory => Storage::elsewhere(Arc::new(MemoryStore::default())),
        };
        Self { clock, ledger: Arc::new(ledger), storage, _folder: folder }
    }

    async fn server(&self) -> Server {
        let faults = Faults::default();
        let ledger = FaultyLedger { inner: Arc::clone(&self.ledger), faults: faults.clone() };
        let store = Arc::new(FaultyStore {
            inner: self.storage.clone(),
            faults: faults.clone(),
            free_bytes: Mutex::default(),
        });
        let storage =
            if self.storage.disk.is_some() { Storage::on_disk(store) } else { Storage::elsewhere(store) };
        let clock = Arc::clone(&self.clock) as _;
        let limits = Options::default().limits;
        let staging = Staging::open(Arc::new(ledger), storage, clock, limits, Metrics::new()).await.unwrap();
        Server { staging, faults }
    }

    async fn two(store: Store) -> (Self, Server, Server) {
        let house = Self::new(store).await;
        let (late, other) = (house.server().await, house.server().await);
        (house, late, other)
    }

    async fn rows(&self) -> BTreeMap<&'static str, u64> {
        self.ledger.count_by_state().await.unwrap()
    }

    async fn blobs(&self) -> usize {
        self.storage.blobs.list(None, 100).await.unwrap().len()
    }

    /// Where the upload failed at its caller's, it is cleaned up in the background.
    async fn assert_nothing_left(&self, what: &str) {
        until(what, async || (self.rows().await, self.blobs().await) == (BTreeMap::new(), 0)).await;
    }
}

impl Server {
    /// Uploads all of it, in a task that can be held up.
    fn uploads(&self) -> JoinHandle<Result<Staged, UploadError>> {
        let staging = self.staging.clone();
        tokio::spawn(async move {
            let mut upload = staging.begin_upload(NewUpload::default()).await?;
            upload.write(Bytes::from_static(BUNDLE)).await?;
            let labels = [("app".to_owned(), "demo".to_owned())];
            let terms = Terms {
                owner: Owner::new(OwnerKind::default(), "demo", labels, None).unwrap(),
                lifetime: Lifetime { unused_timeout: UNUSED_TIMEOUT, ttl: None },
                expected_sha256: None,
            };
            upload.finish(terms, Metrics::new().upload()).await
        })
    }

    async fn staged(&self) -> Staged {
        self.uploads().await.unwrap().unwrap()
    }

    async fn recovers(&self) -> Recovered {
        let term = self.staging.term().await.unwrap().unwrap();
        self.staging.recover(term, true).await.unwrap()
    }

    async fn row(&self, staged: &Staged) -> Resource<Ready> {
        self.staging.look_up(staged.id).await.unwrap().unwrap().into_ready().unwrap()
    }

    /// As a sweep does it that has decided on `seen`.
    fn expires(&self, seen: Resource<Ready>) -> JoinHandle<Result<bool, AccessError>> {
        let staging = self.staging.clone();
        tokio::spawn(async move {
            let by = Authority::Cleaner(staging.term().await?.unwrap());
            let at = staging.clock().now();
            staging.expire(&seen, DeletionReason::Unused, at, by).await
        })
    }

    async fn opens(&self, staged: &Staged) -> Result<Download, AccessError> {
        self.staging.open_download(staged.id, &staged.secret).await
    }

    /// The whole of it, as the HTTP edge does it.
    fn downloads(&self, staged: &Staged) -> JoinHandle<Result<Vec<u8>, AccessError>> {
        let (staging, id, secret) = (self.staging.clone(), staged.id, staged.secret.clone());
        tokio::spawn(async move {
            let download = staging.open_download(id, &secret).await?;
            staging.mark_used(&download).await?;
            Ok(read(download).await.unwrap())
        })
    }

    async fn assert_downloads(&self, staged: &Staged, what: &str) {
        assert_eq!(self.downloads(staged).await.unwrap().unwrap(), BUNDLE, "{what}");
    }

    fn stopped_at(&self, step: Step, side: Side) -> Stop {
        self.faults.stop_at(step, side)
    }
}

async fn read(download: Download) -> Result<Vec<u8>, StoreError> {
    let size_bytes = download.size_bytes();
    let pieces: Vec<Bytes> = download.read(0..size_bytes).try_collect().await?;
    Ok(pieces.concat())
}

/// Every step of an upload, before and after it, in both stores. Only the one that has handles notes them.
fn upload_steps() -> impl Iterator<Item = (Store, Step, Side)> {
    let steps = [
        Step::LedgerBegin,
        Step::StoreBegin,
        Step::LedgerNoteHandle,
        Step::StoreWrite,
        Step::StoreCommit,
        Step::LedgerComplete,
    ];
    let all = STORES.into_iter().flat_map(move |store| steps.map(|step| (store, step)));
    let reached = all.filter(|(store, step)| !matches!((store, step), (Store::Disk, Step::LedgerNoteHandle)));
    reached.flat_map(|(store, step)| SIDES.map(|side| (store, step, side)))
}

#[tokio::test]
async fn an_upload_that_is_held_up_beyond_its_lease_is_acknowledged_whole_or_fails_and_leaves_nothing() {
    for (store, step, side) in upload_steps() {
        let what = format!("{store:?} {side:?} {step:?}");
        let (house, late, other) = House::two(store).await;
        let stop = late.stopped_at(step, side);
        let upload = late.uploads();
        stop.reached().await;
        house.clock.advance(LEASE_TIME);
        let recovered = other.recovers().await;
        stop.go_on();
        let outcome = upload.await.unwrap();
        let is_untouched =
            matches!((step, side), (Step::LedgerBegin, Side::Before) | (Step::LedgerComplete, Side::After));
        assert_eq!(recovered.uploads, u64::from(!is_untouched), "{what}");
        match outcome {
            Ok(staged) => {
                assert!(is_untouched, "{what}");
                assert_eq!(other.recovers().await, Recovered::default(), "{what}");
                other.assert_downloads(&staged, &what).await;
            }
            Err(error) => {
                assert!(!is_untouched && matches!(error, UploadError::GivenUp), "{what}: {error:?}");
                assert!(error.to_string().contains("send it again"), "{error}");
                house.assert_nothing_left(&what).await;
            }
        }
    }
}

#[tokio::test]
async fn an_upload_whose_lease_is_renewed_is_left_alone_at_every_step() {
    for (store, step, side) in upload_steps() {
        let what = format!("{store:?} {side:?} {step:?}");
        let (house, late, other) = House::two(store).await;
        let stop = late.stopped_at(step, side);
        let upload = late.uploads();
        stop.reached().await;
        for _ in 0..5 {
            house.clock.advance(LEASE_RENEWAL);
            // A sweep of its own renews what it holds.
            late.recovers().await;
            assert_eq!(other.recovers().await.uploads, 0, "{what}");
        }
        stop.go_on();
        let staged = upload.await.unwrap().unwrap();
        other.assert_downloads(&staged, &what).await;
    }
}

#[tokio::test]
async fn a_renewal_that_comes_too_late_brings_nothing_back() {
    let (house, late, other) = House::two(Store::Disk).await;
    let before_complete = late.stopped_at(Step::LedgerComplete, Side::Before);
    let upload = late.uploads();
    before_complete.reached().await;
    let before_renewal = late.stopped_at(Step::LedgerRenew, Side::Before);
    let staging = late.staging.clone();
    let sweep = tokio::spawn(async move {
        let term = staging.term().await.unwrap().unwrap();
        staging.recover(term, true).await.unwrap()
    });
    before_renewal.reached().await;
    house.clock.advance(LEASE_TIME);
    assert_eq!(other.recovers().await.uploads, 1);
    before_renewal.go_on();
    assert_eq!(sweep.await.unwrap(), Recovered::default());
    before_complete.go_on();
    assert!(matches!(upload.await.unwrap(), Err(UploadError::GivenUp)));
    house.assert_nothing_left("renewed too late").await;
}

#[tokio::test]
async fn a_cleaner_that_is_held_up_while_it_gives_an_upload_up_takes_nothing_that_is_complete() {
    for step in [Step::LedgerGiveUp, Step::StoreAbort, Step::LedgerBury] {
        for side in SIDES {
            let what = format!("{side:?} {step:?}");
            let (house, late, other) = House::two(Store::Memory).await;
            // The upload of a third server that is gone, and one that goes on.
            let gone = house.server().await;
            let dead = gone.stopped_at(Step::StoreCommit, Side::After);
            let _never_ends = gone.uploads();
            dead.reached().await;
            house.clock.advance(LEASE_TIME);
            let stop = late.stopped_at(step, side);
            let staging = late.staging.clone();
            let sweep = tokio::spawn(async move {
                let term = staging.term().await.unwrap().unwrap();
                staging.recover(term, true).await
            });
            stop.reached().await;
            let staged = other.staged().await;
            other.recovers().await;
            stop.go_on();
            sweep.await.unwrap().unwrap();
            assert_eq!(
                (house.rows().await, house.blobs().await),
                (BTreeMap::from([("ready", 1)]), 1),
                "{what}"
            );
            other.assert_downloads(&staged, &what).await;
        }
    }
}

#[tokio::test]
async fn a_release_that_is_held_up_is_finished_by_the_other_one_and_the_ticket_is_gone_at_once() {
    for store in STORES {
        for (step, side) in [Step::LedgerCondemn, Step::StoreDelete, Step::LedgerBury]
            .into_iter()
            .flat_map(|step| SIDES.map(|side| (step, side)))
        {
            let what = format!("{store:?} {side:?} {step:?}");
            let (house, late, other) = House::two(store).await;
            let staged = other.staged().await;
            let stop = late.stopped_at(step, side);
            let (staging, id, secret) = (late.staging.clone(), staged.id, staged.secret.clone());
            let release = tokio::spawn(async move { staging.release(id, &secret).await });
            stop.reached().await;
            house.clock.advance(LEASE_TIME);
            let is_decided = (step, side) != (Step::LedgerCondemn, Side::Before);
            if is_decided {
                let gone = other.opens(&staged).await;
                assert!(matches!(gone.err(), Some(AccessError::Gone { .. })), "{what}");
            } else {
                other.assert_downloads(&staged, &what).await;
            }
            other.recovers().await;
            stop.go_on();
            release.await.unwrap().unwrap();
            assert_eq!(
                (house.rows().await, house.blobs().await),
                (BTreeMap::from([("deleted", 1)]), 0),
                "{what}"
            );
        }
    }
}

#[tokio::test]
async fn a_decision_to_delete_that_comes_late_takes_nothing_that_was_used_or_is_used() {
    for store in STORES {
        let (house, late, other) = House::two(store).await;
        let (used, being_used) = (other.staged().await, other.staged().await);
        house.clock.advance(UNUSED_TIMEOUT);
        let mut held_up = Vec::new();
        for staged in [&used, &being_used] {
            let stop = late.stopped_at(Step::LedgerCondemn, Side::Before);
            held_up.push((late.expires(late.row(staged).await), stop.clone()));
            stop.reached().await;
        }
        other.assert_downloads(&used, "used meanwhile").await;
        let download = other.opens(&being_used).await.unwrap();
        for (expiry, stop) in held_up {
            stop.go_on();
            assert!(!expiry.await.unwrap().unwrap());
        }
        assert_eq!(read(download).await.unwrap(), BUNDLE);
        other.assert_downloads(&used, "used").await;
        other.assert_downloads(&being_used, "being used").await;
    }
}

#[tokio::test]
async fn a_download_holds_the_cleaner_off_for_as_long_as_its_lease_lasts() {
    let (house, late, other) = House::two(Store::Disk).await;
    let staged = other.staged().await;
    let download = late.opens(&staged).await.unwrap();
    let row = other.row(&staged).await;
    assert!(!other.expires(row.clone()).await.unwrap().unwrap());
    house.clock.advance(LEASE_TIME);
    assert!(other.expires(row).await.unwrap().unwrap());
    assert_eq!(house.blobs().await, 0);
    // On a disk what was opened stays readable.
    assert_eq!(read(download).await.unwrap(), BUNDLE);
}

#[tokio::test]
async fn a_download_that_is_held_up_while_its_resource_goes_is_told_that_it_is_gone() {
    for store in STORES {
        for step in [Step::LedgerHold, Step::LedgerMarkUsed] {
            for side in SIDES {
                let what = format!("{store:?} {side:?} {step:?}");
                let (house, late, other) = House::two(store).await;
                let staged = other.staged().await;
                let stop = late.stopped_at(step, side);
                let download = late.downloads(&staged);
                stop.reached().await;
                let mut seen = other.row(&staged).await;
                seen.stage.history.last_used_at = None;
                let is_held = (step, side) != (Step::LedgerHold, Side::Before);
                assert_eq!(other.expires(seen.clone()).await.unwrap().unwrap(), !is_held, "{what}");
                house.clock.advance(LEASE_TIME);
                let is_noted = (step, side) == (Step::LedgerMarkUsed, Side::After);
                if is_held {
                    assert_eq!(other.expires(seen).await.unwrap().unwrap(), !is_noted, "{what}");
                }
                stop.go_on();
                match download.await.unwrap() {
                    Ok(bytes) => assert!(is_noted && bytes == BUNDLE, "{what}"),
                    Err(error) => {
                        assert!(!is_noted && matches!(error, AccessError::Gone { .. }), "{what}: {error:?}")
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn what_its_caller_drops_at_any_step_leaves_neither_bytes_nor_room_nor_leases() {
    for (store, step, side) in upload_steps() {
        let what = format!("{store:?} {side:?} {step:?}");
        let (house, late, other) = House::two(store).await;
        let stop = late.stopped_at(step, side);
        let upload = late.uploads();
        stop.reached().await;
        upload.abort();
        assert!(upload.await.unwrap_err().is_cancelled(), "{what}");
        stop.go_on();
        // What was to be acknowledged is: the work goes on without its caller.
        let is_finishing = matches!(step, Step::StoreCommit | Step::LedgerComplete);
        let resources = u64::from(is_finishing);
        until("it is settled", async || {
            let rows = house.rows().await;
            let ready = rows.get("ready").copied().unwrap_or_default();
            let is_over = late.staging.in_flight() == (0, 0);
            let blobs = house.blobs().await as u64;
            is_over && (ready, rows.len() as u64, blobs) == (resources, resources, resources)
        })
        .await;
        let taken = async || house.ledger.taken().await.unwrap().resources;
        until("its room is free", async || taken().await == resources).await;
        assert_eq!(other.recovers().await, Recovered::default(), "{what}");
    }
}

#[tokio::test]
async fn a_download_that_its_caller_drops_holds_nothing_off() {
    for step in [Step::LedgerHold, Step::LedgerMarkUsed] {
        for side in SIDES {
            let (_house, late, other) = House::two(Store::Disk).await;
            let staged = other.staged().await;
            let stop = late.stopped_at(step, side);
            let download = late.downloads(&staged);
            stop.reached().await;
            download.abort();
            assert!(download.await.unwrap_err().is_cancelled());
            let row = other.row(&staged).await;
            assert!(other.expires(row).await.unwrap().unwrap(), "{side:?} {step:?}");
        }
    }
}

#[tokio::test]
async fn without_a_disk_bytes_that_are_being_sent_go_when_the_lease_of_the_download_ends() {
    let (house, late, other) = House::two(Store::Memory).await;
    let staged = other.staged().await;
    let [one, forgotten] = [late.opens(&staged).await.unwrap(), late.opens(&staged).await.unwrap()];
    other.staging.release(staged.id, &staged.secret).await.unwrap();
    assert!(matches!(other.opens(&staged).await.err(), Some(AccessError::Gone { .. })));
    other.recovers().await;
    assert_eq!(read(one).await.unwrap(), BUNDLE);
    assert_eq!((house.rows().await, house.blobs().await), (BTreeMap::from([("deleting", 1)]), 1));
    house.clock.advance(LEASE_TIME);
    other.recovers().await;
    assert_eq!((house.rows().await, house.blobs().await), (BTreeMap::from([("deleted", 1)]), 0));
    assert!(read(forgotten).await.is_err());
}

#[tokio::test]
async fn an_upload_that_was_given_up_ends_before_it_has_sent_everything() {
    let (house, late, other) = House::two(Store::Disk).await;
    let mut upload = late.staging.begin_upload(NewUpload::default()).await.unwrap();
    house.clock.advance(LEASE_TIME);
    assert_eq!(other.recovers().await.uploads, 1);
    // A renewal tells it.
    late.recovers().await;
    assert!(matches!(upload.ended().await, UploadError::GivenUp));
    upload.abandon().await;
    house.assert_nothing_left("given up").await;
}

#[tokio::test]
async fn two_cleaners_that_sweep_at_once_delete_what_is_due_once_and_nothing_else() {
    for store in STORES {
        let (house, late, other) = House::two(store).await;
        for _ in 0..20 {
            late.staged().await;
        }
        house.clock.advance(UNUSED_TIMEOUT);
        let kept = other.staged().await;
        let sweep = async |server: &Server| {
            // What the other one has staged it reads at its next thorough sweep.
            server.recovers().await;
            let mut sweeper = Sweeper::new(server.staging.clone(), Arc::new(NoCluster), Policy::default());
            sweeper.sweep().await.unwrap().expired
        };
        let (one, two) = tokio::join!(sweep(&late), sweep(&other));
        assert_eq!(one + two, 20, "{store:?}");
        assert_eq!(house.rows().await, BTreeMap::from([("deleted", 20), ("ready", 1)]), "{store:?}");
        assert_eq!(house.blobs().await, 1, "{store:?}");
        late.assert_downloads(&kept, "not due").await;
    }
}
