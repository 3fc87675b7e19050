//! A process ends, or an answer is lost, at each call of ledger and store that a piece of work makes. After a restart and a sweep,
//! row and bytes are both there or both gone, and nothing that was acknowledged is lost. The calls are counted, not listed.

use std::collections::BTreeSet;
use std::sync::Arc;

use cloakroom_core::resource::{BlobKey, State};
use cloakroom_server::cleaner::{Policy, Sweeper};
use cloakroom_server::owners::NoCluster;
use cloakroom_storage::{Staged, StraysGo};
use cloakroom_suites::stores::{Store, stores};
use futures_util::TryStreamExt as _;

use crate::support::app::Options;
use crate::support::faults::{Faults, Side, Step};
use crate::support::one_server::{BUNDLE, Server, SharedData, UNUSED_TIMEOUT, finish, open_whole, read};
use crate::support::points::{POINTS, Point};

/// The work in which a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Claim,
    Upload,
    Download,
    Release,
    /// It deletes what is due, so it writes a stamp first, and it clears away the interrupted upload.
    Sweep,
}

/// Staged before, by a process that has ended in the middle of another upload.
struct Before {
    shared: SharedData,
    /// It was downloaded, and no owner is asked for: it must stay.
    kept: Option<Arc<Staged>>,
    /// It was never downloaded, and its time is over.
    due: Option<Arc<Staged>>,
}

impl Before {
    async fn new(store: &'static Store, work: Work) -> Self {
        let shared = SharedData::new(store).await;
        if work == Work::Claim {
            return Self { shared, kept: None, due: None };
        }
        let server = shared.server().await;
        let (kept, due) = (Arc::new(server.staged().await), Arc::new(server.staged().await));
        server.assert_downloads(&kept, "before").await;
        let ends = server.stopped_at(Step::StoreCommit, Side::Before);
        let _never_ends = server.uploads();
        ends.reached().await;
        shared.clock.advance(UNUSED_TIMEOUT);
        Self { shared: shared.restarted().await, kept: Some(kept), due: Some(due) }
    }
}

async fn sweep(server: &Server) {
    let mut sweeper = Sweeper::new(server.staging.clone(), Arc::new(NoCluster), Policy::default());
    // After a failure the next sweep finishes the work.
    let _ = sweeper.sweep().await;
}

/// Does the work. Returns what was acknowledged.
async fn done(
    work: Work,
    server: Server,
    kept: Option<Arc<Staged>>,
    due: Option<Arc<Staged>>,
) -> Option<Arc<Staged>> {
    match (work, kept, due) {
        (Work::Upload, ..) => {
            let mut upload = server.begins().await.unwrap().ok()?;
            upload.write(bytes::Bytes::from_static(BUNDLE)).await.ok()?;
            return finish(upload).await.ok().map(Arc::new);
        }
        (Work::Download, Some(kept), _) => {
            if let Ok(download) = open_whole(&server.staging, kept.id, &kept.secret).await {
                let _ = server.staging.mark_used(download.resource()).await;
                assert_eq!(read(download).await.unwrap(), BUNDLE);
            }
        }
        (Work::Release, _, Some(due)) => drop(server.staging.release(due.id, &due.secret).await),
        _ => sweep(&server).await,
    }
    None
}

/// Does the work up to a point. Then looks at what is left after a restart. Returns how many calls were made.
async fn check(store: &'static Store, work: Work, at: usize, point: Point) -> usize {
    let what = format!("{store:?} {work:?} {point:?} call {at}");
    let Before { shared, kept, due } = Before::new(store, work).await;
    let (faults, limits) = (Faults::default(), Options::default().limits);
    let mut acknowledged = None;
    if work == Work::Claim {
        faults.points.arm(at, point);
        tokio::select! {
            opened = shared.opened(&faults, limits) => drop(opened),
            () = faults.points.ended() => {}
        }
    } else {
        let server = shared.opened(&faults, limits).await.unwrap();
        faults.points.arm(at, point);
        let working = tokio::spawn(done(work, server, kept.clone(), due.clone()));
        let stop = working.abort_handle();
        tokio::select! {
            done = working => acknowledged = done.unwrap(),
            () = faults.points.ended() => stop.abort(),
        }
    }
    let (calls, is_in_bucket) = (faults.points.calls(), shared.is_in_bucket());
    let arriving = assert_all_is_well(shared.crashed().await, kept, acknowledged, &what).await;
    // In a bucket an upload goes on before the log has its row. If that is lost, a rule of the bucket removes the parts.
    assert!(arriving <= usize::from(is_in_bucket), "{what}: {arriving} are arriving");
    calls
}

async fn assert_all_is_well(
    shared: SharedData,
    kept: Option<Arc<Staged>>,
    acknowledged: Option<Arc<Staged>>,
    what: &str,
) -> usize {
    let server = shared.server().await;
    assert!(!server.staging.is_behind(), "{what}");
    for _ in 0..2 {
        sweep(&server).await;
    }
    for staged in kept.iter().chain(&acknowledged) {
        server.assert_downloads(staged, what).await;
    }
    // A bundle that was whole and not acknowledged may belong to a later ledger: it waits for that.
    let strays = shared.ledger.facts().await.unwrap().strays;
    assert!(strays.len() <= 1, "{what}: {strays:?}");
    server.staging.recover(true, StraysGo::Now).await.unwrap();
    let rows = shared.rows().await;
    let has_others = [State::Pending, State::Deleting].iter().any(|state| rows.contains_key(state.as_str()));
    assert!(!has_others, "{what}: {rows:?}");
    let listed = server.staging.ready(None, 100);
    let rows: BTreeSet<(BlobKey, u64)> =
        listed.iter().map(|row| (BlobKey::for_resource(row.id), row.size_bytes)).collect();
    let blobs = shared.store.list().map_ok(|(key, facts)| (key, facts.size_bytes));
    let blobs: BTreeSet<(BlobKey, u64)> = blobs.try_collect().await.unwrap();
    assert_eq!(rows, blobs, "{what}");
    assert!(rows.len() <= 2, "{what}: what is due has gone");
    assert_eq!(server.taken_resources().await, rows.len() as u64, "{what}");
    assert_eq!(server.staging.in_flight(), (0, 0), "{what}");
    server.assert_downloads(&server.staged().await, what).await;
    shared.store.arriving().await.len()
}

/// All points of a piece of work. Returns their number.
async fn every_point(work: Work) -> usize {
    let mut points = 0;
    for store in stores() {
        // One call more than there is: nothing happens.
        let calls = check(store, work, usize::MAX, Point::Before).await;
        assert!(calls > 0, "{store:?} {work:?}");
        for at in 0..calls {
            for point in POINTS {
                check(store, work, at, point).await;
                points += 1;
            }
        }
    }
    println!("{work:?}: {points} points");
    points
}

#[tokio::test]
async fn a_claim_may_end_anywhere() {
    assert!(every_point(Work::Claim).await >= 30);
}

#[tokio::test]
async fn an_upload_may_end_anywhere() {
    assert!(every_point(Work::Upload).await >= 33);
}

#[tokio::test]
async fn a_download_may_end_anywhere() {
    assert!(every_point(Work::Download).await >= 15);
}

#[tokio::test]
async fn a_release_may_end_anywhere() {
    assert!(every_point(Work::Release).await >= 20);
}

#[tokio::test]
async fn a_sweep_may_end_anywhere() {
    assert!(every_point(Work::Sweep).await >= 100);
}
