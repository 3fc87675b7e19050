//! Two servers on one ledger and one store: one is held up between two steps for longer than a lease lasts, and the
//! other one sweeps meanwhile. Nothing acknowledged is lost, nothing is left, and the late one fails in plain words.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cloakroom_core::client::Client;
use cloakroom_core::resource::{BlobKey, ResourceId, UploadHandle};
use cloakroom_server::cleaner::{Policy, Sweeper};
use cloakroom_server::owners::NoCluster;
use cloakroom_storage::ledger::{LEASE_RENEWAL, LEASE_TIME};
use cloakroom_storage::{AccessError, Limits, NewUpload, Recovered, StraysGo, UploadError};
use cloakroom_suites::stores::{DISK, MEMORY, Store, stores};
use cloakroom_testing::wait::{BOUND, until};
use futures_util::FutureExt as _;
use tokio::time::timeout;

use crate::support::app::Options;
use crate::support::faults::{Fault, Side, Step};
use crate::support::two_servers::{BUNDLE, SIDES, Server, SharedData, UNUSED_TIMEOUT, finish, read};

/// Every step of an upload, before and after it, in both stores. Only the one that has handles notes them.
fn upload_steps() -> impl Iterator<Item = (&'static Store, Step, Side)> {
    let steps = [
        Step::LedgerCharged,
        Step::LedgerBegin,
        Step::StoreBegin,
        Step::LedgerNoteHandle,
        Step::LedgerCharge,
        Step::StoreWrite,
        Step::StoreCommit,
        Step::LedgerComplete,
    ];
    let all = stores().flat_map(move |store| steps.map(|step| (store, step)));
    let reached = all.filter(|(store, step)| store.has_handles || !matches!(step, Step::LedgerNoteHandle));
    reached.flat_map(|(store, step)| SIDES.map(|side| (store, step, side)))
}

#[tokio::test]
async fn an_upload_that_is_held_up_beyond_its_lease_is_acknowledged_whole_or_fails_and_leaves_nothing() {
    for (store, step, side) in upload_steps() {
        let what = format!("{store:?} {side:?} {step:?}");
        let (shared, late, other) = SharedData::two(store).await;
        let stop = late.stopped_at(step, side);
        let upload = late.uploads();
        stop.reached().await;
        shared.clock.advance(LEASE_TIME);
        let recovered = other.recovers().await;
        stop.go_on();
        let outcome = upload.await.unwrap();
        let is_untouched = matches!(
            (step, side),
            (Step::LedgerCharged, _)
                | (Step::LedgerBegin, Side::Before)
                | (Step::LedgerComplete, Side::After)
        );
        assert_eq!(recovered.uploads, u64::from(!is_untouched), "{what}");
        match outcome {
            Ok(staged) => {
                assert!(is_untouched, "{what}");
                assert_eq!(other.recovers().await, Recovered::default(), "{what}");
                other.assert_downloads(&staged, &what).await;
            }
            Err(error) => {
                assert!(!is_untouched && matches!(error, UploadError::Abandoned), "{what}: {error:?}");
                assert!(error.to_string().contains("send it again"), "{error}");
                shared.assert_nothing_left(&what).await;
            }
        }
    }
}

#[tokio::test]
async fn an_upload_whose_lease_is_renewed_is_left_alone_at_every_step() {
    for (store, step, side) in upload_steps() {
        let what = format!("{store:?} {side:?} {step:?}");
        let (shared, late, other) = SharedData::two(store).await;
        let stop = late.stopped_at(step, side);
        let upload = late.uploads();
        stop.reached().await;
        for _ in 0..5 {
            shared.clock.advance(LEASE_RENEWAL);
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
    let (shared, late, other) = SharedData::two(&DISK).await;
    let before_complete = late.stopped_at(Step::LedgerComplete, Side::Before);
    let upload = late.uploads();
    before_complete.reached().await;
    let before_renewal = late.stopped_at(Step::LedgerRenew, Side::Before);
    let sweep = late.sweeps();
    before_renewal.reached().await;
    shared.clock.advance(LEASE_TIME);
    assert_eq!(other.recovers().await.uploads, 1);
    before_renewal.go_on();
    assert_eq!(sweep.await.unwrap().unwrap(), Recovered::default());
    before_complete.go_on();
    assert!(matches!(upload.await.unwrap(), Err(UploadError::Abandoned)));
    shared.assert_nothing_left("renewed too late").await;
}

#[tokio::test]
async fn a_lease_that_begins_during_a_renewal_is_not_lost() {
    for store in stores() {
        let (shared, late, other) = SharedData::two(store).await;
        let before_begin = late.stopped_at(Step::LedgerBegin, Side::Before);
        let begins = late.begins();
        before_begin.reached().await;
        let after_renewal = late.stopped_at(Step::LedgerRenew, Side::After);
        let sweep = late.sweeps();
        after_renewal.reached().await;
        before_begin.go_on();
        let mut upload = begins.await.unwrap().unwrap();
        after_renewal.go_on();
        assert_eq!(sweep.await.unwrap().unwrap(), Recovered::default(), "{store:?}");
        assert!(upload.ended().now_or_never().is_none(), "{store:?}");
        upload.write(Bytes::from_static(BUNDLE)).await.unwrap();
        other.assert_downloads(&finish(upload).await.unwrap(), "begun during a renewal").await;
        assert_eq!(shared.rows().await, BTreeMap::from([("ready", 1)]), "{store:?}");
    }
}

#[tokio::test]
async fn leases_are_renewed_again_and_again_without_a_sweep() {
    let (shared, late, other) = SharedData::two(&DISK).await;
    let mut upload = late.begins().await.unwrap().unwrap();
    let renewed = async || {
        let stop = late.stopped_at(Step::LedgerRenew, Side::After);
        late.faults.renewal_is_due();
        stop.reached().await;
        stop.go_on();
    };
    for round in 0..5 {
        shared.clock.advance(LEASE_RENEWAL);
        renewed().await;
        assert_eq!(other.recovers().await, Recovered::default(), "round {round}");
    }
    // A renewal that fails is not the last one.
    late.faults.set(Step::LedgerRenew, Fault::FailAfter);
    renewed().await;
    renewed().await;
    late.faults.clear();
    shared.clock.advance(LEASE_TIME);
    assert_eq!(other.recovers().await.uploads, 1);
    renewed().await;
    let ended = timeout(BOUND, upload.ended()).await.expect("a lost lease ends the upload");
    assert!(matches!(ended, UploadError::Abandoned));
}

#[tokio::test]
async fn an_upload_for_which_there_is_no_place_leaves_nothing() {
    let limits = Limits { max_concurrent_uploads: 1, ..Options::default().limits };
    for store in stores() {
        let shared = SharedData::new(store).await;
        let server = shared.server_with(limits).await;
        let first = server.begins().await.unwrap().unwrap();
        let refused = server.begins().await.unwrap().err();
        assert!(matches!(refused, Some(UploadError::NoRoom(_))), "{store:?}: {refused:?}");
        assert_eq!(shared.rows().await, BTreeMap::from([("pending", 1)]), "{store:?}");
        first.abandon().await;
        shared.assert_nothing_left("no place").await;
    }
}

#[tokio::test]
async fn a_cleaner_of_another_term_gives_up_no_upload_and_removes_no_bytes_without_a_row() {
    for store in stores() {
        let (shared, late, other) = SharedData::two(store).await;
        let another = SharedData::new(store).await.ledger.term().await.unwrap().unwrap();
        let without_row = BlobKey::of(ResourceId::generate(&mut rand::rng()));
        let mut writer = shared.store.begin(without_row, None, &Client::Server).await.unwrap().writer;
        writer.write(Bytes::from_static(BUNDLE)).await.unwrap();
        writer.commit().await.unwrap();
        let mut upload = late.begins().await.unwrap().unwrap();
        upload.write(Bytes::from_static(BUNDLE)).await.unwrap();
        shared.clock.advance(LEASE_TIME);
        assert_eq!(
            other.staging.recover(another, true, StraysGo::Now).await.unwrap(),
            Recovered::default(),
            "{store:?}"
        );
        let blobs = 1 + usize::from(shared.store.has_uploads);
        assert_eq!((shared.rows().await, shared.blobs().await), (BTreeMap::from([("pending", 1)]), blobs));
        let expected = Recovered { uploads: 1, strays: 1, deletions: 0 };
        assert_eq!(other.recovers().await, expected, "{store:?}");
        shared.assert_nothing_left("in its own term").await;
    }
}

#[tokio::test]
async fn bytes_that_appear_after_their_upload_was_abandoned_are_no_stray() {
    let (shared, late, other) = SharedData::two(&MEMORY).await;
    let begins = async || late.begins().await.unwrap().unwrap();
    let (unanswered, cut_off, refused) = (begins().await, begins().await, begins().await);
    let ids = [unanswered.id(), cut_off.id(), refused.id()];
    late.faults.set(Step::StoreCommit, Fault::Away);
    assert!(finish(unanswered).await.is_err());
    late.faults.set(Step::StoreCommit, Fault::FailBefore);
    assert!(finish(refused).await.is_err());
    late.faults.clear();
    let dead = late.stopped_at(Step::StoreCommit, Side::Before);
    let _never_ends = tokio::spawn(finish(cut_off));
    dead.reached().await;
    shared.clock.advance(LEASE_TIME);
    assert_eq!(other.recovers().await, Recovered { uploads: 1, ..Recovered::default() });
    shared.assert_nothing_left("all are abandoned").await;
    for id in ids {
        let writer = shared.store.begin(BlobKey::of(id), None, &Client::Server).await.unwrap().writer;
        writer.commit().await.unwrap();
    }
    let term = other.staging.term().await.unwrap().unwrap();
    let age = StraysGo::After(Duration::from_hours(7 * 24));
    let recovered = other.staging.recover(term, true, age).await.unwrap();
    assert_eq!(recovered, Recovered { strays: 2, ..Recovered::default() });
    // A store that has said no keeps nothing: if there is something all the same, its ledger may be an earlier copy.
    let strays = shared.ledger.strays().await.unwrap();
    assert_eq!(strays.iter().map(|stray| stray.key.resource()).collect::<Vec<_>>(), ids[2..]);
}

#[tokio::test]
async fn an_upload_whose_row_was_damaged_is_aborted_by_its_handle() {
    let (shared, late, other) = SharedData::two(&MEMORY).await;
    let dead = late.stopped_at(Step::StoreWrite, Side::After);
    let _never_ends = late.uploads();
    dead.reached().await;
    shared.change_ledger("UPDATE resources SET id = 'no id'").await;
    shared.clock.advance(LEASE_TIME);
    assert_eq!(other.recovers().await, Recovered { uploads: 1, ..Recovered::default() });
    assert_eq!(other.faults.aborted(), [Some(UploadHandle::from_text("upload-1"))]);
    assert_eq!(shared.blobs().await, 0);
    // The handle is gone as well.
    assert_eq!(other.recovers().await, Recovered::default());
}

#[tokio::test]
async fn an_upload_whose_row_is_damaged_before_it_is_complete_aborts_it_by_its_handle() {
    let (shared, late, _other) = SharedData::two(&MEMORY).await;
    let stop = late.stopped_at(Step::LedgerComplete, Side::Before);
    let upload = late.uploads();
    stop.reached().await;
    shared.change_ledger("UPDATE resources SET id = 'no id'").await;
    stop.go_on();
    assert!(matches!(upload.await.unwrap(), Err(UploadError::Abandoned)));
    assert_eq!(late.faults.aborted(), [Some(UploadHandle::from_text("upload-1"))]);
    assert_eq!(shared.blobs().await, 0);
}

#[tokio::test]
async fn a_cleaner_that_is_held_up_while_it_gives_an_upload_up_takes_nothing_that_is_complete() {
    for step in [Step::LedgerTerm, Step::LedgerAbandon, Step::StoreAbort, Step::LedgerFinishAbandoned] {
        for side in SIDES {
            let what = format!("{side:?} {step:?}");
            let (shared, late, other) = SharedData::two(&MEMORY).await;
            // The upload of a third server that is gone, and one that goes on.
            let gone = shared.server().await;
            let dead = gone.stopped_at(Step::StoreCommit, Side::After);
            let _never_ends = gone.uploads();
            dead.reached().await;
            shared.clock.advance(LEASE_TIME);
            let stop = late.stopped_at(step, side);
            let sweep = late.sweeps();
            stop.reached().await;
            let staged = other.staged().await;
            other.recovers().await;
            stop.go_on();
            sweep.await.unwrap().unwrap();
            assert_eq!(
                (shared.rows().await, shared.blobs().await),
                (BTreeMap::from([("ready", 1)]), 1),
                "{what}"
            );
            other.assert_downloads(&staged, &what).await;
        }
    }
}

#[tokio::test]
async fn a_release_that_is_held_up_is_finished_by_the_other_one_and_the_ticket_is_gone_at_once() {
    let steps =
        [Step::LedgerMarkDeleting, Step::LedgerIsDownloading, Step::StoreDelete, Step::LedgerFinishDeletion];
    for store in stores() {
        // On a disk a deletion waits for no download.
        let is_asked = |step: &Step| !store.is_disk || !matches!(step, Step::LedgerIsDownloading);
        for (step, side) in steps.into_iter().filter(is_asked).flat_map(|step| SIDES.map(|side| (step, side)))
        {
            let what = format!("{store:?} {side:?} {step:?}");
            let (shared, late, other) = SharedData::two(store).await;
            let staged = other.staged().await;
            let stop = late.stopped_at(step, side);
            let (staging, id, secret) = (late.staging.clone(), staged.id, staged.secret.clone());
            let release = tokio::spawn(async move { staging.release(id, &secret).await });
            stop.reached().await;
            shared.clock.advance(LEASE_TIME);
            let is_decided = (step, side) != (Step::LedgerMarkDeleting, Side::Before);
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
                (shared.rows().await, shared.blobs().await),
                (BTreeMap::from([("deleted", 1)]), 0),
                "{what}"
            );
        }
    }
}

#[tokio::test]
async fn a_decision_to_delete_that_comes_late_takes_nothing_that_was_used_or_is_used() {
    for store in stores() {
        let (shared, late, other) = SharedData::two(store).await;
        let (used, being_used) = (other.staged().await, other.staged().await);
        shared.clock.advance(UNUSED_TIMEOUT);
        let mut held_up = Vec::new();
        for staged in [&used, &being_used] {
            let stop = late.stopped_at(Step::LedgerMarkDeleting, Side::Before);
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
    let (shared, late, other) = SharedData::two(&DISK).await;
    let staged = other.staged().await;
    let download = late.opens(&staged).await.unwrap();
    let row = other.row(&staged).await;
    assert!(!other.expires(row.clone()).await.unwrap().unwrap());
    shared.clock.advance(LEASE_TIME);
    assert!(other.expires(row).await.unwrap().unwrap());
    assert_eq!(shared.blobs().await, 0);
    // On a disk what was opened stays readable.
    assert_eq!(read(download).await.unwrap(), BUNDLE);
}

#[tokio::test]
async fn a_download_that_is_held_up_while_its_resource_goes_is_told_that_it_is_gone() {
    for store in stores() {
        for step in [Step::LedgerHold, Step::StoreOpen, Step::LedgerMarkUsed] {
            for side in SIDES {
                let what = format!("{store:?} {side:?} {step:?}");
                let (shared, late, other) = SharedData::two(store).await;
                let staged = other.staged().await;
                let stop = late.stopped_at(step, side);
                let download = late.downloads(&staged);
                stop.reached().await;
                let mut seen = other.row(&staged).await;
                seen.data.history.last_used_at = None;
                let is_held = (step, side) != (Step::LedgerHold, Side::Before);
                assert_eq!(other.expires(seen.clone()).await.unwrap().unwrap(), !is_held, "{what}");
                shared.clock.advance(LEASE_TIME);
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
        let (shared, late, other) = SharedData::two(store).await;
        let stop = late.stopped_at(step, side);
        let abandoned = late.stopped_at(Step::LedgerAbandon, Side::Before);
        let upload = late.uploads();
        stop.reached().await;
        upload.abort();
        assert!(upload.await.unwrap_err().is_cancelled(), "{what}");
        // What was to be acknowledged is: the work goes on without its caller.
        let is_finishing = matches!(step, Step::StoreCommit | Step::LedgerComplete);
        stop.go_on();
        if !is_finishing {
            abandoned.reached().await;
            abandoned.go_on();
        }
        let resources = u64::from(is_finishing);
        until("it is settled", async || {
            let rows = shared.rows().await;
            let ready = rows.get("ready").copied().unwrap_or_default();
            let is_over = late.staging.in_flight() == (0, 0);
            let blobs = shared.blobs().await as u64;
            is_over && (ready, rows.len() as u64, blobs) == (resources, resources, resources)
        })
        .await;
        let taken = async || shared.ledger.taken().await.unwrap().resources;
        until("its room is free", async || taken().await == resources).await;
        assert_eq!(other.recovers().await, Recovered::default(), "{what}");
    }
}

#[tokio::test]
async fn a_download_that_its_caller_drops_holds_nothing_off() {
    for step in [Step::LedgerHold, Step::StoreOpen, Step::LedgerMarkUsed] {
        for side in SIDES {
            let (_house, late, other) = SharedData::two(&DISK).await;
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
    let (shared, late, other) = SharedData::two(&MEMORY).await;
    let staged = other.staged().await;
    let [one, forgotten] = [late.opens(&staged).await.unwrap(), late.opens(&staged).await.unwrap()];
    other.staging.release(staged.id, &staged.secret).await.unwrap();
    assert!(matches!(other.opens(&staged).await.err(), Some(AccessError::Gone { .. })));
    // A sweep that can finish nothing says so.
    assert_eq!(other.recovers().await, Recovered::default());
    assert_eq!(read(one).await.unwrap(), BUNDLE);
    assert_eq!((shared.rows().await, shared.blobs().await), (BTreeMap::from([("deleting", 1)]), 1));
    shared.clock.advance(LEASE_TIME);
    assert_eq!(other.recovers().await, Recovered { deletions: 1, ..Recovered::default() });
    assert_eq!((shared.rows().await, shared.blobs().await), (BTreeMap::from([("deleted", 1)]), 0));
    assert!(read(forgotten).await.is_err());
}

#[tokio::test]
async fn an_upload_that_was_abandoned_ends_before_it_has_sent_everything() {
    let (shared, late, other) = SharedData::two(&DISK).await;
    let mut upload = late.staging.begin_upload(NewUpload::default()).await.unwrap();
    shared.clock.advance(LEASE_TIME);
    assert_eq!(other.recovers().await.uploads, 1);
    // A renewal tells it.
    late.recovers().await;
    assert!(matches!(upload.ended().await, UploadError::Abandoned));
    upload.abandon().await;
    shared.assert_nothing_left("abandoned").await;
}

#[tokio::test]
async fn two_cleaners_that_sweep_at_once_delete_what_is_due_once_and_nothing_else() {
    for store in stores() {
        let (shared, late, other) = SharedData::two(store).await;
        for _ in 0..20 {
            late.staged().await;
        }
        shared.clock.advance(UNUSED_TIMEOUT);
        let kept = other.staged().await;
        let sweep = async |server: &Server| {
            // What the other one has staged it reads at its next thorough sweep.
            server.recovers().await;
            let mut sweeper = Sweeper::new(server.staging.clone(), Arc::new(NoCluster), Policy::default());
            sweeper.sweep().await.unwrap().expired
        };
        let (one, two) = tokio::join!(sweep(&late), sweep(&other));
        assert_eq!(one + two, 20, "{store:?}");
        assert_eq!(shared.rows().await, BTreeMap::from([("deleted", 20), ("ready", 1)]), "{store:?}");
        assert_eq!(shared.blobs().await, 1, "{store:?}");
        late.assert_downloads(&kept, "not due").await;
    }
}
