//! A ledger whose log is in a bucket: what waits for the log, and what becomes of a server that is replaced.

use std::sync::Arc;

use cloakroom_core::resource::{BlobKey, ResourceId};
use cloakroom_storage::ledger::{Fact, Ledger as _, LedgerError, Stray};
use cloakroom_storage::log::{Group, Position, Timing, WriterEnd, WriterState};
use cloakroom_suites::ledger::rows::{AnyLedger, at, ready};
use cloakroom_suites::ledgers::{Opened, opened, took_over};
use cloakroom_suites::memory_log::MemoryLog;
use cloakroom_testing::wait::{BOUND, until_true};
use futures_util::FutureExt as _;
use jiff::Timestamp;

/// Starts a server. One that is there has to say that it yields.
async fn start(log: &Arc<MemoryLog>) -> Opened {
    opened(Arc::clone(log) as _, BOUND).await
}

fn cluster(uid: &str) -> Fact {
    Fact::Cluster(Some(uid.to_owned()))
}

/// A change for which nobody waits.
fn strays() -> Fact {
    let key = BlobKey::for_resource(ResourceId::generate(&mut rand::rng()));
    let stray = Stray { key, size_bytes: 1, seen_at: Timestamp::UNIX_EPOCH };
    Fact::Strays { found: vec![stray], gone: Vec::new() }
}

fn group(log: &MemoryLog, number: u64) -> Option<Group> {
    let at = Position { epoch: 1, number };
    log.objects().groups.get(&at).map(|bytes| Group::decode(bytes).unwrap())
}

// Invariant: with a bucket nothing acts on a change that the log does not have, and another server has all that was
// acknowledged.
#[tokio::test]
async fn a_change_is_neither_seen_nor_acknowledged_before_the_log_has_it() {
    let log = Arc::new(MemoryLog::default());
    let server = start(&log).await;
    log.objects().takes_groups = false;
    let mut writing = server.ledger.write(cluster("one"));
    assert!((&mut writing).now_or_never().is_none());
    log.refused_a_group().await;
    assert!((&mut writing).now_or_never().is_none());
    assert_eq!(server.ledger.facts().await.unwrap().cluster, None);
    assert_eq!(server.progress.last(), Position::start(1));
    log.objects().takes_groups = true;
    writing.await.unwrap();
    assert_eq!(server.ledger.facts().await.unwrap().cluster.as_deref(), Some("one"));
    let written = group(&log, 1).unwrap();
    assert_eq!(written.changes.len(), 1);
    assert_eq!(server.progress.last(), written.at);
}

#[tokio::test]
async fn changes_for_which_nobody_waits_go_along_with_the_next_group() {
    let log = Arc::new(MemoryLog::default());
    let server = start(&log).await;
    server.ledger.write(strays()).await.unwrap();
    assert!(group(&log, 1).is_none());
    server.ledger.write(cluster("one")).await.unwrap();
    assert_eq!(group(&log, 1).unwrap().changes.len(), 2);
    server.ledger.write(strays()).await.unwrap();
    until_true("the log has the stray", || group(&log, 2).is_some()).await;
    server.ledger.write(strays()).await.unwrap();
    server.ledger.close().await;
    assert_eq!(group(&log, 3).unwrap().changes.len(), 1, "a ledger that is closed has logged all");
}

#[tokio::test]
async fn the_first_use_waits_for_the_log_and_later_ones_go_along() {
    let log = Arc::new(MemoryLog::default());
    let server = start(&log).await;
    let id = ready(&AnyLedger::load(Arc::clone(&server.ledger) as _, 0).await).await;
    let logged = server.progress.last();
    assert!(server.ledger.mark_used(id, at(20)).await.unwrap());
    assert_eq!(server.progress.last(), logged.next());
    assert!(server.ledger.mark_used(id, at(40)).await.unwrap());
    assert_eq!(server.progress.last(), logged.next());
    until_true("the log has the later use", || server.progress.last() == logged.next().next()).await;
}

#[tokio::test]
async fn a_server_that_was_replaced_acknowledges_nothing_more() {
    let log = Arc::new(MemoryLog::default());
    let first = start(&log).await;
    first.ledger.write(cluster("one")).await.unwrap();
    let heartbeat = &first.started.heartbeat.0;
    heartbeat.say(WriterState::Yields);
    heartbeat.beat().await.unwrap();
    let second = start(&log).await;
    for _ in 0..2 {
        let refused = first.ledger.write(cluster("late")).await;
        assert!(matches!(refused, Err(LedgerError::Ended(WriterEnd::Superseded))), "{refused:?}");
        assert_eq!(first.ledger.facts().await.unwrap().cluster.as_deref(), Some("one"));
    }
    assert_eq!(heartbeat.over().await, WriterEnd::Superseded);
    assert_eq!(second.ledger.facts().await.unwrap().cluster.as_deref(), Some("one"));
    // Its first late group is there, and belongs to nobody.
    assert!(group(&log, 2).is_some() && group(&log, 3).is_none());
    second.ledger.write(cluster("two")).await.unwrap();
    first.ledger.close().await;
    assert!(group(&log, 3).is_none());
}

#[tokio::test]
async fn a_copy_that_cannot_be_used_is_named_with_its_fault() {
    let written = async || {
        let log = Arc::new(MemoryLog::default());
        let server = start(&log).await;
        server.ledger.write(cluster("one")).await.unwrap();
        let heartbeat = &server.started.heartbeat.0;
        heartbeat.say(WriterState::Stopped);
        heartbeat.beat().await.unwrap();
        log
    };
    let (empty, cut, other) = (written().await, written().await, written().await);
    let first = Position::start(1);
    empty.objects().copies.insert(first, Vec::new());
    let whole = cut.objects().copies[&first].clone();
    cut.objects().copies.insert(first, whole[..whole.len() / 2].to_vec());
    let installation = |log: &MemoryLog| log.objects().stamp.unwrap().installation;
    let expected = format!(
        "stamp names the installation {}, and ledger/1-0.db is of {}",
        installation(&other),
        installation(&cut)
    );
    other.objects().copies.insert(first, whole);
    for (log, says) in [
        (
            &empty,
            "ledger/1-0.db cannot be used, because it is no database, or its beginning is damaged: put it",
        ),
        (&cut, "ledger/1-0.db cannot be used, because it is damaged (error returned from database"),
        (&other, &*expected),
    ] {
        let timing = Timing { patience: BOUND, look: BOUND, beat: BOUND };
        for restore in [None, Some(first)] {
            let refused = took_over(Arc::clone(log) as _, timing, restore).await.err().unwrap().to_string();
            assert!(refused.starts_with(says) || restore.is_some(), "{refused}");
            assert!(!refused.contains("run.md") && !refused.contains("/tmp"), "{refused}");
        }
    }
}
