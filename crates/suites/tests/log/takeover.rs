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
        let stamp = WriterStamp { installation: installation(), epoch, writer: 9, beat: 3, state };
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
async fn a_log_that_is_not_whole_is_refused_and_its_group_is_named() {
    let damaged = |server: &Server| {
        server.add_group(at(1, 1), "a");
        let whole = server.store.objects().groups[&at(1, 1)].clone();
        server.store.objects().groups.insert(at(1, 1), whole.slice(..whole.len() / 2));
    };
    let misplaced = |server: &Server| {
        server.add_group(at(1, 2), "a");
        let other = server.store.objects().groups.remove(&at(1, 2)).unwrap();
        server.store.objects().groups.insert(at(1, 1), other);
    };
    let gap = |server: &Server| server.add_group(at(1, 2), "a");
    for (spoil, says) in [
        (
            &damaged as &dyn Fn(&Server),
            "log/1-1 cannot be used, because its digest is not that of its content: put it back",
        ),
        (
            &misplaced,
            "log/1-1 cannot be used, because it says that it is the group 1-2 of the installation 00000000000000ab",
        ),
        (&gap, "log/1-1 is missing, and the next one is there"),
    ] {
        let server = Server::new();
        server.set_stamp(1, WriterState::Stopped);
        server.store.objects().copies.insert(at(1, 0), Vec::new());
        spoil(&server);
        let refused = server.starts().await.err().unwrap().to_string();
        assert!(refused.starts_with(says), "{refused}");
        assert!(!server.store.objects().copies.contains_key(&at(2, 0)), "{says}");
    }
}

#[tokio::test]
async fn a_ledger_whose_stamp_is_missing_is_not_begun_anew() {
    let server = Server::new();
    drop(server.starts().await.unwrap().heartbeat);
    server.store.objects().stamp = None;
    let refused = server.starts().await.err().unwrap().to_string();
    assert!(refused.starts_with("stamp is missing, which says which server writes"), "{refused}");
    assert_eq!(server.store.objects().copies[&at(1, 0)], b"begins\n");
}

/// It is read some groups ahead.
#[tokio::test]
async fn a_long_log_is_read_in_order_and_a_gap_anywhere_is_found() {
    let long = || {
        let server = Server::new();
        server.set_stamp(1, WriterState::Stopped);
        server.store.objects().copies.insert(at(1, 0), Vec::new());
        (1..=100).for_each(|number| server.add_group(at(1, number), &number.to_string()));
        server
    };
    let server = long();
    drop(server.starts().await.unwrap());
    let numbers: Vec<String> = (1..=100).map(|number| number.to_string()).collect();
    assert_eq!(server.file().text(), numbers.join("\n") + "\nbegins\n");
    for missing in [1, 2, 3, 6, 7, 14, 30, 61, 62, 63, 94, 99] {
        let server = long();
        server.store.objects().groups.remove(&at(1, missing));
        let refused = server.starts().await.err().unwrap().to_string();
        assert!(refused.starts_with(&format!("log/1-{missing} is missing")), "{refused}");
    }
    let server = long();
    server.store.objects().groups.remove(&at(1, 100));
    drop(server.starts().await.unwrap());
}

/// Servers may have claimed later epochs than that of the last object, and written nothing yet.
#[tokio::test]
async fn an_admin_goes_on_without_the_stamp_in_an_epoch_that_no_server_has() {
    let first = Server::new();
    let (heartbeat, _beats) = first.starts().await.unwrap().heartbeat;
    first.add_group(at(1, 1), "a");
    first.store.objects().stamp = None;
    let second = first.beside();
    let started = second.starts_after(Duration::ZERO, &Notify::new()).await.unwrap();
    assert_eq!(started.start, at(1_000_002, 0));
    assert_eq!(second.file().text(), "begins\na\nbegins\n");
    assert_eq!(second.store.objects().stamp.unwrap().installation, installation());
    assert_eq!(heartbeat.seen().await.unwrap(), started.start.epoch);
    assert!(heartbeat.ended().is_some());
}

#[tokio::test]
async fn a_damaged_copy_is_named_and_an_admin_goes_back_behind_it() {
    let server = Server::new();
    server.set_stamp(2, WriterState::Stopped);
    server.store.objects().copies.insert(at(1, 0), b"whole\n".to_vec());
    server.store.objects().copies.insert(at(2, 0), b"damaged\n".to_vec());
    let refused = server.starts().await.err().unwrap().to_string();
    assert!(refused.starts_with("ledger/2-0.db cannot be used (put it back"), "{refused}");
    let back = Server { restore: Some(at(1, 0)), ..server.beside() };
    drop(back.starts().await.unwrap());
    assert_eq!(back.file().text(), "whole\nrestored 1-0\nbegins\n");
}

#[tokio::test]
async fn a_ledger_whose_copies_are_missing_is_not_begun_anew() {
    let server = Server::new();
    let (heartbeat, _beats) = server.starts().await.unwrap().heartbeat;
    heartbeat.beat().await.unwrap();
    server.set_stamp(1, WriterState::Stopped);
    server.store.objects().copies.clear();
    let refused = server.starts().await.err().unwrap().to_string();
    assert!(refused.starts_with("the bucket has no copy of its ledger any more"), "{refused}");
}

/// Its server was killed before it renewed its stamp, which still says that it begins.
#[tokio::test]
async fn a_log_whose_only_copy_is_missing_is_not_begun_anew() {
    let server = Server::new();
    server.set_stamp(1, WriterState::Begins);
    server.add_group(at(1, 1), "a");
    let refused = server.starts_after(Duration::from_millis(5), &Notify::new()).await.err().unwrap();
    assert!(refused.to_string().starts_with("the bucket has no copy of its ledger any more"), "{refused}");
    assert!(server.store.objects().groups.contains_key(&at(1, 1)));
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
    server.store.objects().stamp = Some(written.next(WriterState::Serves));
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
async fn a_copy_that_is_not_there_is_refused_and_the_next_start_need_not_wait() {
    let server = Server::new();
    server.set_stamp(1, WriterState::Stopped);
    server.store.objects().copies.insert(at(1, 0), Vec::new());
    let wrong = Server { restore: Some(at(1, 7)), ..server.beside() };
    let refused = wrong.starts().await.err().unwrap().to_string();
    assert_eq!(refused, "there is no copy 1-7 of the ledger: there are 1-0 of 1970-01-01T00:00:00Z");
    assert_eq!(server.starts().await.unwrap().start, at(3, 0));
}

#[tokio::test]
async fn what_lies_behind_the_end_of_the_log_is_refused_and_nothing_is_removed() {
    let later_copy = |server: &Server| {
        server.store.objects().copies.insert(at(3, 0), Vec::new());
    };
    let group_of_a_missing_copy = |server: &Server| server.add_group(at(2, 1), "a");
    let behind_two_missing_ones = |server: &Server| server.add_group(at(1, 4), "a");
    for (spoil, found) in [
        (&later_copy as &dyn Fn(&Server), "ledger/3-0.db"),
        (&group_of_a_missing_copy, "log/2-1"),
        (&behind_two_missing_ones, "log/1-4"),
    ] {
        let server = Server::new();
        server.set_stamp(2, WriterState::Stopped);
        server.store.objects().copies.insert(at(1, 0), Vec::new());
        server.add_group(at(1, 1), "a");
        spoil(&server);
        let before = server.store.objects().groups.len();
        let refused = server.starts().await.err().unwrap().to_string();
        assert!(refused.starts_with(&format!("{found} is there")), "{refused}");
        assert!(refused.contains("leads there from 1-1, where the log ends"), "{refused}");
        assert_eq!(server.store.objects().groups.len(), before);
    }
}

#[tokio::test]
async fn an_admin_goes_back_if_the_log_cannot_be_read_but_by_no_flag_left_over() {
    let server = Server::new();
    server.set_stamp(1, WriterState::Stopped);
    server.store.objects().copies.insert(at(1, 0), b"copy\n".to_vec());
    server.add_group(at(1, 2), "a");
    assert!(server.starts().await.is_err());
    let back = || Server { restore: Some(at(1, 0)), ..server.beside() };
    let first = back();
    let epoch = first.starts().await.unwrap().start.epoch;
    assert_eq!(first.file().text(), "copy\nrestored 1-0\nbegins\n");
    server.set_stamp(epoch, WriterState::Stopped);
    server.add_group(at(epoch, 2), "b");
    let refused = back().starts().await.err().unwrap().to_string();
    assert!(refused.starts_with(&format!("log/{epoch}-1 is missing")), "{refused}");
}
