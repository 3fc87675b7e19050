//! The start of a server whose ledger is in a bucket.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloakroom_storage::ledger::{LedgerError, WrongForm};
use cloakroom_storage::log::{
    Columns, Group, LedgerFile, LogError, Position, RowChange, Started, Starting, Timing, WriterStamp,
    WriterState,
};
use cloakroom_storage::stamp::Installation;
use cloakroom_suites::memory_log::MemoryLog;
use tokio::sync::Notify;
use tokio::time::timeout;

mod refused;

/// Longer than any step takes.
const BOUND: Duration = Duration::from_secs(20);

/// A file with a line for each change.
struct Lines(PathBuf);

impl Lines {
    fn text(&self) -> String {
        std::fs::read_to_string(&self.0).unwrap_or_default()
    }

    fn add(&self, line: &str) {
        std::fs::write(&self.0, self.text() + line + "\n").unwrap();
    }
}

#[async_trait]
impl LedgerFile for Lines {
    fn path(&self) -> &Path {
        &self.0
    }

    async fn clear(&self) -> Result<(), LedgerError> {
        drop(std::fs::remove_file(&self.0));
        Ok(())
    }

    async fn apply(&self, group: Group) -> Result<(), LedgerError> {
        group.changes.iter().for_each(|change| self.add(&change.table));
        Ok(())
    }

    async fn finish(&self, _: Installation) -> Result<(), LedgerError> {
        self.add("begins");
        Ok(())
    }

    async fn check(&self) -> Result<(), LedgerError> {
        let damage =
            LedgerError::WrongForm { path: self.0.display().to_string(), form: WrongForm::NoDatabase };
        if self.text().contains("damaged") { Err(damage) } else { Ok(()) }
    }

    async fn installation(&self) -> Result<Option<Installation>, LedgerError> {
        Ok(Some(installation()))
    }

    async fn restored(&self) -> Result<Option<Position>, LedgerError> {
        Ok(self.text().lines().find_map(|line| line.strip_prefix("restored ")?.parse().ok()))
    }

    async fn put_back(&self, from: &Path, at: Position) -> Result<(), LedgerError> {
        std::fs::rename(from, &self.0).unwrap();
        self.add(&format!("restored {at}"));
        Ok(())
    }
}

struct Server {
    folder: tempfile::TempDir,
    store: Arc<MemoryLog>,
    restore: Option<Position>,
}

impl Server {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), store: Arc::default(), restore: None }
    }

    /// Another one with the same bucket.
    fn beside(&self) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), store: Arc::clone(&self.store), restore: None }
    }

    fn file(&self) -> Lines {
        Lines(self.folder.path().join("ledger"))
    }

    fn add_group(&self, at: Position, table: &str) {
        let changes = vec![RowChange { table: table.into(), key: Columns::new(), row: None }];
        let group = Group { installation: installation(), at, form: 1, changes };
        self.store.objects().groups.insert(at, group.encode().unwrap().into());
    }

    fn set_stamp(&self, epoch: u64, state: WriterState) {
        self.set_stamp_at(Position::start(0), epoch, state);
    }

    fn set_stamp_at(&self, reached: Position, epoch: u64, state: WriterState) {
        let stamp = WriterStamp { installation: installation(), epoch, writer: 9, beat: 3, reached, state };
        self.store.objects().stamp = Some(stamp);
    }

    async fn starts_after(&self, patience: Duration, waits: &Notify) -> Result<Started, LogError> {
        let timing = Timing { patience, look: Duration::from_millis(5), beat: Duration::from_millis(5) };
        let (file, tell) = (self.file(), |_, _| waits.notify_one());
        let store = Arc::clone(&self.store) as _;
        let starting = Starting {
            store,
            file: &file,
            timing,
            installation: installation(),
            restore: self.restore,
            tell: &tell,
        };
        timeout(BOUND, starting.run()).await.unwrap()
    }

    async fn starts(&self) -> Result<Started, LogError> {
        self.starts_after(BOUND, &Notify::new()).await
    }
}

fn installation() -> Installation {
    "00000000000000ab".parse().unwrap()
}

fn at(epoch: u64, number: u64) -> Position {
    Position { epoch, number }
}

#[tokio::test]
async fn the_first_server_begins_a_new_ledger() {
    let server = Server::new();
    let started = server.starts().await.unwrap();
    assert_eq!(started.start, at(1, 0));
    assert_eq!(server.file().text(), "begins\n");
    assert_eq!(server.store.objects().copies, BTreeMap::from([(at(1, 0), b"begins\n".to_vec())]));
}

#[tokio::test]
async fn the_next_server_has_the_newest_copy_and_the_log_behind_it() {
    let server = Server::new();
    server.set_stamp(2, WriterState::Stopped);
    for (place, text) in [(at(1, 9), "older\n"), (at(2, 0), "old\n"), (at(2, 2), "a\nb\n")] {
        server.store.objects().copies.insert(place, text.into());
    }
    for (place, table) in [(at(2, 2), "b"), (at(2, 3), "c"), (at(2, 4), "d"), (at(1, 10), "x")] {
        server.add_group(place, table);
    }
    let started = server.starts().await.unwrap();
    assert_eq!(started.start, at(3, 0));
    assert_eq!(server.file().text(), "a\nb\nc\nd\nbegins\n");
}

#[tokio::test]
async fn a_first_start_that_was_cut_off_goes_on() {
    let server = Server::new();
    let state = || server.store.objects().stamp.unwrap().state;
    let (heartbeat, beats) = server.starts().await.unwrap().heartbeat;
    drop(beats);
    assert_eq!(state(), WriterState::Begins);
    server.store.objects().copies.clear();
    let started = server.starts_after(Duration::from_millis(5), &Notify::new()).await.unwrap();
    assert_eq!(started.start, at(2, 0));
    heartbeat.beat().await.unwrap();
    assert!(heartbeat.ended().is_some());
    started.heartbeat.0.beat().await.unwrap();
    assert_eq!(state(), WriterState::Serves);
}

#[tokio::test]
async fn a_second_server_waits_until_the_first_one_says_that_it_has_stopped() {
    let first = Server::new();
    let (heartbeat, _beats) = first.starts().await.unwrap().heartbeat;
    let (second, waits) = (first.beside(), Notify::new());
    let (started, ()) = tokio::join!(second.starts_after(BOUND * 2, &waits), async {
        waits.notified().await;
        heartbeat.say(WriterState::Stopped);
        heartbeat.beat().await.unwrap();
    });
    assert_eq!(started.unwrap().start, at(2, 0));
    assert_eq!(second.file().text(), "begins\nbegins\n");
}

#[tokio::test]
async fn a_second_server_takes_over_when_the_first_one_beats_no_more() {
    let first = Server::new();
    let (heartbeat, beats) = first.starts().await.unwrap().heartbeat;
    let (second, waits) = (first.beside(), Notify::new());
    let (started, ()) = tokio::join!(second.starts_after(Duration::from_millis(50), &waits), async {
        waits.notified().await;
        drop(beats);
    });
    assert_eq!(started.unwrap().start, at(2, 0));
    // The first one wakes up.
    assert_eq!(heartbeat.seen().await.unwrap(), 2);
    assert!(heartbeat.ended().is_some());
}

#[tokio::test]
async fn of_two_servers_that_claim_at_once_one_waits_for_the_other() {
    let first = Server::new();
    first.set_stamp(4, WriterState::Yields);
    first.store.objects().copies.insert(at(4, 0), Vec::new());
    let second = first.beside();
    let (one, other) = (first.starts(), second.starts());
    let (mut one, mut other) = (std::pin::pin!(one), std::pin::pin!(other));
    let (winner, rest) = tokio::select! {
        started = &mut one => (started.unwrap(), &mut other),
        started = &mut other => (started.unwrap(), &mut one),
    };
    assert_eq!(winner.start, at(5, 0));
    let (heartbeat, _beats) = winner.heartbeat;
    heartbeat.say(WriterState::Yields);
    heartbeat.beat().await.unwrap();
    assert_eq!(rest.await.unwrap().start, at(6, 0));
    heartbeat.beat().await.unwrap();
    assert!(heartbeat.ended().is_some());
}

#[tokio::test]
async fn a_beat_whose_answer_was_lost_is_known_again() {
    let server = Server::new();
    let started = server.starts().await.unwrap();
    let (heartbeat, beats) = started.heartbeat;
    drop(beats);
    let written = server.store.objects().stamp.unwrap();
    server.store.objects().stamp = Some(written.next(written.reached, WriterState::Serves));
    heartbeat.beat().await.unwrap();
    heartbeat.beat().await.unwrap();
    assert_eq!(heartbeat.seen().await.unwrap(), 1);
    assert!(heartbeat.ended().is_none());
    assert_eq!(server.store.objects().stamp.unwrap().beat, written.beat + 2);
    server.store.objects().stamp = None;
    assert!(heartbeat.seen().await.is_err(), "no other server has removed it");
    assert!(heartbeat.beat().await.is_err());
    assert!(heartbeat.ended().is_none());
}

#[tokio::test]
async fn a_copy_is_put_back_once_and_the_ledger_before_it_stays_as_a_copy() {
    let server = Server::new();
    server.set_stamp(3, WriterState::Stopped);
    for (place, text) in [(at(2, 7), "earlier\n"), (at(3, 0), "newest\n")] {
        server.store.objects().copies.insert(place, text.into());
    }
    server.add_group(at(3, 1), "a");
    let back = Server { restore: Some(at(2, 7)), ..server.beside() };
    drop(back.starts().await.unwrap());
    assert_eq!(back.file().text(), "earlier\nrestored 2-7\nbegins\n");
    assert_eq!(server.store.objects().copies[&at(3, 1)], b"newest\na\nbegins\n");
    assert_eq!(server.store.objects().copies[&at(4, 0)], b"earlier\nrestored 2-7\nbegins\n");
    // The flag is still there at the next start.
    server.set_stamp(4, WriterState::Stopped);
    server.add_group(at(4, 1), "b");
    let again = Server { restore: Some(at(2, 7)), ..server.beside() };
    drop(again.starts().await.unwrap());
    assert_eq!(again.file().text(), "earlier\nrestored 2-7\nbegins\nb\nbegins\n");
}

#[tokio::test]
async fn a_server_that_has_begun_says_so_in_its_stamp() {
    let server = Server::new();
    let (heartbeat, _beats) = server.starts().await.unwrap().heartbeat;
    heartbeat.beat().await.unwrap();
    assert_eq!(server.store.objects().stamp.unwrap().reached, at(1, 0));
}
