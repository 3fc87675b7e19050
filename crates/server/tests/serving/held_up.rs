//! A server that is held up at any step of its work, while it sweeps and serves. Nothing acknowledged is lost, nothing is left,
//! and what its callers drop holds nothing off.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cloakroom_core::client::Client;
use cloakroom_core::resource::{BlobKey, UploadHandle};
use cloakroom_storage::{AccessError, Limits, Recovered, StraysGo, UploadError};
use cloakroom_suites::stores::{DISK, MEMORY, Store, stores};
use cloakroom_testing::wait::until;

use crate::support::app::Options;
use crate::support::faults::{Fault, Side, Step};
use crate::support::one_server::{BUNDLE, SIDES, SharedData, UNUSED_TIMEOUT, finish, finish_admitted, read};

/// Every step of an upload, before and after it, in both stores. Only the one that has handles notes them.
fn upload_steps() -> impl Iterator<Item = (&'static Store, Step, Side)> {
    let steps = [
        Step::LedgerBegin,
        Step::StoreBegin,
        Step::LedgerNoteHandle,
        Step::StoreWrite,
        Step::StoreCommit,
        Step::LedgerComplete,
    ];
    let all = stores().flat_map(move |store| steps.map(|step| (store, step)));
    let reached = all.filter(|(store, step)| store.has_handles || !matches!(step, Step::LedgerNoteHandle));
    reached.flat_map(|(store, step)| SIDES.map(|side| (store, step, side)))
}

#[tokio::test]
async fn a_sweep_leaves_an_upload_alone_at_every_step() {
    for (store, step, side) in upload_steps() {
        let what = format!("{store:?} {side:?} {step:?}");
        let (_shared, server) = SharedData::with_server(store).await;
        let stop = server.stopped_at(step, side);
        let upload = server.uploads();
        stop.reached().await;
        assert_eq!(server.recovers().await, Recovered::default(), "{what}");
        stop.go_on();
        let staged = upload.await.unwrap().unwrap();
        assert_eq!(server.recovers().await, Recovered::default(), "{what}");
        server.assert_downloads(&staged, &what).await;
    }
}

/// The last step fails, done or not. While that is cleaned up, a sweep meets a row that is pending, or one that is ready.
#[tokio::test]
async fn a_sweep_beside_the_clean_up_of_an_upload_takes_nothing_complete() {
    for store in stores() {
        for fault in [Fault::FailBefore, Fault::FailAfter, Fault::Full, Fault::Away] {
            for (step, side) in [
                (Step::LedgerAbandon, Side::Before),
                (Step::LedgerAbandon, Side::After),
                (Step::StoreAbort, Side::After),
                (Step::LedgerFinishAbandoned, Side::Before),
            ] {
                let what = format!("{store:?} {fault:?} {side:?} {step:?}");
                let is_done = fault == Fault::FailAfter;
                if is_done && step != Step::LedgerAbandon {
                    continue;
                }
                let (shared, server) = SharedData::with_server(store).await;
                server.faults.set(Step::LedgerComplete, fault);
                let stop = server.stopped_at(step, side);
                let upload = server.uploads();
                stop.reached().await;
                assert_eq!(server.recovers().await, Recovered::default(), "{what}");
                stop.go_on();
                assert!(upload.await.unwrap().is_err(), "{what}");
                until(&what, async || server.staging.in_flight() == (0, 0)).await;
                assert_eq!(server.recovers().await, Recovered::default(), "{what}");
                if is_done {
                    assert_eq!(shared.rows().await, BTreeMap::from([("ready", 1)]), "{what}");
                    assert_eq!(shared.blobs().await, 1, "{what}");
                } else {
                    shared.assert_nothing_left(&what).await;
                }
            }
        }
    }
}

/// It was begun here, so its bytes are no stray, also if the clean-up has failed.
#[tokio::test]
async fn the_next_sweep_removes_an_upload_whose_clean_up_failed_and_its_bytes() {
    for store in stores() {
        for step in [Step::LedgerAbandon, Step::StoreAbort, Step::LedgerFinishAbandoned] {
            let what = format!("{store:?} {step:?}");
            let (shared, server) = SharedData::with_server(store).await;
            server.faults.set(Step::LedgerComplete, Fault::FailBefore);
            server.faults.set(step, Fault::FailBefore);
            assert!(server.uploads().await.unwrap().is_err(), "{what}");
            until(&what, async || server.staging.in_flight() == (0, 0)).await;
            assert_eq!(shared.rows().await, BTreeMap::from([("pending", 1)]), "{what}");
            server.faults.clear();
            let recovered = server.recovers().await;
            assert_eq!(recovered, Recovered { uploads: 1, ..Recovered::default() }, "{what}");
            shared.assert_nothing_left(&what).await;
        }
    }
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
async fn bytes_that_appear_after_their_upload_was_abandoned_are_no_stray() {
    let (shared, server) = SharedData::with_server(&MEMORY).await;
    let begins = async || server.begins().await.unwrap().unwrap();
    let (unanswered, cut_off, refused) = (begins().await, begins().await, begins().await);
    let ids = [unanswered.id(), cut_off.id(), refused.id()];
    server.faults.set(Step::StoreCommit, Fault::Away);
    assert!(finish(unanswered).await.is_err());
    server.faults.set(Step::StoreCommit, Fault::FailBefore);
    assert!(finish(refused).await.is_err());
    server.faults.clear();
    let dead = server.stopped_at(Step::StoreCommit, Side::Before);
    let _never_ends = tokio::spawn(finish(cut_off));
    dead.reached().await;
    let shared = shared.restarted().await;
    let successor = shared.server().await;
    assert_eq!(successor.recovers().await, Recovered { uploads: 1, ..Recovered::default() });
    shared.assert_nothing_left("all are abandoned").await;
    for id in ids {
        let writer =
            shared.store.begin(BlobKey::for_resource(id), None, &Client::Server).await.unwrap().writer;
        writer.commit().await.unwrap();
    }
    let age = StraysGo::After(Duration::from_hours(7 * 24));
    let recovered = successor.staging.recover(true, age).await.unwrap();
    assert_eq!(recovered, Recovered { strays: 2, ..Recovered::default() });
    // A store that has said no keeps nothing: if there is something all the same, its ledger may be an earlier copy.
    let strays = shared.ledger.facts().await.unwrap().strays;
    assert_eq!(strays.iter().map(|stray| stray.key.resource()).collect::<Vec<_>>(), ids[2..]);
}

// Invariant: the store gets the handle of every upload that it must abort.
#[tokio::test]
async fn an_upload_whose_row_was_damaged_is_aborted_by_its_handle() {
    let shared = SharedData::with_interrupted(&MEMORY, Step::StoreWrite).await;
    shared.change_ledger("UPDATE resources SET id = 'no id'").await;
    let successor = shared.server().await;
    assert_eq!(successor.recovers().await, Recovered { uploads: 1, ..Recovered::default() });
    assert_eq!(successor.faults.aborted(), [Some(UploadHandle::from_text("upload-1"))]);
    assert_eq!(shared.blobs().await, 0);
    // The handle is gone as well.
    assert_eq!(successor.recovers().await, Recovered::default());
}

#[tokio::test]
async fn an_upload_is_aborted_by_its_handle_if_its_row_is_damaged_meanwhile() {
    let (shared, server) = SharedData::with_server(&MEMORY).await;
    let stop = server.stopped_at(Step::LedgerComplete, Side::Before);
    let upload = server.uploads();
    stop.reached().await;
    shared.change_ledger("UPDATE resources SET id = 'no id'").await;
    stop.go_on();
    let error = upload.await.unwrap().unwrap_err();
    assert!(
        matches!(error, UploadError::Abandoned) && error.to_string().contains("send it again"),
        "{error}"
    );
    assert_eq!(server.faults.aborted(), [Some(UploadHandle::from_text("upload-1"))]);
    assert_eq!(shared.blobs().await, 0);
}

// Invariant: a server that is held up loses nothing acknowledged, and leaves nothing.
#[tokio::test]
async fn a_sweep_held_up_while_it_gives_an_upload_up_takes_nothing_complete() {
    for step in [Step::LedgerAbandon, Step::StoreAbort, Step::LedgerFinishAbandoned] {
        for side in SIDES {
            let what = format!("{side:?} {step:?}");
            let shared = SharedData::with_interrupted(&MEMORY, Step::StoreWrite).await;
            let server = shared.server().await;
            let stop = server.stopped_at(step, side);
            let sweep = server.sweeps();
            stop.reached().await;
            let staged = server.staged().await;
            stop.go_on();
            sweep.await.unwrap().unwrap();
            server.recovers().await;
            assert_eq!(
                (shared.rows().await, shared.blobs().await),
                (BTreeMap::from([("ready", 1)]), 1),
                "{what}"
            );
            server.assert_downloads(&staged, &what).await;
        }
    }
}

// Invariant: the ticket of a resource that is being deleted is answered with 410 at once; a deletion that the ledger
// refuses, or whose end is unknown, takes nothing.
#[tokio::test]
async fn a_held_up_release_makes_its_ticket_gone_at_once_and_a_sweep_ends_it() {
    for store in stores() {
        for step in [Step::LedgerMarkDeleting, Step::StoreDelete, Step::LedgerFinishDeletion] {
            for side in SIDES {
                let what = format!("{store:?} {side:?} {step:?}");
                let (shared, server) = SharedData::with_server(store).await;
                let staged = server.staged().await;
                let stop = server.stopped_at(step, side);
                let release = server.releases(&staged);
                stop.reached().await;
                // A download that comes while it is decided waits for that.
                let opened = server.downloads(&staged);
                server.recovers().await;
                stop.go_on();
                assert!(matches!(opened.await.unwrap().err(), Some(AccessError::Gone { .. })), "{what}");
                release.await.unwrap().unwrap();
                assert_eq!(
                    (shared.rows().await, shared.blobs().await),
                    (BTreeMap::from([("deleted", 1)]), 0),
                    "{what}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_deletion_that_the_ledger_refuses_leaves_the_resource_open() {
    for store in stores() {
        let (shared, server) = SharedData::with_server(store).await;
        let (used, being_used) = (server.staged().await, server.staged().await);
        shared.clock.advance(UNUSED_TIMEOUT);
        let seen = server.row(&used).await;
        server.assert_downloads(&used, "used since it was seen").await;
        assert!(!server.expires(seen).await.unwrap().unwrap());
        server.assert_downloads(&used, "used").await;
        let download = server.opens(&being_used).await.unwrap();
        assert!(!server.expires(server.row(&being_used).await).await.unwrap().unwrap());
        assert_eq!(read(download).await.unwrap(), BUNDLE);
        server.assert_downloads(&being_used, "being used").await;
    }
}

/// The answer of the ledger is lost, and its row cannot be asked at once.
#[tokio::test]
async fn the_row_decides_about_downloads_after_a_deletion_with_unknown_end() {
    for store in stores() {
        for fault in [Fault::FailBefore, Fault::FailAfter] {
            for asked in [None, Some(Step::LedgerFind)] {
                let what = format!("{store:?} {fault:?} {asked:?}");
                let (shared, server) = SharedData::with_server(store).await;
                let staged = server.staged().await;
                let stop = server.stopped_at(Step::LedgerMarkDeleting, Side::Before);
                let release = server.releases(&staged);
                stop.reached().await;
                server.faults.set(Step::LedgerMarkDeleting, fault);
                if let Some(step) = asked {
                    server.faults.set(step, Fault::Away);
                }
                stop.go_on();
                assert!(release.await.unwrap().is_err(), "{what}");
                server.faults.clear();
                let downloaded = server.downloads(&staged).await.unwrap();
                match fault {
                    Fault::FailAfter => {
                        assert!(matches!(downloaded.err(), Some(AccessError::Gone { .. })), "{what}");
                        // If the row can be asked, the deletion is finished at once, and otherwise by a sweep.
                        if asked.is_none() {
                            until(&what, async || shared.blobs().await == 0).await;
                        } else {
                            assert_eq!(server.recovers().await.deletions, 1, "{what}");
                        }
                        assert_eq!(shared.blobs().await, 0, "{what}");
                    }
                    _ => assert_eq!(downloaded.unwrap(), BUNDLE, "{what}"),
                }
                server.releases(&staged).await.unwrap().unwrap();
                assert_eq!(shared.rows().await, BTreeMap::from([("deleted", 1)]), "{what}");
            }
        }
    }
}

#[tokio::test]
async fn a_download_held_up_while_its_resource_goes_is_told_that_it_is_gone() {
    for store in stores() {
        for step in [Step::StoreOpen, Step::LedgerMarkUsed] {
            for side in SIDES {
                let what = format!("{store:?} {side:?} {step:?}");
                let (_shared, server) = SharedData::with_server(store).await;
                let staged = server.staged().await;
                let stop = server.stopped_at(step, side);
                let download = server.downloads(&staged);
                stop.reached().await;
                let mut seen = server.row(&staged).await;
                seen.data.history.last_used_at = None;
                assert!(!server.expires(seen).await.unwrap().unwrap(), "{what}");
                server.releases(&staged).await.unwrap().unwrap();
                stop.go_on();
                let is_noted = (step, side) == (Step::LedgerMarkUsed, Side::After);
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
async fn what_its_caller_drops_at_any_step_leaves_neither_bytes_nor_room() {
    for (store, step, side) in upload_steps() {
        let what = format!("{store:?} {side:?} {step:?}");
        let (shared, server) = SharedData::with_server(store).await;
        let stop = server.stopped_at(step, side);
        let abandoned = server.stopped_at(Step::LedgerAbandon, Side::Before);
        let upload = server.uploads();
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
            let is_over = server.staging.in_flight() == (0, 0);
            let blobs = shared.blobs().await as u64;
            is_over && (ready, rows.len() as u64, blobs) == (resources, resources, resources)
        })
        .await;
        until("its room is free", async || server.taken_resources().await == resources).await;
        assert_eq!(server.recovers().await, Recovered::default(), "{what}");
    }
}

#[tokio::test]
async fn an_admission_lasts_as_long_as_an_upload_that_its_caller_drops() {
    let (_shared, server) = SharedData::with_server(&DISK).await;
    let mut upload = server.begins().await.unwrap().unwrap();
    upload.write(Bytes::from_static(BUNDLE)).await.unwrap();
    let stop = server.stopped_at(Step::LedgerComplete, Side::Before);
    let admission = Arc::new(());
    let upload = tokio::spawn(finish_admitted(upload, Arc::clone(&admission)));
    stop.reached().await;
    upload.abort();
    assert!(upload.await.unwrap_err().is_cancelled());
    assert_eq!(Arc::strong_count(&admission), 2, "the upload is not ready yet");
    stop.go_on();
    until("the upload has ended", async || Arc::strong_count(&admission) == 1).await;
}

#[tokio::test]
async fn a_deletion_that_its_caller_drops_is_finished() {
    for step in [Step::LedgerMarkDeleting, Step::StoreDelete, Step::LedgerFinishDeletion] {
        for side in SIDES {
            let (shared, server) = SharedData::with_server(&DISK).await;
            let staged = server.staged().await;
            let stop = server.stopped_at(step, side);
            let release = server.releases(&staged);
            stop.reached().await;
            release.abort();
            assert!(release.await.unwrap_err().is_cancelled());
            stop.go_on();
            until("it is deleted", async || {
                (shared.rows().await, shared.blobs().await) == (BTreeMap::from([("deleted", 1)]), 0)
            })
            .await;
        }
    }
}

#[tokio::test]
async fn a_download_that_its_caller_drops_holds_nothing_off() {
    for step in [Step::StoreOpen, Step::LedgerMarkUsed] {
        for side in SIDES {
            let (_shared, server) = SharedData::with_server(&DISK).await;
            let staged = server.staged().await;
            let stop = server.stopped_at(step, side);
            let download = server.downloads(&staged);
            stop.reached().await;
            download.abort();
            assert!(download.await.unwrap_err().is_cancelled());
            let row = server.row(&staged).await;
            assert!(server.expires(row).await.unwrap().unwrap(), "{side:?} {step:?}");
        }
    }
}
